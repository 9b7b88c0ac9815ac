//! What a Director asks about plugins, frame by frame: queries, estimates and listings, features,
//! components, options, objects and lists of files for a restore.

use std::fs;
use std::path::Path;

use bed::peer::{Frame, logged_in};
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, Fd, PATIENCE, Plugins, Result, StockRecord, wait_for};

use crate::stage::{NAME, plugins_in};
use crate::told;

/// What a talk waits for behind a frame.
enum Until {
    /// Nothing.
    Nothing,
    /// A frame.
    Reply,
    /// A signal.
    Signal,
}

/// What the Director says in a session of its own.
struct Talk {
    name: &'static str,
    said: Vec<(Vec<u8>, Until)>,
    switch: Option<&'static str>,
}

/// `End of data`, as a signal instead of a frame.
const END: &[u8] = b"\0END";

fn asked(name: &'static str, said: &[&str]) -> Talk {
    let said = said.iter().map(|text| (text.as_bytes().to_vec(), Until::Signal)).collect();
    Talk { name, said, switch: None }
}

/// An estimate of an Include with these lines.
fn estimate(name: &'static str, lines: &[&str]) -> Talk {
    let mut said =
        vec![(b"level = full mtime_only=0\n".to_vec(), Until::Reply), (b"fileset\n".to_vec(), Until::Nothing)];
    let frames = ["I\n"].iter().chain(lines).chain(&["N\n"]);
    said.extend(frames.map(|line| (line.as_bytes().to_vec(), Until::Nothing)));
    said.push((END.to_vec(), Until::Reply));
    said.push((b"estimate listing=1\n".to_vec(), Until::Signal));
    Talk { name, said, switch: None }
}

/// Objects of a restore: with and without names of plugins, packed and not.
fn objects() -> Vec<(Vec<u8>, Until)> {
    let nothing = |text: &[u8]| (text.to_vec(), Until::Nothing);
    let packed = {
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packer, &[b'z'; 2000]).unwrap();
        packer.finish().unwrap()
    };
    let object = |words: &str, name: &[u8], bytes: &[u8]| {
        [nothing(format!("restoreobject JobId=3 {words}\n").as_bytes()), nothing(name), nothing(bytes)]
    };
    let mut objects = Vec::new();
    objects.extend(object("5,5,1,25,0,9,tp:a\u{1}b", b"object", b"hello"));
    objects.extend(object("5,5,2,25,0,9", b"of all", b"hello"));
    objects.extend(object("5,5,3,28,0,9,*all*", b"of all by name", b"hello"));
    objects.extend(object("5,5,3,28,0,9,job:x", b"of the job", b"hello"));
    objects.extend(object("5,5,4,25,0,9,nope:x", b"of none", b"hello"));
    objects.extend(object(&format!("{},2000,5,25,1,9,opt:x", packed.len()), b"packed", &packed));
    objects.extend(object(&format!("{},1999,5,25,1,9,tp:x", packed.len()), b"longer", &packed));
    objects.extend(object(&format!("{},2001,5,25,1,9,tp:x", packed.len()), b"shorter", &packed));
    objects.extend(object("0,0,6,25,0,9,tp:x", b"empty", b""));
    objects.push((b"restoreobject end\n".to_vec(), Until::Reply));
    objects
}

