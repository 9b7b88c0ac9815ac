//! The `FileSets` of the suite.

/// A FileSet and what is special about its jobs.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The FileSet's name.
    pub(crate) name: &'static str,
    /// The lines of the FileSet, one directive (or brace) each; `TREE` is the tree of files.
    pub(crate) lines: Vec<String>,
    /// Whether the jobs are accurate.
    pub(crate) is_accurate: bool,
    /// Levels at which it is saved.
    pub(crate) levels: &'static [&'static str],
    /// Whether its data is verified then, and with which option of a plugin.
    pub(crate) verify: Option<&'static str>,
}

impl Row {
    fn accurate(mut self) -> Self {
        self.is_accurate = true;
        self
    }

    fn verified(mut self, option: &'static str) -> Self {
        self.verify = Some(option);
        self.once()
    }

    fn once(mut self) -> Self {
        self.levels = &["Full"];
        self
    }
}

/// One Include: its blocks of options, with directives separated by `; `, then plugin commands, or
/// files when they begin with `File `.
fn row(name: &'static str, blocks: &[&str], commands: &[&str]) -> Row {
    let block = |block: &&str| {
        let directives = block.split("; ").map(ToOwned::to_owned);
        ["Options {".to_owned()].into_iter().chain(directives).chain(["}".to_owned()]).collect::<Vec<_>>()
    };
    let command = |command: &&str| match command.strip_prefix("File ") {
        Some(path) => format!("File = \"{path}\""),
        None => format!("Plugin = \"{command}\""),
    };
    let mut lines = vec!["Include {".to_owned()];
    lines.extend(blocks.iter().flat_map(block));
    lines.extend(commands.iter().map(command));
    lines.push("}".to_owned());
    Row { name, lines, is_accurate: false, levels: &["Full", "Incremental"], verify: None }
}

/// Files of each type, with each flag and each kind of record.
const FILES: [&str; 10] = [
    "tp:reg=/@tp/file1,data=hello,mode=0640,uid=7,gid=8",
    "tp:reg=/@tp/big,size=200000;reg=/@tp/small-blocks,size=5000,block=777;empty=/@tp/empty",
    "tp:dir=/@tp/d/,link=/@tp/d/,noread;dir=/@tp/d2,link=/@tp/d2/,data=of-a-directory;lnk=/@tp/lnk,link=target,noread;hard=/@tp/hard,link=/@tp/file1,linkfi=1,noread",
    "tp:spec=/@tp/null,noread;fifo=/@tp/fifo,noread;raw=/@tp/raw,data=raw;deleted=/@tp/deleted",
    "tp:reg=/@tp/holes,size=3000,block=1000,offsets=100000;reg=/@tp/delta,data=delta,delta=4;reg=/@tp/both,size=2000,block=500,offsets=1000,delta=0",
    "tp:reg=/@tp/sparse,size=100,sparse;reg=/@tp/sparse-zeros,zeros=300000,sparse;reg=/@tp/zeros,zeros=300000;reg=/@tp/sparse-offsets,size=3000,block=1000,offsets=4000,sparse",
    "tp:reg=/@tp/updated,data=update,update;reg=/@tp/updated-only,data=update,update,noread;dir=/@tp/updated-dir/,link=/@tp/updated-dir/,update,noread;reg=/@tp/unportable,data=x,portable=0",
    "tp:reg=/@tp/xacl,data=x,acl=one,acl=two,xattr=three;dir=/@tp/xacl-dir/,link=/@tp/xacl-dir/,acl=of-dir,noread;lnk=/@tp/xacl-link,link=x,xattr=of-link,noread",
    "tp:reg=/@tp/metadata,data=x,blob=first,blob=second;reg=/@tp/after,data=x;dir=/@tp/meta-dir/,link=/@tp/meta-dir/,blob=of-dir,noread;empty=/@tp/meta-empty,blob=empty",
    "tp:reg=/@tp/stream,data=x,streamword=4194304;reg=/@tp/stream-refused,data=x,streamword=4194304,streamrc=2",
];

/// Those that a restore does not wait for.
const PACKED: [&str; 7] = [FILES[0], FILES[1], FILES[2], FILES[4], FILES[5], FILES[6], FILES[7]];

