//! Commands as Directors send them, and what comes of others.

use fd_records::Replace;

use super::*;

fn parse(frame: &[u8]) -> Result<Command, Refusal> {
    read(frame, Access::default(), |_| false)
}

fn name_of(frame: &[u8]) -> Option<&'static str> {
    TABLE.iter().find(|row| frame.starts_with(row.name.as_bytes())).map(|row| row.name)
}

fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.name)
}

fn reply(frame: &[u8]) -> String {
    refused(frame).1
}

fn refused(frame: &[u8]) -> (String, String) {
    let refusal = parse(frame).expect_err("refused");
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).unwrap();
    (text(refusal.fatal), text(refusal.reply))
}

#[test]
fn the_first_prefix_wins() {
    assert_eq!(name_of(b"statusfoo"), Some("status"));
    assert_eq!(name_of(b"restoreobject end\n"), Some("restoreobject"));
    assert_eq!(name_of(b"restorefilelist plugin=x\n"), Some("restorefilelist"));
    assert_eq!(name_of(b"restore"), None);
    assert_eq!(name_of(b"RunBeforeJob x\n"), Some("RunBeforeJob"));
    assert_eq!(name_of(b"Runxyz"), Some("Run"));
    assert_eq!(name_of(b"bootstrap\n"), None);
    assert_eq!(name_of(b"jobid=1"), None);
    assert_eq!(name_of(b""), None);
}

#[test]
fn a_word_disables_the_first_command_that_begins_with_it_and_the_one_of_its_name() {
    let disabled = |item: &str| disabled_by(item.as_bytes());
    assert_eq!(disabled("RUN"), ["RunBeforeNow", "Run"]);
    assert_eq!(disabled("runa"), ["RunAfterJob"]);
    assert_eq!(disabled("s"), ["setdebug="]);
    assert_eq!(disabled(""), ["backup"]);
    assert_eq!(disabled("level ="), ["level = "]);
    assert_eq!(disabled("foo"), [""; 0]);
    assert_eq!(disabled("backup now"), [""; 0]);
    // Each has a word that disables it.
    names().for_each(|name| assert!(disabled(name).contains(&name), "{name}"));
}

#[test]
fn a_restricted_director_may_send_few_commands() {
    let allowed = |monitor, remote| -> Vec<&str> {
        let refusal = Refusal {
            reply: Some(b"2997 Invalid command for a Director with Monitor directive enabled.\n".to_vec()),
            ends_list: true,
            goes_on: true,
            ..Refusal::default()
        };
        let access = Access { monitor, remote };
        names().filter(|name| read(name.as_bytes(), access, |_| false) != Err(refusal.clone())).collect()
    };
    assert_eq!(allowed(true, false), ["Hello", "status", ".status", "caps"]);
    assert_eq!(allowed(false, true), ["cancel", "setbandwidth=", "status", ".status", "stop", "proxy", "caps"]);
    assert_eq!(allowed(true, true).len(), 8);
    assert_eq!(allowed(false, false).len(), TABLE.len());
}

#[test]
fn a_disabled_command_is_refused_by_its_name() {
    let refusal = |frame: &[u8]| read(frame, Access::default(), |name| name == "level = ").map_err(|it| it.fatal);
    assert_eq!(refusal(b"level = full\n"), Err(Some(b"Command: \"level = \" is disabled.\n".to_vec())));
    assert_eq!(refusal(b"status\n"), Ok(Command::Status));
}

#[test]
fn refusals_that_end_a_list_or_leave_the_session_open() {
    let refusals = |wanted: fn(&Refusal) -> bool| -> Vec<&str> {
        let refused = names().filter(|name| parse(name.as_bytes()).is_err_and(|refusal| wanted(&refusal)));
        refused.collect()
    };
    let lists = ["cancel", "snapshot", ".status", "stop", "statistics"];
    assert_eq!(refusals(|refusal| refusal.ends_list), lists);
    assert_eq!(refusals(|refusal| refusal.goes_on), ["cancel", "stop", "restorefilelist"]);
    assert!(refusals(|refusal| refusal.fatal.is_none() && refusal.reply.is_none()).is_empty());
}

#[test]
fn a_second_hello_is_refused_by_its_length() {
    assert_eq!(reply(b"Hello\n"), "authenticate.c:60 Bad Hello command from Director at client. Len=6.\n");
    assert_eq!(reply(b"Hello Director w-dir calling 10002\n"), "2999 Invalid command\n");
}