fn talks(tree: &Path) -> Vec<Talk> {
    let nothing = |text: &[u8]| (text.to_vec(), Until::Nothing);
    let reply = |text: &[u8]| (text.to_vec(), Until::Reply);
    let tree = tree.display();
    let lstat = "A A IGg B H I A F BAA B 7msoA 7msoA 7msoA A A C";
    let list = |checksum: &str| nothing(format!("/@tp/x\0{lstat}\0{checksum}\x003").as_bytes());
    vec![
        asked("query", &["query parameter=\"3\" plugin=\"tp:some command\" value=\"\"\n"]),
        asked("query-one", &["query parameter=\"word\" plugin=\"tp\" value=\"v\"\n"]),
        asked("query-error", &["query parameter=\"error\" plugin=\"tp:x\" value=\"\"\n"]),
        asked("query-absent", &["query parameter=\"x\" plugin=\"nope:x\" value=\"\"\n"]),
        asked("query-without", &["query parameter=\"x\" plugin=\"opt:x\" value=\"\"\n"]),
        asked("query-malformed", &["query parameter=\"x\" plugin=\"tp x\" value=\"\"\n"]),
        Talk {
            switch: Some("tp.disabled"),
            ..asked("query-disabled", &["query parameter=\"x\" plugin=\"tp:x\" value=\"\"\n"])
        },
        asked("query-bad", &["query parameter=\"x\"\n"]),
        asked("features-none", &["PluginFeatures\n"]),
        Talk { switch: Some("tp.features"), ..asked("features", &["PluginFeatures\n"]) },
        estimate("listing", &["O h\n", "P tp: listing=/@tp/"]),
        estimate(
            "estimate",
            &[
                "O M\n",
                &format!("F {tree}/opt\n"),
                "P tp:reg=/@tp/a,data=hello,check,attribs,seen=/x;empty=/@tp/e;dir=/@tp/d/,link=/@tp/d/;lnk=/@tp/l,link=x;hard=/@tp/h,link=/@tp/a,data=hello;spec=/@tp/s;fifo=/@tp/f;raw=/@tp/r,data=raw;deleted=/@tp/g;object=o,data=object;pluginobject=p,path=/@tp/p,size=77",
                "P tp:file=/@tp/nochg,type=10,data=x;file=/@tp/noaccess,type=7,data=x;file=/@tp/junction,type=26,data=x;file=/@tp/unknown,type=31,data=x;reg=/@tp/last,statsize=-1",
            ],
        ),
        estimate(
            "estimate-event",
            &["O M\n", "P tp:event11=2;reg=/@tp/a,data=x", "P tp:reg=/@tp/a,data=x,endrc=1;reg=/@tp/b,data=x"],
        ),
        estimate("estimate-malformed", &["O M\n", "P tp x", "P :x", "P tp", "P tp:reg=/@tp/a,data=x"]),
        estimate("estimate-absent", &["O M\n", "P nope:x", "P tp:reg=/@tp/a,data=x"]),
        estimate("estimate-no-type", &["O M\n", "P tp:file=/@tp/a,type=0", "P tp:reg=/@tp/a,data=x"]),
        estimate("estimate-no-name", &["O M\n", "P tp:reg=/@tp/a,nofname", "P tp:reg=/@tp/a,data=x"]),
        estimate("estimate-object", &["O M\n", "P tp:object=a,noname,type=25,data=x;reg=/@tp/a,data=x"]),
        estimate(
            "estimate-message",
            &[
                "O M\n",
                "P tp:reg=/@tp/a,data=x,say=7:info;reg=/@tp/b,data=x,say=5:an error;reg=/@tp/c,data=x,say=6:a warning",
            ],
        ),
        estimate("estimate-option", &["O M\n", "G opt:x\n", &format!("F {tree}/opt\n")]),
        estimate("estimate-questions", &["O M\n", &format!("P inc:include={tree}/inc;check={tree}/inc/plain;message")]),
        Talk { switch: Some("tp.disabled"), ..estimate("estimate-disabled", &["O M\n", "P tp:reg=/@tp/a,data=x"]) },
        Talk {
            name: "component",
            said: vec![nothing(b"component\n"), nothing(b"one component\n"), nothing(b"two\n"), reply(END)],
            switch: None,
        },
        Talk {
            name: "options",
            said: vec![reply(b"pluginoptions=tp:\x01a=\"b\x01c\"\n"), reply(b"pluginoptions=opt:x\n")],
            switch: None,
        },
        asked("options-bad", &["pluginoptions\n"]),
        Talk { name: "options-empty", said: vec![reply(b"pluginoptions=\n")], switch: None },
        Talk { name: "objects", said: objects(), switch: None },
        asked("object-bad", &["restoreobject JobId=3 5,5\n"]),
        Talk {
            name: "file-list",
            said: vec![
                nothing(b"restorefilelist plugin=tp-fd.so\n"),
                list("c2Fs"),
                list(""),
                nothing(format!("/@tp/y\0{lstat}").as_bytes()),
                nothing(END),
                nothing(b"restorefilelist plugin=nope-fd.so\n"),
                list("c2Fs"),
                (END.to_vec(), Until::Nothing),
                (b"PluginFeatures\n".to_vec(), Until::Signal),
            ],
            switch: None,
        },
        Talk { name: "file-list-bad", said: vec![reply(b"restorefilelist\n")], switch: None },
        asked("header", &[".status header api=2 api_opts=o"]),
        asked("header-json", &[".status header api=2 api_opts=j"]),
        asked("status", &["status"]),
    ]
}

/// A frame without what depends on the process or the moment; `None` for what has nothing to do
/// with plugins in a status.
fn told(frame: &Frame, client: &str, talk: &Talk) -> Option<String> {
    let Frame::Data(payload) = frame else { return Some(format!("{frame:?}")) };
    let text = String::from_utf8_lossy(payload).replace(client, "CLIENT");
    if talk.name.contains("header") || talk.name == "status" {
        let from = |start| text.find(start).and_then(|from| text.get(from..));
        let part = from("\"plugins\"").or_else(|| from("plugins=")).or_else(|| from(" Plugin:"));
        return part.map(|part| part.split(['\n', ']']).next().unwrap_or_default().to_owned());
    }
    // The Director stores these.
    let text = text
        .split_once("2000 OK Job 15.0.3 ")
        .and_then(|(_, job)| job.split_once(';'))
        .map_or(text.clone(), |(_, plugins)| format!("OK Job;{plugins}"));
    Some(told::without_clock(&text))
}