/// Whether data is read though the packet says `no_read`, and sizes that are not those of the data.
const SIZES: [&str; 2] = [
    "tp:reg=/@tp/unread,data=x,noread;empty=/@tp/unread-empty,noread;reg=/@tp/unread0,data=x,noread,statsize=0;reg=/@tp/unread-1,data=x,noread,statsize=-1;raw=/@tp/unread-raw,data=raw,noread,statsize=0;fifo=/@tp/unread-fifo,data=fifo,noread",
    "tp:reg=/@tp/size,data=hello,statsize=-1;reg=/@tp/size0,data=hello,statsize=0;reg=/@tp/size2,data=hello,statsize=2;empty=/@tp/not-empty,data=hello;lnk=/@tp/link-data,link=x,data=hello;spec=/@tp/spec-data,data=hello",
];

const OBJECTS: [&str; 2] = [
    "tp:object=small,data=hello object,type=27,index=3;reg=/@tp/file,data=x;object=report,data={a},type=30;pluginobject=vm name,path=/@tp/with space,category=Virtual Machine,kind=VMWare,source=src,uuid=u-1,size=12345,status=T,count=7;pluginobject=bare,path=/@tp/bare",
    "tp:object=first,data=hello,type=25,index=3;reg=/@tp/no-digest,data=x;object=big,size=5000,type=25,index=4;object=thousand,size=1000,type=25;object=thousand-one,size=1001,type=27",
];

/// Failures that leave the job going on.
const ERRORS: [&str; 9] = [
    "tp:reg=/@tp/no-open,data=x,openerrno=13;reg=/@tp/no-read,size=2000,block=1000,readerrno=5;reg=/@tp/bad-open,data=x,openrc=2;reg=/@tp/bad-read,data=x,readrc=2",
    "tp:reg=/@tp/close,data=x,closestatus=5;reg=/@tp/close-rc,data=x,closerc=2;reg=/@tp/aclrc,data=x,acl=a,aclrc=2;reg=/@tp/xattrrc,data=x,xattr=a,xattrrc=2",
    "tp:file=/@tp/noaccess,type=7;file=/@tp/nofollow,type=8;file=/@tp/nostat,type=9;file=/@tp/nochg,type=10;file=/@tp/dirnochg,type=11;file=/@tp/isarch,type=12",
    "tp:file=/@tp/norecurse/,type=13,link=/@tp/norecurse/;file=/@tp/nofschg/,type=14,link=/@tp/nofschg/;file=/@tp/noopen,type=15;file=/@tp/dirbegin,type=18;file=/@tp/invalidfs/,type=19,link=/@tp/invalidfs/",
    "tp:file=/@tp/plugin,type=22;file=/@tp/base,type=24;file=/@tp/unknown,type=31;file=/@tp/far,type=1000;file=/@tp/negative,type=-3",
    "tp:reg=/@tp/said,data=x,say=7:info;reg=/@tp/warned,data=x,say=6:a warning;reg=/@tp/wrong,data=x,say=5:an error;reg=/@tp/notsaved,data=x,say=9:not saved;reg=/@tp/skipped,data=x,say=10:skipped;reg=/@tp/security,data=x,say=15:security",
    "tp:reg=/@tp/ends,data=x,endrc=1;reg=/@tp/never,data=x",
    "tp:reg=/@tp/start-fails,data=x,startrc=2;reg=/@tp/never2,data=x",
    "tp:event9=2;reg=/@tp/never3,data=x",
];

const METADATA: [&str; 1] = [
    "tp:reg=/@tp/fits,data=x,blobsize=900000;reg=/@tp/mail,size=3000000,blobsize=2800000;reg=/@tp/long,data=x,blobsize=2999976;reg=/@tp/then,data=x",
];

/// Metadata that can't be sent: with the stock daemon it ends its file.
const METADATA_REFUSED: [&str; 1] = [
    "tp:dir=/@tp/too-big/,link=/@tp/too-big/,noread,blobsize=2999977;reg=/@tp/no-packets,data=x,emptymeta;reg=/@tp/then,data=x",
];

/// Each `FileEvent` is sent with its own file; the stock daemon repeats it with all later ones.
const EVENTS: [&str; 1] =
    ["tp:reg=/@tp/plain,data=x;reg=/@tp/event,data=x,event=100/some source A/good description,event=2/s/two"];

const ACCURATE: [&str; 4] = [
    "tp:reg=/@tp/kept,data=x,check=1,attribs;reg=/@tp/changed,data=x,check=1,attribs,only=F;reg=/@tp/changed,data=xy,check=1,attribs,only=I;reg=/@tp/gone,data=x,only=F;reg=/@tp/held,data=x,only=F",
    "tp:dir=/@tp/dir/,link=/@tp/dir/,noread;reg=/@tp/seen-otherwise,data=x,only=F;reg=/@tp/seer,data=x,seen=/@tp/seen-otherwise",
    "tp:reg=/@tp/delta,data=one,delta=0,check=2,attribs,only=F;reg=/@tp/delta,data=two,delta=1,check=2,attribs,only=I;reg=/@tp/ends,data=x,endrc=1",
    "tp:object=object,data=o,type=27;reg=/@tp/update,data=x,update,only=I;reg=/@tp/update,data=x,only=F;checkfile=/@tp/held",
];

