//! What an operator does at a console, in order: later actions see what earlier ones left.

use std::fs;

use bed::{Bed, Restore, Result, job_resource};

/// One action; `@` is replaced by the client's name.
#[derive(Debug)]
pub(crate) struct Action {
    /// For messages.
    pub(crate) name: &'static str,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Lines for the console.
    Say(&'static [&'static str]),
    /// A job to be queued and waited for.
    Job(&'static str),
    /// Everything of the first backup is restored, replaced or not.
    Restore(&'static str),
    /// A file is changed and one made; nothing is said.
    Change,
}

impl Action {
    /// Does it for one client.
    pub(crate) fn run(&self, bed: &Bed, client: &str) -> Result<()> {
        match self.kind {
            Kind::Say(lines) => {
                let lines: Vec<String> = lines.iter().map(|line| line.replace('@', client)).collect();
                bed.console(&lines.iter().map(String::as_str).collect::<Vec<_>>()).map(drop)
            }
            Kind::Job(command) => bed.run(&command.replace('@', client)).map(drop),
            Kind::Restore(replace) => {
                let job = bed.backup(client, "")?.row.id;
                let to = bed.folder().join("restored").join(client);
                bed.restore(&Restore { job, from: client, onto: client, to: &to, replace }).map(drop)
            }
            Kind::Change => {
                let source = bed.folder().join("source");
                fs::write(source.join("later/new.txt"), "new\n").unwrap();
                bed.console(&[&format!("status client={client}-fd")]).map(drop)
            }
        }
    }
}

/// More jobs of one client.
pub(crate) fn jobs(client: &str) -> Vec<String> {
    let job = |name: &str, kind: &str, more: &[&str]| {
        let more = format!("Type = {kind}\n{}", more.join("\n").replace('@', client));
        job_resource(&format!("{name}-{client}"), client, "Source", &more)
    };
    let scripts = [
        "Level = Full",
        "Client Run Before Job = \"echo %l %n %t %e arg \\\"two words\\\"\"",
        "Client Run After Job = \"echo %e %F %b\"",
        "RunScript {",
        "Runs On Client = yes",
        "Runs When = Before",
        "Fail Job On Error = no",
        "Command = /bin/false",
        "}",
        "RunScript {",
        "Runs On Client = yes",
        "Runs When = After",
        "Runs On Failure = yes",
        "Command = \"sh -c \\\"echo one; echo two >&2; exit 3\\\"\"",
        "}",
    ];
    let failing = ["Level = Full", "Client Run Before Job = /no/such/program"];
    vec![
        job("verify", "Verify", &["Level = InitCatalog", "Verify Job = backup-@"]),
        job("scripts", "Backup", &scripts),
        job("failing", "Backup", &failing),
        job("slow", "Backup", &["Level = Full", "Maximum Bandwidth = 100 mb/s", "Accurate = yes"]),
    ]
}

/// The actions.
pub(crate) fn actions() -> Vec<Action> {
    let action = |name, kind| Action { name, kind };
    let say = |name, lines| Action { name, kind: Kind::Say(lines) };
    vec![
        say("status", &["status client=@-fd"]),
        say("status header", &[".status client=@-fd header"]),
        say("status running", &[".status client=@-fd running"]),
        say("status terminated, empty", &[".status client=@-fd terminated"]),
        say("status current", &[".status client=@-fd current"]),
        say("status last", &[".status client=@-fd last"]),
        say("status statistics", &[".status client=@-fd statistics"]),
        say("status bogus", &[".status client=@-fd bogus"]),
        action("full backup", Kind::Job("run job=backup-@ level=Full yes")),
        say("status after a job", &["status client=@-fd"]),
        say("status as JSON", &[".api 2 api_opts=j", ".status client=@-fd header", ".status client=@-fd terminated"]),
        say("status for programs", &[".api 2 api_opts=o", ".status client=@-fd running", ".status client=@-fd last"]),
        action("a change", Kind::Change),
        action("incremental backup", Kind::Job("run job=backup-@ level=Incremental yes")),
        action("differential backup", Kind::Job("run job=backup-@ level=Differential yes")),
        action("accurate full", Kind::Job("run job=slow-@ level=Full yes")),
        action("accurate incremental", Kind::Job("run job=slow-@ level=Incremental yes")),
        action("scripts", Kind::Job("run job=scripts-@ yes")),
        action("a script that is not there", Kind::Job("run job=failing-@ yes")),
        say("estimate", &["estimate job=backup-@"]),
        say("estimate with list", &["estimate job=backup-@ listing"]),
        say("estimate incremental", &["estimate job=backup-@ level=Incremental listing"]),
        say("estimate accurate", &["estimate job=slow-@ level=Incremental accurate=yes listing"]),
        say("ls", &[".ls client=@-fd path=/etc/hostname"]),
        say("ls of a file that is not there", &[".ls client=@-fd path=/no/such/file"]),
        action("restore", Kind::Restore("always")),
        action("restore without replacing", Kind::Restore("never")),
        action("verify init", Kind::Job("run job=verify-@ level=InitCatalog yes")),
        action("verify catalog", Kind::Job("run job=verify-@ level=Catalog yes")),
        action("verify disk", Kind::Job("run job=verify-@ level=DiskToCatalog yes")),
        action("verify volume", Kind::Job("run job=verify-@ level=VolumeToCatalog yes")),
        action("verify data", Kind::Job("run job=verify-@ level=Data yes")),
        say("setdebug", &["setdebug level=1 trace=0 client=@-fd"]),
        say("status while debugging", &["status client=@-fd", ".status client=@-fd header"]),
        say("setdebug with tags", &["setdebug level=0 trace=0 options=tT tags=network,plugin client=@-fd"]),
        say("setdebug off", &["setdebug level=0 trace=0 tags= client=@-fd"]),
        say("setbandwidth of the client", &["setbandwidth limit=2000 client=@-fd", "status client=@-fd"]),
        say("setbandwidth off", &["setbandwidth limit=0 client=@-fd"]),
        say("statistics", &["statistics client=@-fd all"]),
        say("statistics as JSON", &["statistics client=@-fd all json"]),
        say("query", &[".query client=@-fd plugin=nosuch parameter=info"]),
        say("network", &["status network client=@-fd storage=@ bytes=100000"]),
    ]
}