/// One session, and everything that came back.
fn session(bed: &mut Bed, name: &str, talk: &Talk, job: u32) -> Result<Vec<String>> {
    let switch = talk.switch.map(|switch| bed.folder().join("work").join(name).join("trace").join(switch));
    if let Some(switch) = &switch {
        fs::write(switch, "").unwrap();
    }
    let mut peer = logged_in(bed.client(name)?.port(), DIRECTOR)?;
    peer.send(format!("JobId={job} Job=b.2026-11-21_02.19.56_04 SDid=1 SDtime=2 Authorization=dummy\n").as_bytes())?;
    let mut heard = vec![peer.receive()?];
    for (frame, until) in &talk.said {
        if frame == END {
            peer.signal(-1)?;
        } else {
            peer.send(frame)?;
        }
        loop {
            if !matches!(until, Until::Nothing) {
                heard.push(peer.receive()?);
            }
            let is_text = matches!(heard.last(), Some(Frame::Data(_)));
            if !is_text || !matches!(until, Until::Signal) {
                break;
            }
        }
    }
    peer.finish()?;
    heard.extend(peer.rest()?);
    if let Some(switch) = &switch {
        fs::remove_file(switch).unwrap();
    }
    Ok(heard.iter().filter_map(|frame| told(frame, name, talk)).collect())
}

/// The trace of a session, when the job has ended.
fn trace(bed: &Bed, name: &str, job: u32) -> Result<Vec<String>> {
    let path = bed.folder().join("work").join(name).join(format!("trace/job-{job}"));
    let read = || String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
    // As many contexts are freed as were made.
    wait_for("the end of a job's plugins", PATIENCE, || {
        let text = read();
        let count = |call: &str| text.lines().filter(|line| line.ends_with(call)).count();
        let is_over = count(" newPlugin") > 0 && count(" newPlugin") == count(" freePlugin");
        Ok(if is_over { Ok(()) } else { Err(text) })
    })?;
    let lines: Vec<_> = read().lines().map(ToOwned::to_owned).collect();
    Ok(told::plain_trace(&lines, job, name))
}

/// Says what differs from the talks with the stock daemon.
pub(crate) fn differences() -> Result<Vec<String>> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("plugin-talks", [ClientOptions::new(fd).named(NAME)])?.in_clear();
    let plugins = plugins_in(&options.folder)?;
    options.folder.make(&format!("work/{NAME}/trace"))?;
    let client = &mut options.clients[0];
    client.file_daemon.push("Plugin Options = \"tp: o1=1\", \"nope: o2=2\", \"opt: o3=3\"".to_owned());
    client.plugins = Plugins::In(plugins);
    client.settings.push("plugins.bpipe = \"off\"".to_owned());
    let tree = options.source()?;
    crate::stage::plant(&tree)?;
    let mut bed = Bed::prepare(options)?;
    bed.client(NAME)?.daemon().start()?;
    let record = StockRecord::open("plugins")?;
    let mut wrong = Vec::new();
    for (number, talk) in (100..).zip(&talks(&tree)) {
        // An estimate has no JobId.
        let job = if talk.name.starts_with("estimate") || talk.name == "listing" { 0 } else { number };
        let path = bed.folder().join("work").join(NAME).join(format!("trace/job-{job}"));
        let _ = fs::remove_file(path);
        let frames = session(&mut bed, NAME, talk, job)?;
        let mut trace = trace(&bed, NAME, job)?;
        for line in &mut trace {
            if talk.name.starts_with("estimate") && line.contains(" endBackupFile ") {
                // How many files the stock daemon has counted so far depends on their types.
                line.truncate(line.find(" index=").unwrap_or(line.len()));
            }
            if talk.name == "file-list" && fd == Fd::Ours {
                // The stock daemon loses the number of a delta behind a checksum (reference 07
                // §7.3).
                *line = line.replace("ofname=\"/@tp/x\" delta=3", "ofname=\"/@tp/x\" delta=0");
            }
        }
        let parts = vec![("frames", frames), ("trace", trace)];
        let row = format!("talk {}", talk.name);
        wrong.extend(record.differences_of_parts(bed.folder(), &row, talk.name, parts)?);
    }
    Ok(wrong)
}