/// What is restored: each status of createFile, each failure of a call.
const RESTORED: [&str; 10] = [
    "tp:reg=/@r/cf5,data=xyz,cf=5;reg=/@r/cf5set,data=xyz,cf=5,setcf=5;lnk=/@r/cflnk,link=t,cf=5,setcf=5,noread;dir=/@r/cfdir/,link=/@r/cfdir/,cf=5,setcf=5,noread;reg=/@r/cf1,data=x,cf=1;reg=/@r/cf2,data=x,cf=2;reg=/@r/cf4,data=x,cf=4;reg=/@r/cf9,data=x,cf=9;reg=/@r/cf0,data=x,cf=0",
    "tp:reg=/@r/plain,data=hello,mode=0640,uid=7,gid=8,acl=a,xattr=b,blob=m;dir=/@r/dir/,link=/@r/dir/,noread,acl=d;lnk=/@r/lnk,link=target,noread,xattr=l;spec=/@r/spec,noread;reg=/@r/big,size=200000;empty=/@r/empty",
    "tp:reg=/@r/cfrc,data=x,cf=3,cfrc=2;reg=/@r/cfrc7,data=x,cf=3,cfrc=7;reg=/@r/setrc,data=x,setrc=2;reg=/@r/wopen,data=x,wopenerrno=13;reg=/@r/closed,data=x,closestatus=5;reg=/@r/xaclrc,data=x,acl=a,xattr=b,xaclrestorerc=2",
    "tp:reg=/@r/metarc7,data=x,blob=m,metarc=7;reg=/@r/after7,data=x",
    "tp:reg=/@r/writeshort,size=200000,writeshort;reg=/@r/writeerr,size=200000,writeerrno=28;reg=/@r/writerc,size=10,writerc=2",
    "tp:event10=2;reg=/@r/event10,data=x,acl=a,blob=m",
    "tp:startrestore=2;reg=/@r/startrestore,data=x,acl=a,blob=m",
    "tp:endrestore=2;reg=/@r/endrestore,data=x",
    "tp:reg=/@r/offsets,size=3000,block=1000,offsets=100000;reg=/@r/sparse,zeros=300000,sparse;reg=/@r/size,data=hello,statsize=2;reg=/@r/update,data=x,update;reg=/@r/update2,size=200000,update",
    "tp:reg=/@r/untrue-core,size=3014656,statsize=389981,cf=5,setcf=5",
];

/// Sizes that no daemon minds, because the plugin sets the attributes itself.
const UNTRUE: [&str; 1] = [
    "tp:reg=/@r/long,size=3014656,statsize=389981,cf=5;reg=/@r/own,size=3014656,statsize=389981;reg=/@r/short,size=100,statsize=389981,cf=5;reg=/@r/none,size=100,statsize=0,cf=5;reg=/@r/large,size=100,statsize=-1,cf=5",
];

/// For the verify plugin: files of each type, and each of its answers that leave the job going on.
const VERIFIED: &str = "tp:reg=/@v/a.virus,data=x;dir=/@v/d/,link=/@v/d/,noread;empty=/@v/empty;object=o,data=x,type=27;pluginobject=p,path=/@v/p;reg=/@v/b.nostart,data=x;reg=/@v/c.noopen,data=x;reg=/@v/d.openrc,data=x;reg=/@v/e.virus,size=200000;reg=/@v/offsets,size=3000,block=1000,offsets=100000;raw=/@v/raw,data=x;reg=/@v/meta,data=x,blob=m,acl=a;reg=/@v/last,data=x,event=7/of/backup";