#[test]
fn a_malformed_job_command_names_the_job_as_far_as_it_scans() {
    let frame = b"JobId=39 Job=b1.2026-11-21_02.56.53_03 SDid=1 SDtime=1795229812 Authorization=PPNB-AOMF\n";
    assert_eq!(
        parse(frame),
        Ok(Command::Job(NewJob {
            job_id: 39,
            name: b"b1.2026-11-21_02.56.53_03".to_vec(),
            vol_session_id: 1,
            vol_session_time: 1_795_229_812,
            authorization: b"PPNB-AOMF".to_vec(),
            second: Refusal {
                fatal: Some([b"Bad Job Command: ", &frame[..]].concat()),
                reply: Some(b"2901 Bad Job\n".to_vec()),
                named: Some((39, b"b1.2026-11-21_02.56.53_03".to_vec())),
                ..Refusal::default()
            },
        }))
    );
    let (fatal, reply) = refused(b"JobId=5 Job=x SDid=1\n");
    assert_eq!((fatal.as_str(), reply.as_str()), ("Bad Job Command: JobId=5 Job=x SDid=1\n", "2901 Bad Job\n"));
    let named = |frame: &[u8]| parse(frame).expect_err("refused").named;
    assert_eq!(named(b"JobId=5 Job=x SDid=1\n"), Some((5, b"x".to_vec())));
    assert_eq!(named(b"JobId=5\n"), Some((5, Vec::new())));
    assert!(matches!(
        parse(b"JobId=5 Job=x SDid=1 SDtime=3 Authorization=\n"),
        Ok(Command::Job(job)) if job.authorization.is_empty()
    ));
}

#[test]
fn a_level_is_whole_or_awaits_its_time() {
    let plain = LevelFlags::default();
    assert_eq!(parse(b"level = full  mtime_only=0 \n"), Ok(Command::Level(plain, Level::Whole(BackupLevel::Full))));
    assert_eq!(
        parse(b"level = accurate_incremental  mtime_only=0 \n"),
        Ok(Command::Level(LevelFlags { accurate: true, ..plain }, Level::Awaiting(BackupLevel::Incremental)))
    );
    let frame = b"level = since_utime 1795227600 mtime_only=0 prev_job=acc.2026-11-21_02.19.56_04\n";
    let since = Since {
        time: 1_795_227_600,
        previous_job: b"acc.2026-11-21_02.19.56_04".to_vec(),
        clockless: Refusal::fatal([b"job.c:2769 Bad level command: ", &frame[..], b"\n"].concat()),
    };
    assert_eq!(parse(frame), Ok(Command::Level(plain, Level::Since(since))));
    assert_eq!(refused(b"level = bogus\n").0, "job.c:2756 Unknown backup level: bogus\n");
    assert!(refused(b"level = since_utime 12\n").0.starts_with("job.c:2769 Bad level command: "));
}

/// The stock daemon looks for its marks in the name of the previous job, too.
#[test]
fn the_name_of_the_previous_job_marks_nothing() {
    for (frame, accurate, rerunning) in [
        ("since_utime 1 mtime_only=0 prev_job=accurate-rerunning.2026-11-21_02.19.56_04", false, false),
        ("since_utime 1 mtime_only=0 prev_job=a prev_job=accurate", false, false),
        ("full rerunning  mtime_only=0 ", false, true),
        ("accurate_incremental rerunning  mtime_only=0 ", true, true),
    ] {
        let Ok(Command::Level(flags, _)) = parse(format!("level = {frame}\n").as_bytes()) else { panic!("{frame}") };
        assert_eq!(flags, LevelFlags { accurate, rerunning }, "{frame}");
    }
}

#[test]
fn storage_has_an_address_and_perhaps_a_key() {
    let storage = |authorization: &[u8], port| {
        let (host, authorization) = (b"127.0.0.1".to_vec(), authorization.to_vec());
        Ok(Command::Storage(StorageAddress { host, port, authorization }))
    };
    assert_eq!(parse(b"storage address=127.0.0.1 port=20113 ssl=0\n"), storage(b"", 20113));
    assert_eq!(parse(b"storage address=127.0.0.1 port=0 ssl=0 Authorization=IC-PC\n"), storage(b"IC-PC", 0));
    let refusal = ("Bad storage command: storage x\n".to_owned(), "2902 Bad storage\n".to_owned());
    assert_eq!(refused(b"storage x\n"), refusal);
    assert!(parse(b"storage address=h port=70000 ssl=0\n").is_err());
}

