//! The real Zabbix, server and agent, with the template of packaging/monitoring and a daemon whose
//! clock is three days behind.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use serde_json::{Value, json};

use crate::metrics::root;
use crate::watched::Watched;
use bed::{PATIENCE, Process, ReservedPort, Result, argv, faketime, is_listening, run, wait_for};

/// Ports of an address that no other test has. The usual ones may be those of services of the host.
const AGENT: u16 = 20050;
const SERVER: u16 = 20051;
const FRONT_END: &str = "/usr/share/zabbix";
/// Makes in the folder $1 a database with the server's tables, and a copy of the front end that
/// finds it.
const PREPARE: &str = r#"
install -d -m 700 -o postgres "$1/data"
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
postgres() { program=$1; shift; runuser -u postgres -- "$programs/$program" "$@"; }
trap '[ $? = 0 ] || postgres pg_ctl -D "$1/data" -m immediate stop' EXIT
postgres initdb --no-sync --auth=trust --encoding=UTF8 -D "$1/data"
postgres pg_ctl -D "$1/data" -w -l "$1/data/log" -o "-c listen_addresses= -k $1/data -c fsync=off" start
psql() { command psql -q -v ON_ERROR_STOP=1 -h "$1/data" -U postgres -d "$2"; }
echo 'CREATE DATABASE zabbix' | psql "$1" postgres
for part in schema images data; do zcat "/usr/share/zabbix-server-pgsql/$part.sql.gz" | psql "$1" zabbix; done
cp -a /usr/share/zabbix "$1/web"
sed -i "s|'/etc/zabbix/zabbix.conf.php'|'$1/zabbix.conf.php'|" "$1/web/include/classes/core/CConfigFile.php"
"#;
const STOP: &str =
    r#"runuser -u postgres -- "$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)/pg_ctl" -D "$1/data" -m immediate stop"#;

/// A server with its agent on this host, which it watches by the template.
struct Zabbix {
    /// In the order in which they are ended.
    programs: Vec<Process>,
    folder: String,
    web: ReservedPort,
    token: Value,
    host: Value,
}

impl Zabbix {
    fn start(folder: &Path, metrics: u16) -> Result<Self> {
        let folder = folder.display().to_string();
        shell(PREPARE, &folder)?;
        let web = ReservedPort::new()?;
        let address = own_address();
        configure(&folder, address);
        let of_web = ["php", "-S", &web.address().to_string(), "-t", &format!("{folder}/web")].map(str::to_owned);
        let of_server = ["zabbix_server", "-f", "-c", &format!("{folder}/server.conf")].map(str::to_owned);
        let of_agent = ["zabbix_agent2", "-c", &format!("{folder}/agent.conf")].map(str::to_owned);
        let mut programs = Vec::new();
        for words in [of_server.to_vec(), of_agent.to_vec(), of_web.to_vec()] {
            let output = format!("{folder}/{}.out", words[0]);
            programs.push(Process::start(&words[0], &argv(&words), Path::new(&output))?);
        }
        wait_for("the front end and the agent", PATIENCE, || {
            programs.iter_mut().try_for_each(Process::must_run)?;
            let listen = is_listening(web.number())? && TcpStream::connect((address, AGENT)).is_ok();
            Ok(if listen { Ok(()) } else { Err("one of them doesn't listen".to_owned()) })
        })?;
        let mut zabbix = Self { programs, folder, web, token: Value::Null, host: Value::Null };
        zabbix.token = zabbix.ask("user.login", &json!({"username": "Admin", "password": "zabbix"}));
        zabbix.watch(metrics, address);
        Ok(zabbix)
    }

    /// Brings the template, and the host that has it.
    fn watch(&mut self, metrics: u16, agent: Ipv4Addr) {
        let shipped = fs::read_to_string(root().join("packaging/monitoring/zabbix.yaml")).unwrap();
        assert!(shipped.contains("delay: 1m"));
        let made = json!({"createMissing": true});
        let rules = json!({"templates": made, "items": made, "triggers": made, "discoveryRules": made});
        let source = shipped.replace("delay: 1m", "delay: 1s");
        self.ask("configuration.import", &json!({"format": "yaml", "source": source, "rules": rules}));
        let template = self.ask("template.get", &json!({"filter": {"host": "ferrofd"}}))[0]["templateid"].clone();
        let group = self.ask("hostgroup.create", &json!({"name": "hosts"}))["groupids"][0].clone();
        let interface =
            json!({"type": 1, "main": 1, "useip": 1, "ip": agent.to_string(), "dns": "", "port": AGENT.to_string()});
        let host = json!({
            "host": "host",
            "groups": [{"groupid": group}],
            "templates": [{"templateid": template}],
            "interfaces": [interface],
            "macros": [{"macro": "{$FERROFD.PORT}", "value": metrics.to_string()}],
        });
        self.host = self.ask("host.create", &host)["hostids"][0].clone();
    }