/// What is saved.
pub(crate) fn backups() -> Vec<Row> {
    let md5 = ["Signature = MD5"];
    vec![
        row("files", &md5, &FILES),
        row("packed", &["Signature = SHA1; Compression = GZIP6; Sparse = yes"], &PACKED),
        row("stripped", &["Signature = MD5; Strip Path = 1"], &[
            "tp:reg=/@tp/strip,link=/@tp/strip,data=x;reg=/@tp/unstripped,data=x;dir=/dir/sub/,link=/dir/sub/,noread;lnk=/@tp/lnk,link=target,noread",
        ]).once(),
        row("sizes", &md5, &SIZES).once(),
        row("objects", &md5, &OBJECTS),
        row("errors", &md5, &ERRORS).once(),
        row("metadata", &md5, &METADATA).once(),
        row("metadata-refused", &md5, &METADATA_REFUSED).once(),
        row("events", &md5, &EVENTS).once(),
        row("malformed", &md5, &["tp x", ":x", "tp:reg=/@tp/present,data=x", "tp"]).once(),
        row("programs", &md5, &["\\\\|cat TREE/commands", "\\\\<TREE/commands"]).once(),
        row("inherited", &["Signature = SHA1; WildFile = \"*/z\"", "Signature = MD5"], &["File TREE/digests", "tp:reg=/@tp/after-files,data=x"]).once(),
        row("inherited-none", &["Signature = SHA1; WildFile = \"*/z\"", "Signature = MD5"], &["tp:reg=/@tp/no-files,data=x"]).once(),
        row("option-plugin", &["Signature = MD5; Plugin = \"opt:some:args\""], &["File TREE/opt", "tp:reg=/@tp/beside,data=x"]),
        row("option-packed", &["Signature = MD5; Sparse = yes; Compression = GZIP; Plugin = \"opt:x\""], &["File TREE/opt"]).once(),
        row("option-malformed", &["Signature = MD5; Plugin = \"opt x\""], &["File TREE/opt/a.ok"]).once(),
        row("accurate", &["Signature = MD5; Accurate = mcs"], &ACCURATE).accurate(),
        row(
            "accurate-digests",
            &["Signature = MD5; Accurate = mcs5"],
            &["tp:reg=/@tp/asked,data=x,attribs;dir=/@tp/dir/,link=/@tp/dir/,noread,attribs;reg=/@tp/new,data=x,attribs,only=I"],
        )
        .accurate(),
        row("added", &md5, &["File TREE/inc", "inc:exclude=TREE/inc/excluded;include=TREE/opt/a.ok;plugin=tp:reg=/@tp/by-plugin~data=x"]),
        row("new-include", &md5, &["File TREE/inc", "inc:newinclude;newoptions;options=S;include=TREE/digests;exclude=TREE/digests/z;plugin=tp:reg=/@tp/by-plugin2~data=x"]).once(),
        row("pre-include", &md5, &["inc:newpre;options=S;include=TREE/digests;plugin=tp:reg=/@tp/by-plugin3~data=x", "File TREE/inc"]).once(),
        row("late-include", &md5, &["inc:late-newinclude;late-options=S;late-include=TREE/digests", "File TREE/inc"]).once(),
        row("include-while-read", &md5, &["tp:reg=/@tp/reader,data=hello,include=TREE/verify;reg=/@tp/large,size=200000,include=TREE/digests;reg=/@tp/behind,data=x", "File TREE/inc"]).once(),
        row("new-options", &md5, &["File TREE/inc", "inc:newoptions;options=e;wild=*.wild,type=F;regex=\\\\.regex$,type=F;wild=base.*,type=B;wild=*/sub,type=D"]).once(),
        row("questions", &md5, &["File TREE/inc", "inc:accept=TREE/inc/plain;accept=TREE/opt/b.skip;check=TREE/inc/plain;attribs=TREE/inc/plain;seen=TREE/inc/plain;set=22;set=1;message;longmessage;memory"]).accurate(),
        row("restored", &md5, &RESTORED).once(),
        row("untrue-sizes", &md5, &UNTRUE).once(),
        row("restored-metadata", &md5, &["tp:reg=/@r/metarc2,data=x,blob=m,metarc=2;reg=/@r/after2,data=x"]).once(),
        row("verified", &["Signature = MD5; Compression = GZIP; Sparse = yes"], &["File TREE/verify", VERIFIED]).verified("ver: abc=1"),
        row("bad-write", &md5, &["tp:reg=/@v/a,data=x;reg=/@v/b.badwrite,size=200000;reg=/@v/c,data=x"]).verified("ver: x"),
        row("write-result", &md5, &["tp:reg=/@v/a,data=x;reg=/@v/b.writerc,size=200000;reg=/@v/c,data=x"]).verified("ver: x"),
        row("bad-close", &md5, &["tp:reg=/@v/a,data=x;reg=/@v/b.badclose,data=x;reg=/@v/c,data=x"]).verified("ver: x"),
        row("close-result", &md5, &["tp:reg=/@v/a,data=x;reg=/@v/b.closerc,data=x;reg=/@v/c,data=x"]).verified("ver: x"),
        row("bad-end", &md5, &["tp:reg=/@v/a,data=x;reg=/@v/b.badend,data=x;reg=/@v/c,data=x"]).verified("ver: x"),
        row("no-verify-plugin", &md5, &["tp:reg=/@v/a,data=x"]).verified("nope: x"),
        row("wrong-question", &md5, &["inc:wrong", "tp:reg=/@tp/never,data=x"]).once(),
        row("no-type", &md5, &["tp:file=/@tp/x,type=0"]).once(),
        row("no-object-name", &md5, &["tp:reg=/@tp/before,data=x;object=x,type=25,noname,data=x;reg=/@tp/behind,data=x"]).once(),
        row("no-file-name", &md5, &["tp:reg=/@tp/x,nofname,data=x"]).once(),
        row("filled", &md5, &["tp:object=filled,type=28,data=x;reg=/@tp/x,data=x"]).once(),
        row("bad-metadata", &md5, &["tp:reg=/@tp/x,data=x,badmeta=7;reg=/@tp/y,data=x"]).once(),
        row("absent", &md5, &["tp:reg=/@tp/x,data=x", "nope:x", "tp:reg=/@tp/y,data=x"]).once(),
        row("fatal", &md5, &["tp:reg=/@tp/x,data=x;reg=/@tp/y,data=x,say=4:fatal;reg=/@tp/z,data=x", "tp:reg=/@tp/w,data=x"]).once(),
        row("no-option-plugin", &["Signature = MD5; Plugin = \"nope:x\""], &["File TREE/digests"]).once(),
    ]
}