#[test]
fn a_restore_goes_to_a_folder_or_by_expressions() {
    let restore =
        |replace, prelinks, place, files| Ok(Command::Restore(RestoreOrder { files, replace, prelinks, place }));
    let folder = |path: &[u8]| Where::Folder(path.to_vec());
    assert_eq!(
        parse(b"restore files=16 replace=a prelinks=0 where=/tmp/r1\n"),
        restore(Replace::Always, false, folder(b"/tmp/r1"), 16)
    );
    assert_eq!(
        parse(b"restore files=16 replace=n prelinks=1 where=/tmp/r\x016\n"),
        restore(Replace::Never, true, folder(b"/tmp/r 6"), 16)
    );
    assert_eq!(
        parse(b"restore files=1 replace=w prelinks=0 regexwhere=!^/src!/x!i\n"),
        restore(Replace::IfNewer, false, Where::Regex(b"!^/src!/x!i".to_vec()), 1)
    );
    assert_eq!(parse(b"restore replace=o prelinks=0 where=/\n"), restore(Replace::IfOlder, false, folder(b""), 0));
    assert_eq!(
        parse(b"restore files=0 replace=a prelinks=0 where=\n"),
        restore(Replace::Always, false, folder(b""), 0)
    );
    assert_eq!(refused(b"restore x\n").0, "Bad replace command. CMD=restore x\n\n");
}

#[test]
fn verify_levels_ignore_case() {
    let levels = [
        (&b"verify level=init\n"[..], VerifyLevel::Init, b'V'),
        (b"verify level=catalog\n", VerifyLevel::Catalog, b'C'),
        (b"verify level=volume\n", VerifyLevel::Volume, b'O'),
        (b"verify level=Data", VerifyLevel::Data, b'A'),
        (b"verify  level=DISK_TO_CATALOG\n", VerifyLevel::DiskToCatalog, b'd'),
    ];
    for (frame, level, letter) in levels {
        assert_eq!((parse(frame), level.letter()), (Ok(Command::Verify(level)), letter));
    }
    let refusal = |text: &str| (String::new(), text.to_owned());
    assert_eq!(refused(b"verify level=disk\n"), refusal("2994 Bad verify level: verify level=disk\n\n"));
    assert_eq!(refused(b"verify level=\n"), refusal("2994 Bad verify level: verify level=\n\n"));
    assert_eq!(refused(b"verify all\n"), refusal("2994 Bad verify command: verify all\n\n"));
}

#[test]
fn values_for_plugins_keep_their_blanks() {
    let options = parse(b"pluginoptions=tp:\x01abc=1\x01def=\"two\x01words\"\n");
    assert_eq!(options, Ok(Command::Plugin(PluginCommand::Options(b"tp: abc=1 def=\"two words\"".to_vec()))));
    assert_eq!(refused(b"pluginoptions\n").1, "2992 Bad pluginoptions command\n");
    let list = Command::Plugin(PluginCommand::FileList(b"tp-fd.so".to_vec()));
    assert_eq!(parse(b"restorefilelist plugin=tp-fd.so\n"), Ok(list));
    assert_eq!(refused(b"restorefilelist x\n").1, "2999 restorefilelist command error\n");
    let object = RestoreObject {
        job_id: 4,
        length: 111,
        full_length: 112,
        index: 1,
        object_type: 28,
        compression: 0,
        file_index: 1,
        plugin: b"bpipe:/a b".to_vec(),
    };
    assert_eq!(
        parse(b"restoreobject JobId=4 111,112,1,28,0,1,bpipe:/a\x01b\n"),
        Ok(Command::Plugin(PluginCommand::Object(object.clone())))
    );
    let old = RestoreObject { plugin: Vec::new(), ..object };
    assert_eq!(parse(b"restoreobject JobId=4 111,112,1,28,0,1\n"), Ok(Command::Plugin(PluginCommand::Object(old))));
    assert_eq!(parse(b"restoreobject end\n"), Ok(Command::Plugin(PluginCommand::ObjectsEnd)));
    let long = [b'x'; 5000];
    let frame = [b"restoreobject JobId=4 1,2,3,4,5,6,bpipe:".as_slice(), &long, b"\n"].concat();
    let Ok(Command::Plugin(PluginCommand::Object(object))) = parse(&frame) else { panic!("no object") };
    assert_eq!(object.plugin.len(), 5006, "no byte of a command is lost: plugins compare it");
    let (fatal, reply) = refused(b"restoreobject JobId=4 1,2\n");
    assert_eq!(fatal, "job.c:1340 Bad RestoreObject command: restoreobject JobId=4 1,2\n\n");
    assert_eq!(reply, "2909 Bad RestoreObject command.\n");
}