    /// What the front end answers to a call, which must be good.
    fn ask(&self, method: &str, parameters: &Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "method": method, "params": parameters, "id": 1, "auth": self.token});
        let call = call.to_string();
        let mut peer = TcpStream::connect((Ipv4Addr::LOCALHOST, self.web.number())).unwrap();
        write!(
            peer,
            "POST /api_jsonrpc.php HTTP/1.0\r\nHost: test\r\nContent-Type: application/json-rpc\r\n\
             Content-Length: {}\r\n\r\n{call}",
            call.len()
        )
        .unwrap();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{method}: {answer}"));
        assert!(body["error"].is_null(), "{method}: {body}");
        body["result"].clone()
    }

    /// Waits until these are the problems of the host, by how their names begin.
    fn must_tell(&self, expected: &[&str]) -> Result<()> {
        wait_for(&format!("the problems {expected:?}"), PATIENCE, || {
            let problems = self.ask("problem.get", &json!({"hostids": [self.host]}));
            let mut names: Vec<_> =
                problems.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
            names.sort_unstable();
            let is_it =
                names.len() == expected.len() && names.iter().zip(expected).all(|(name, e)| name.starts_with(e));
            Ok(if is_it { Ok(()) } else { Err(format!("{names:?}, {}", self.items())) })
        })
    }

    /// The items with their values or errors, for who reads of a failure.
    fn items(&self) -> String {
        let wanted = json!({"hostids": [self.host], "output": ["key_", "lastvalue", "error"]});
        self.ask("item.get", &wanted).to_string()
    }
}

impl Drop for Zabbix {
    fn drop(&mut self) {
        // The server ends its own processes, before the database does.
        self.programs.drain(..).for_each(|program| drop(program.stop(PATIENCE)));
        let _ = shell(STOP, &self.folder);
    }
}

fn shell(script: &str, folder: &str) -> Result<()> {
    let done = run(&argv(["bash", "-euo", "pipefail", "-c", script, "zabbix", folder]), b"")?;
    assert!(done.status.success(), "{}", done.text());
    Ok(())
}

/// One of loopback's that no other test has: Zabbix takes no port that the kernel gives away.
fn own_address() -> Ipv4Addr {
    let [high, middle, low] = [16, 8, 0].map(|by| (std::process::id() >> by).to_le_bytes()[0]);
    Ipv4Addr::new(127, 64 | high, middle, low)
}

fn configure(folder: &str, address: Ipv4Addr) {
    let write = |name: &str, text: String| fs::write(format!("{folder}/{name}"), text).unwrap();
    write(
        "server.conf",
        format!(
            "DBHost={folder}/data\nDBName=zabbix\nDBUser=postgres\nListenIP={address}\nListenPort={SERVER}\n\
             LogType=console\nPidFile={folder}/server.pid\nSocketDir={folder}\nCacheUpdateFrequency=1\nAllowRoot=1\n"
        ),
    );
    write(
        "agent.conf",
        format!(
            "Server=127.0.0.1\nListenIP={address}\nListenPort={AGENT}\nHostname=host\nLogType=console\n\
             ControlSocket={folder}/agent.sock\nPidFile={folder}/agent.pid\n"
        ),
    );
    let empty = ["SCHEMA", "KEY_FILE", "CERT_FILE", "CA_FILE", "CIPHER_LIST", "PASSWORD"];
    let empty = empty.map(|name| format!("$DB['{name}'] = '';\n")).concat();
    write(
        "zabbix.conf.php",
        format!(
            "<?php\n{empty}$DB['TYPE'] = 'POSTGRESQL';\n$DB['SERVER'] = '{folder}/data';\n$DB['PORT'] = '0';\n\
             $DB['DATABASE'] = 'zabbix';\n$DB['USER'] = 'postgres';\n$DB['ENCRYPTION'] = false;\n\
             $DB['VERIFY_HOST'] = false;\n$DB['DOUBLE_IEEE754'] = true;\n$ZBX_SERVER = '{address}';\n\
             $ZBX_SERVER_PORT = '{SERVER}';\n$ZBX_SERVER_NAME = 'test';\n$IMAGE_FORMAT_DEFAULT = IMAGE_FORMAT_PNG;\n"
        ),
    );
}

#[test]
fn zabbix_tells_of_a_host_s_backups() -> Result<()> {
    if [faketime::LIBRARY, FRONT_END, "/usr/sbin/zabbix_server", "/usr/sbin/zabbix_agent2"]
        .iter()
        .any(|p| !Path::new(p).exists())
    {
        return skip::test("Zabbix is not installed");
    }
    let mut host = Watched::start("zabbix")?;
    host.save()?;
    let zabbix = Zabbix::start(&host.folder, host.port.number())?;
    zabbix.must_tell(&["No good backup for 3d"])?;

    host.correct_clock()?;
    host.save_what_is_gone()?;
    zabbix.must_tell(&["The last backup backup-test had errors or warnings"])?;

    host.end()?;
    zabbix.must_tell(&["The File Daemon does not answer", "The last backup backup-test had errors or warnings"])
}
