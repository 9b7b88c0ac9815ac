//! Unit tests of `connect`.

use super::*;
use crate::PeerKind;
use std::cell::{Cell, RefCell};
use std::net::TcpListener;
use std::sync::RwLock;

use ports::ReservedPort;

#[derive(Default)]
struct Watch {
    questions: Cell<u32>,
    cancel_at: Option<u32>,
    warnings: RefCell<Vec<String>>,
}

impl ConnectWatch for Watch {
    fn canceled(&self) -> bool {
        self.questions.set(self.questions.get() + 1);
        self.cancel_at.is_some_and(|at| self.questions.get() >= at)
    }

    fn retrying(&self, text: &str) {
        self.warnings.borrow_mut().push(text.to_owned());
    }
}

fn plan(port: u16, give_up_after: Duration) -> ConnectPlan {
    ConnectPlan {
        peer: Peer { kind: PeerKind::Storage, host: "127.0.0.1".to_owned(), port },
        source: None,
        retry_every: Duration::from_millis(10),
        give_up_after,
        keep_idle: Some(Duration::from_secs(300)),
        send_buffer: Some(100_000),
    }
}

#[test]
fn connects_with_a_source_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = plan(listener.local_addr().unwrap().port(), Duration::from_secs(5));
    plan.source = Some("127.0.0.3".parse().unwrap());
    let channel = Channel::connect(&plan, Limits::default(), &Watch::default()).unwrap();
    assert_eq!(channel.address(), listener.local_addr().unwrap());
    assert_eq!(channel.peer().to_string(), format!("Storage daemon:127.0.0.1:{}", plan.peer.port));
    let (_theirs, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), "127.0.0.3");
}

#[test]
fn refusals_are_retried_until_the_time_is_up_and_warned_of_from_the_second_on() {
    let dead = ReservedPort::new().unwrap();
    let (port, watch) = (dead.number(), Watch::default());
    let mut plan = plan(port, Duration::from_secs(10));
    plan.retry_every = Duration::from_secs(1);
    // Each look at the clock takes a second.
    let (start, looks) = (Instant::now(), Cell::new(0));
    let clock = || start + Duration::from_secs(looks.replace(looks.get() + 1));
    let told_of_silence = Cell::new(false);
    let attempt = Attempt { plan: &plan, watch: &watch, start, clock: &clock, lookup: resolve, told_of_silence };
    let error = attempt.run().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("[FE0039] Unable to connect to Storage daemon on 127.0.0.1:{port}. ERR=Connection refused")
    );
    assert_eq!(
        *watch.warnings.borrow(),
        [format!("Could not connect to Storage daemon on 127.0.0.1:{port}. ERR=Connection refused\nRetrying ...\n")]
    );
}

#[test]
fn without_a_timeout_there_is_one_try_and_the_kernel_ends_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let watch = Watch::default();
    let up = plan(listener.local_addr().unwrap().port(), Duration::ZERO);
    Channel::connect(&up, Limits::default(), &watch).unwrap();
    let dead = ReservedPort::new().unwrap();
    let error = Channel::connect(&plan(dead.number(), Duration::ZERO), Limits::default(), &watch).unwrap_err();
    assert!(error.to_string().ends_with("ERR=Connection refused"), "{error}");
    assert!(watch.warnings.borrow().is_empty());
}

/// Which of these addresses answers, when so much of two seconds has passed. The clock stands
/// still, so that a host that does does not use the time up.
fn found_of_two_seconds(addresses: &[SocketAddr], passed: Duration) -> SocketAddr {
    let start = Instant::now();
    let attempt = Attempt {
        plan: &plan(0, Duration::from_secs(2)),
        watch: &Watch::default(),
        start,
        clock: &|| start + passed,
        lookup: resolve,
        told_of_silence: Cell::new(false),
    };
    attempt.try_all(addresses).unwrap().unwrap().peer_addr().unwrap()
}

#[test]
fn a_try_that_begins_when_the_time_is_up_is_looked_at() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let good = listener.local_addr().unwrap();
    assert_eq!(found_of_two_seconds(&[good], Duration::from_secs(2)), good);
}