#[test]
fn cancel_and_stop_name_a_job() {
    assert_eq!(parse(b"cancel Job=big.1\n"), Ok(Command::Cancel(b"big.1".to_vec())));
    assert_eq!(parse(b"stop Job=big.1\n"), Ok(Command::Stop(b"big.1".to_vec())));
    assert_eq!(refused(b"cancel big\n").1, "2902 Error scanning cancel command.\n");
}

#[test]
fn status_words_ignore_case() {
    let status =
        |group, api, api_opts: &[u8]| Ok(Command::StatusGroup(StatusQuery { group, api, api_opts: api_opts.to_vec() }));
    assert_eq!(parse(b".status Running api=2 api_opts=j"), status(StatusGroup::Running, 2, b"j"));
    let collector = StatusGroup::Statistics(b"a b=c".to_vec());
    assert_eq!(parse(b".status STATISTICS=a\x01b=c"), status(collector, 0, b""));
    let (fatal, reply) = refused(b".status bogus api=1 api_opts=");
    assert_eq!(fatal, "status.c:607 Bad .status command: .status bogus api=1 api_opts=\n");
    assert_eq!(reply, "2900 Bad .status command, wrong argument.\n");
}

#[test]
fn a_negative_bandwidth_is_refused() {
    assert_eq!(
        parse(b"setbandwidth=204800 Job=big.1\n"),
        Ok(Command::SetBandwidth(SetBandwidth { limit: 204_800, job: b"big.1".to_vec() }))
    );
    let frame = b"setbandwidth=-1 Job=x\n";
    assert_eq!(refused(frame).1, "2991 Bad setbandwidth command: setbandwidth=-1 Job=x\n\n");
}

#[test]
fn scripts_run_now_later_or_at_the_end() {
    assert_eq!(
        parse(b"Run OnSuccess=1 OnFailure=0 AbortOnError=1 When=2 Command=/bin/echo\x01%j\n"),
        Ok(Command::Script(ScriptCommand::Run(RunScript {
            on_success: true,
            on_failure: false,
            abort_on_error: true,
            when: RunScript::BEFORE,
            command: b"/bin/echo %j".to_vec()
        })))
    );
    assert_eq!(
        parse(b"RunBeforeJob /bin/true\x01x\n"),
        Ok(Command::Script(ScriptCommand::BeforeJob(b"/bin/true x".to_vec())))
    );
    assert!(matches!(
        parse(b"RunAfterJob /bin/true\n"),
        Ok(Command::Script(ScriptCommand::AfterJob(RunScript { on_success: true, on_failure: false, when: 1, .. })))
    ));
    assert_eq!(refused(b"Run x\n").1, "2905 Bad RunScript command.\n");
}

/// The stock daemon runs the first 1,000 bytes: `rm -rf /srv/old/…` cut in the path.
#[test]
fn a_script_is_taken_whole_however_long_it_is() {
    let long = "x".repeat(5000);
    for head in ["Run OnSuccess=1 OnFailure=0 AbortOnError=1 When=2 Command=", "RunBeforeJob ", "RunAfterJob "] {
        let command = match parse(format!("{head}/bin/echo\u{1}{long}\n").as_bytes()) {
            Ok(Command::Script(ScriptCommand::BeforeJob(command))) => command,
            Ok(Command::Script(ScriptCommand::Run(script) | ScriptCommand::AfterJob(script))) => script.command,
            other => panic!("{other:?}"),
        };
        assert_eq!(command, format!("/bin/echo {long}").into_bytes(), "{head}");
    }
}

#[test]
fn a_file_index_that_does_not_scan_is_0() {
    assert_eq!(parse(b"backup FileIndex=0\n"), Ok(Command::Backup(0)));
    assert_eq!(parse(b"backup FileIndex=12\n"), Ok(Command::Backup(12)));
    assert_eq!(parse(b"backup\n"), Ok(Command::Backup(0)));
}