/// Files of which only the attributes are saved again, and which their plugin leaves to the daemon
/// in a restore. The Director restores such a file together with what was saved before.
pub(crate) fn updates() -> Vec<Row> {
    let files = [
        ("reg=/@r/data", "data=whole", "data=xyz,mode=0604"),
        ("reg=/@r/none", "data=whole", "data=xyz,mode=0604,noread"),
        ("reg=/@r/set-by-plugin", "data=whole", "data=xyz,mode=0604,setcf=3"),
        ("reg=/@r/large", "size=200000", "size=200000,mode=0604"),
        ("reg=/@r/metadata", "data=whole", "data=x,mode=0604,acl=a,xattr=b,blob=m"),
        ("dir=/@r/dir/,link=/@r/dir/", "noread", "mode=0701,noread"),
        ("lnk=/@r/lnk,link=t", "noread", "noread"),
        ("reg=/@r/last", "data=whole", "data=other,mode=0604"),
    ];
    let steps = files.map(|(file, before, update)| {
        format!("{file},{before},cf=5,setcf=5,only=F;{file},update,cf=5,setcf=5,{update},only=I")
    });
    vec![row("updates", &["Signature = MD5"], &[&format!("tp:{}", steps.join(";"))])]
}

/// A restore of what was saved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Restore {
    /// Which row's backup, and of which level.
    pub(crate) row: &'static str,
    pub(crate) level: &'static str,
    /// The ends of the names of the clients that restore it; see [`crate::stage::NAME`].
    pub(crate) onto: &'static str,
    /// Beside the stock daemon each restores what the other one saved.
    pub(crate) is_crossed: bool,
    /// Switches of the plugins.
    pub(crate) switches: &'static [&'static str],
}

impl Restore {
    /// A name of its own.
    pub(crate) fn label(&self) -> String {
        format!("{}{}{}", self.row, self.onto, self.switches.join("").replace('.', "-"))
    }
}

/// A restore for each way that plugins take part in it.
pub(crate) fn restores() -> Vec<Restore> {
    let plain = |row| Restore { row, level: "Full", onto: "", is_crossed: false, switches: &[] };
    vec![
        Restore { switches: &["tp.features"], ..plain("restored") },
        Restore { is_crossed: true, ..plain("restored") },
        Restore { onto: "-opt", ..plain("restored") },
        Restore { onto: "-bare", ..plain("restored") },
        Restore { switches: &["tp.disabled"], ..plain("restored") },
        plain("restored-metadata"),
        Restore { is_crossed: true, ..plain("untrue-sizes") },
        Restore { is_crossed: true, ..plain("metadata") },
        plain("objects"),
        Restore { is_crossed: true, ..plain("packed") },
        Restore { is_crossed: true, ..plain("option-plugin") },
        Restore { onto: "-bare", ..plain("option-plugin") },
        Restore { level: "Incremental", is_crossed: true, ..plain("accurate") },
    ]
}