#[test]
fn a_retry_finds_a_daemon_that_came_up_meanwhile() {
    struct Starter(RefCell<Option<TcpListener>>, u16);
    impl ConnectWatch for Starter {
        fn canceled(&self) -> bool {
            false
        }
        fn retrying(&self, _text: &str) {
            *self.0.borrow_mut() = Some(TcpListener::bind(("127.0.0.1", self.1)).unwrap());
        }
    }
    let dead = ReservedPort::new().unwrap();
    let starter = Starter(RefCell::default(), dead.number());
    Channel::connect(&plan(starter.1, Duration::from_secs(3600)), Limits::default(), &starter).unwrap();
}

#[test]
fn canceling_ends_the_pause() {
    let watch = Watch { cancel_at: Some(2), ..Watch::default() };
    let dead = ReservedPort::new().unwrap();
    let mut plan = plan(dead.number(), Duration::from_secs(3600));
    plan.retry_every = Duration::from_secs(3600);
    let error = Channel::connect(&plan, Limits::default(), &watch).unwrap_err();
    assert!(matches!(error, ConnectError::Canceled { .. }), "{error}");
}

/// As with name servers that are down.
#[test]
fn a_name_that_has_no_address_yet_is_told_and_canceling_ends_the_wait() {
    static SERVERS: RwLock<()> = RwLock::new(());
    let down = SERVERS.write().unwrap();
    let lookup: Lookup = |host, port| {
        drop(SERVERS.read());
        resolve(host, port)
    };
    let mut plan = plan(9103, Duration::from_secs(3600));
    plan.peer.host = "storage.test".to_owned();
    let watch = Watch { cancel_at: Some(10), ..Watch::default() };
    // Each look at the clock takes a second.
    let (start, looks) = (Instant::now(), Cell::new(0));
    let clock = || start + Duration::from_secs(looks.replace(looks.get() + 1));
    let told_of_silence = Cell::new(false);
    let error =
        Attempt { plan: &plan, watch: &watch, start, clock: &clock, lookup, told_of_silence }.run().unwrap_err();
    assert!(matches!(error, ConnectError::Canceled { .. }), "{error}");
    let told = "Storage daemon on storage.test:9103: the name servers do not say which address storage.test has. \
                Waiting ...\n";
    assert_eq!(*watch.warnings.borrow(), [told]);
    drop(down);
}

#[test]
fn permanent_errors_are_not_retried() {
    let mut unknown = plan(9103, Duration::from_secs(3600));
    unknown.peer.host = "no host has this name".to_owned();
    let error = Channel::connect(&unknown, Limits::default(), &Watch::default()).unwrap_err();
    let head = "[FE0060] gethostbyname() for host \"no host has this name\" failed: ERR=";
    assert!(error.to_string().starts_with(head), "{error}");
    let mut foreign = plan(9103, Duration::from_secs(3600));
    foreign.source = Some("192.0.2.1".parse().unwrap());
    let error = Channel::connect(&foreign, Limits::default(), &Watch::default()).unwrap_err();
    assert_eq!(error.to_string(), "[FE0062] Source address bind error. proto=2. ERR=Cannot assign requested address");
}