#[test]
fn older_forms_of_setdebug_leave_the_rest_as_it_is() {
    let wanted = |frame: &[u8]| match parse(frame) {
        Ok(Command::Diagnose(DiagnosticCommand::SetDebug(wanted))) => wanted,
        other => panic!("{other:?}"),
    };
    let all = wanted(b"setdebug=20 trace=1 hangup=-1 blowup=-1 options=tc tags=network,protocol\n");
    assert_eq!((all.level, all.trace, all.hangup, all.blowup), (20, 1, -1, -1));
    assert_eq!((all.options.as_slice(), all.tags.as_slice()), (&b"tc"[..], &b"network,protocol"[..]));
    assert_eq!(wanted(b"setdebug=5 trace=0 hangup=3\n").hangup, 3);
    assert_eq!(wanted(b"setdebug=5 trace=0\n").hangup, -1);
    assert_eq!(reply(b"setdebug=x y\n"), "2991 Bad setdebug command: setdebug=x y\n\n");
}

#[test]
fn statistics_are_asked_for_by_name_or_all() {
    let metrics = |frame: &[u8]| match parse(frame) {
        Ok(Command::Diagnose(DiagnosticCommand::Statistics(MetricsQuery { format, names }))) => (format, names),
        other => panic!("{other:?}"),
    };
    assert_eq!(metrics(b"statistics all format=json\n"), (MetricFormat::Json, None));
    assert_eq!(metrics(b"statistics all format=bogus"), (MetricFormat::Simple, None));
    let names = |frame: &[u8]| metrics(frame).1.unwrap();
    assert_eq!(names(b"statistics format=full a  b\n"), [b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(names(b"statistics format=full a b"), [b"a".to_vec()]);
    assert!(names(b"statistics format=\n").is_empty());
    assert_eq!(reply(b"statistics foo\n"), "2900 Bad statistics command, missing argument.\n");
}

#[test]
fn a_query_needs_a_parameter_and_a_plugin() {
    assert_eq!(
        parse(b"query plugin=\"p q\" parameter=\"a\\\"b\" value=v\n"),
        Ok(Command::Plugin(PluginCommand::Query(PluginQuery { parameter: b"a\"b".to_vec(), plugin: b"p q".to_vec() })))
    );
    assert!(parse(b"query parameter=\"x\" plugin=\"\"\n").is_ok());
    for bad in [&b"query\n"[..], b"query plugin=\"x\"\n", b"query parameter=x\n"] {
        assert_eq!(reply(bad), "2992 Bad query command\n");
    }
}

#[test]
fn a_network_test_needs_digits() {
    assert_eq!(
        parse(b"testnetwork bytes=100 rtt=7\n"),
        Ok(Command::Diagnose(DiagnosticCommand::TestNetwork(Some(NetworkTest { bytes: 100, rounds: 7 }))))
    );
    assert_eq!(
        parse(b"testnetwork bytes=100\n"),
        Ok(Command::Diagnose(DiagnosticCommand::TestNetwork(Some(NetworkTest { bytes: 100, rounds: 0 }))))
    );
    assert_eq!(parse(b"testnetwork bytes= rtt=7\n"), Ok(Command::Diagnose(DiagnosticCommand::TestNetwork(None))));
}

#[test]
fn each_form_of_snapshot_has_its_order() {
    let named = "name=a\u{1}b volume=/\u{1}v device=/dev/x tdate=1 type=btrfs";
    let [name, volume, device, kind] = ["a b", "/ v", "/dev/x", "btrfs"].map(|text| text.as_bytes().to_vec());
    let snapshot = NamedSnapshot { name, volume, device, kind };
    let order = |order| Ok(Command::Snapshot(order));
    let said = |words: &str| parse(words.as_bytes());
    assert_eq!(said(&format!("snapshot query {named}")), order(SnapshotOrder::Query(snapshot.clone())));
    assert_eq!(said(&format!("snapshot del {named}\n")), order(SnapshotOrder::Delete(snapshot)));
    assert_eq!(said(&format!("snapshot ls {named} path=/x")), order(SnapshotOrder::Content));
    assert_eq!(said("snapshot retention=5\n"), order(SnapshotOrder::Retention(b"5".to_vec())));
    assert_eq!(parse(b"snapshot list\n"), Ok(Command::Snapshot(SnapshotOrder::List)));
    assert_eq!(parse(b"snapshot prune volume=/ type=btrfs"), Ok(Command::Snapshot(SnapshotOrder::Prune)));
    assert_eq!(reply(b"snapshot sync volume=/\n"), "2999 Snapshot command not found\n");
}
