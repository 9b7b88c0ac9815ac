//! Who is at the other end of a connection, as that host tells (RFC 931, RFC 1413). `hosts.allow`
//! may name users.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use fd_os::process::Watched;
use socket2::{Domain, Protocol, Socket, Type};

/// The port of the service.
const PORT: u16 = 113;
/// How long it may take to connect, and then to answer. It is what the stock daemon waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer.
const LONGEST: u64 = 512;

/// The user at `address` of the connection between it and `own`; `None` if its host does not tell.
pub(super) fn user(address: SocketAddr, own: SocketAddr) -> Option<String> {
    let asked = ask(SocketAddr::new(address.ip(), PORT), address, own);
    match &asked {
        Ok(Some(user)) => tracing::debug!(%address, %user, "the user of a connection"),
        Ok(None) => tracing::debug!(%address, "the host does not tell the user of a connection"),
        Err(error) => tracing::debug!(%error, %address, "no user of a connection"),
    }
    asked.ok().flatten()
}

fn ask(service: SocketAddr, address: SocketAddr, own: SocketAddr) -> io::Result<Option<String>> {
    let socket = Socket::new(Domain::for_address(service), Type::STREAM, Some(Protocol::TCP))?;
    // The service looks for a connection between the two hosts' addresses.
    socket.bind(&SocketAddr::new(own.ip(), 0).into())?;
    socket.connect_timeout(&service.into(), PATIENCE)?;
    let mut stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{},{}\r\n", address.port(), own.port()).as_bytes())?;
    let mut answer = Vec::new();
    // It may come byte by byte.
    let asked = Instant::now();
    let is_wanted = || asked.elapsed() < PATIENCE;
    BufReader::new(Watched::new(stream, &is_wanted).take(LONGEST)).read_until(b'\n', &mut answer)?;
    Ok(read_answer(&String::from_utf8_lossy(&answer), address.port(), own.port()))
}

/// The user in `their port , our port : USERID : system : user`.
fn read_answer(answer: &str, port: u16, own_port: u16) -> Option<String> {
    let mut fields = answer.splitn(4, ':').map(str::trim);
    let (ports, kind, _system, user) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let (first, second) = ports.split_once(',')?;
    let are_ours = first.trim().parse() == Ok(port) && second.trim().parse() == Ok(own_port);
    let user = user.split_whitespace().next()?;
    (are_ours && kind == "USERID").then(|| user.to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_an_answer_about_this_connection_names_a_user() {
        for (answer, user) in [
            ("40000,9102 : USERID : UNIX : root\r\n", Some("root")),
            ("40000 , 9102:USERID:UNIX,utf-8:joe x\n", Some("joe")),
            ("40000,9102 : USERID : UNIX : a:b\r\n", Some("a:b")),
            ("40000,9102 : ERROR : NO-USER\r\n", None),
            ("40000,9102 : ERROR : NO-USER : root\r\n", None),
            ("40001,9102 : USERID : UNIX : root\r\n", None),
            ("40000,9103 : USERID : UNIX : root\r\n", None),
            ("40000,9102 : USERID : UNIX :", None),
            ("40000 : USERID : UNIX : root", None),
            ("", None),
        ] {
            assert_eq!(read_answer(answer, 40000, 9102).as_deref(), user, "{answer}");
        }
    }

    #[test]
    fn the_service_is_asked_from_the_connection_s_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let service = listener.local_addr().unwrap();
        let host = std::thread::spawn(move || {
            let (mut stream, from) = listener.accept().unwrap();
            let mut asked = String::new();
            BufReader::new(&stream).read_line(&mut asked).unwrap();
            let answer = format!("{} : USERID : UNIX : joe\r\n", asked.trim());
            stream.write_all(answer.as_bytes()).unwrap();
            (asked, from.ip())
        });
        let own = "127.0.0.3:9102".parse().unwrap();
        let user = ask(service, "127.0.0.1:40000".parse().unwrap(), own).unwrap();
        assert_eq!(user.as_deref(), Some("joe"));
        assert_eq!(host.join().unwrap(), ("40000,9102\r\n".to_owned(), "127.0.0.3".parse().unwrap()));
    }

    #[test]
    fn a_host_without_the_service_does_not_tell() {
        let closed = ports::ReservedPort::new().unwrap();
        assert!(ask(closed.address(), "127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap()).is_err());
    }
}