/// A Storage Daemon that starts later is found, whatever stands behind its address.
#[test]
fn an_address_that_cannot_be_used_ends_nothing_while_another_can() {
    let dead = ReservedPort::new().unwrap();
    let mut plan = plan(dead.number(), Duration::from_secs(3600));
    plan.source = Some("127.0.0.3".parse().unwrap());
    let [usable, unusable] = ["127.0.0.1", "::1"].map(|ip| SocketAddr::new(ip.parse().unwrap(), dead.number()));
    let watch = Watch::default();
    let attempt = Attempt {
        plan: &plan,
        watch: &watch,
        start: Instant::now(),
        clock: &Instant::now,
        lookup: resolve,
        told_of_silence: Cell::new(false),
    };
    for addresses in [[usable, unusable], [unusable, usable]] {
        let error = attempt.try_all(&addresses).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
    assert!(attempt.try_all(&[unusable]).is_err(), "nothing is worth another round");
}

#[test]
fn an_unreachable_director_has_its_own_error_code() {
    let dead = ReservedPort::new().unwrap();
    let mut plan = plan(dead.number(), Duration::ZERO);
    plan.peer.kind = PeerKind::Director;
    let error = Channel::connect(&plan, Limits::default(), &Watch::default()).unwrap_err();
    assert!(error.to_string().starts_with("[FE0019] Unable to connect to Director daemon on"), "{error}");
}

#[test]
fn addresses_of_ipv6_come_first_and_once() {
    let parsed =
        |addresses: &[&str]| -> Vec<SocketAddr> { addresses.iter().map(|address| address.parse().unwrap()).collect() };
    let found = ["127.0.0.1:1", "[::2]:1", "127.0.0.1:1", "127.0.0.2:1", "[::1]:1", "[::2]:1"];
    let expected = ["[::2]:1", "[::1]:1", "127.0.0.1:1", "127.0.0.2:1"];
    assert_eq!(in_order(parsed(&found)), parsed(&expected));
    assert_eq!(resolve("::1", 1).unwrap(), parsed(&["[::1]:1"]));
    match resolve("localhost", 9103) {
        Ok(addresses) => assert_eq!(in_order(addresses.clone()), addresses),
        Err(_) => skip::part("localhost has no address here"),
    }
}

/// Cancels at the first warning.
#[derive(Default)]
struct Ends(RefCell<Vec<String>>);

impl ConnectWatch for Ends {
    fn canceled(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    fn retrying(&self, text: &str) {
        self.0.borrow_mut().push(text.to_owned());
    }
}

#[test]
fn a_name_s_addresses_are_in_the_warning() {
    let dead = ReservedPort::new().unwrap();
    let mut plan = plan(dead.number(), Duration::from_secs(3600));
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    if !hosts.contains("localhost") {
        return skip::test("localhost has no address here");
    }
    plan.peer.host = "localhost".to_owned();
    let watch = Ends::default();
    let attempt = Attempt {
        plan: &plan,
        watch: &watch,
        start: Instant::now(),
        clock: &Instant::now,
        lookup: resolve,
        // Name servers that are slow here are no warning.
        told_of_silence: Cell::new(true),
    };
    let refused = attempt.run();
    assert!(matches!(refused, Err(ConnectError::Canceled { .. })), "{refused:?}");
    let warnings = watch.0.borrow();
    let tried = warnings[0].lines().last().unwrap();
    assert!(tried.starts_with("Addresses tried: ") && tried.contains("127.0.0.1"), "{warnings:?}");
}

#[test]
fn an_address_that_does_not_answer_is_told() {
    let (address, _silent) = silent();
    let watch = Ends::default();
    let connected = Channel::connect(&plan(address.port(), Duration::from_secs(600)), Limits::default(), &watch);
    assert!(matches!(connected, Err(ConnectError::Canceled { .. })), "{connected:?}");
    let port = address.port();
    let told = format!("Storage daemon on 127.0.0.1:{port}: 127.0.0.1 does not answer. Waiting ...\n");
    assert_eq!(*watch.0.borrow(), [told]);
}

/// An address that does not answer while the sockets live: a listener whose queue is full drops
/// what comes.
fn silent() -> (SocketAddr, Vec<Socket>) {
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let listener = socket();
    listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut sockets = vec![listener];
    for _ in 0..4 {
        let filling = socket();
        filling.set_nonblocking(true).unwrap();
        let _connects = filling.connect(&address.into());
        sockets.push(filling);
    }
    (address, sockets)
}

#[test]
fn an_address_that_does_not_answer_leaves_time_to_the_others() {
    let (silent, _sockets) = silent();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let good = listener.local_addr().unwrap();
    assert_eq!(found_of_two_seconds(&[silent, good], Duration::ZERO), good);
}
