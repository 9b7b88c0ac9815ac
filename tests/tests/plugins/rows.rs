//! The FileSets of the suite.

/// A FileSet and what is special about its jobs.
#[derive(Debug, Clone)]
pub struct Row {
    /// The FileSet's name.
    pub name: &'static str,
    /// The lines of its Include, one directive (or brace) each; `TREE` is the tree of files.
    pub lines: Vec<String>,
    /// Whether the jobs are accurate.
    pub is_accurate: bool,
}

/// A row with these options and plugin commands.
fn row(name: &'static str, options: &str, commands: &[&str]) -> Row {
    let options = options.split("; ").map(ToOwned::to_owned);
    let commands = commands.iter().map(|command| match command.strip_prefix("File ") {
        Some(path) => format!("File = \"{path}\""),
        None => format!("Plugin = \"{command}\""),
    });
    let mut lines = vec!["Options {".to_owned()];
    lines.extend(options);
    lines.push("}".to_owned());
    lines.extend(commands);
    Row { name, lines, is_accurate: false }
}

/// What is saved with both daemons at the levels Full and Incremental.
pub fn backups() -> Vec<Row> {
    let files = [
        "tp:reg=/@tp/file1,data=hello,mode=0640,uid=7,gid=8",
        "tp:reg=/@tp/big,size=200000;reg=/@tp/small-blocks,size=5000,block=777;empty=/@tp/empty;reg=/@tp/unread,data=x,noread",
        "tp:dir=/@tp/d/,link=/@tp/d/,noread;dir=/@tp/d2,link=/@tp/d2/,data=of-a-directory;lnk=/@tp/lnk,link=target,noread;hard=/@tp/hard,link=/@tp/file1,linkfi=1,noread",
        "tp:spec=/@tp/null,noread;fifo=/@tp/fifo,noread;raw=/@tp/raw,data=raw;deleted=/@tp/deleted",
        "tp:reg=/@tp/holes,size=3000,block=1000,offsets=100000;reg=/@tp/delta,data=delta,delta=4;reg=/@tp/both,size=2000,block=500,offsets=1000,delta=0;reg=/@tp/sparse,size=100,sparse",
        "tp:reg=/@tp/updated,data=update,update;reg=/@tp/updated-only,data=update,update,noread;reg=/@tp/unportable,data=x,portable=0",
        "tp:reg=/@tp/xacl,data=x,acl=one,acl=two,xattr=three;dir=/@tp/xacl-dir/,link=/@tp/xacl-dir/,acl=of-dir,noread;lnk=/@tp/xacl-link,link=x,xattr=of-link,noread",
        "tp:reg=/@tp/metadata,data=x,blob=first,blob=second;reg=/@tp/mail,data=x,mail=1;reg=/@tp/after,data=x",
        "tp:reg=/@tp/stream,data=x,streamword=4194304;reg=/@tp/stream-refused,data=x,streamword=4194304,streamrc=2",
        "tp:reg=/@tp/size,data=hello,statsize=-1;reg=/@tp/size0,data=hello,statsize=0;reg=/@tp/size2,data=hello,statsize=2",
    ];
    let objects = [
        "tp:object=small,data=hello object,type=27,index=3;reg=/@tp/file,data=x;object=report,data={a},type=30;pluginobject=vm name,path=/@tp/with space,category=Virtual Machine,kind=VMWare,source=src,uuid=u-1,size=12345,status=T,count=7;pluginobject=bare,path=/@tp/bare",
        "tp:object=small,data=hello,type=25,index=3;reg=/@tp/no-digest,data=x;object=big,size=5000,type=25,index=4;object=thousand,size=1000,type=27;object=thousand-one,size=1001,type=27",
    ];
    let errors = [
        "tp:reg=/@tp/no-open,data=x,openerrno=13;reg=/@tp/no-read,size=2000,block=1000,readerrno=5;reg=/@tp/bad-open,data=x,openrc=2;reg=/@tp/bad-read,data=x,readrc=2",
        "tp:reg=/@tp/close,data=x,closestatus=5;reg=/@tp/close-rc,data=x,closerc=2;reg=/@tp/xaclrc,data=x,acl=a,xaclrc=2",
        "tp:file=/@tp/noaccess,type=7;file=/@tp/nofollow,type=8;file=/@tp/nostat,type=9;file=/@tp/nochg,type=10;file=/@tp/dirnochg,type=11;file=/@tp/isarch,type=12",
        "tp:file=/@tp/norecurse/,type=13,link=/@tp/norecurse/;file=/@tp/nofschg/,type=14,link=/@tp/nofschg/;file=/@tp/noopen,type=15;file=/@tp/dirbegin,type=18;file=/@tp/invalidfs/,type=19,link=/@tp/invalidfs/;file=/@tp/invaliddt,type=20;file=/@tp/reparse,type=21,link=x;file=/@tp/junction,type=26,link=y",
        "tp:file=/@tp/plugin,type=22;file=/@tp/base,type=24;file=/@tp/filled,type=28;file=/@tp/unknown,type=31;file=/@tp/far,type=1000",
        "tp:reg=/@tp/said,data=x,say=7:info,say=6:no;reg=/@tp/warned,data=x,say=6:a warning;reg=/@tp/wrong,data=x,say=5:an error",
        "tp:reg=/@tp/ends,data=x,endrc=1;reg=/@tp/never,data=x",
        "tp:reg=/@tp/start-fails,data=x,startrc=2;reg=/@tp/never2,data=x",
        "tp:event9=2;reg=/@tp/never3,data=x",
        "nothing",
    ];
    let events = [
        "tp:reg=/@tp/event,data=x,event=100/some source A/good description",
        "tp:reg=/@tp/plain,data=x",
        "tp:reg=/@tp/events,data=x,event=1/s/one,event=2/s/two",
    ];
    let malformed = ["tp x", ":x", "tp:reg=/@tp/present,data=x", " tp:reg=/@tp/space,data=x"];
    vec![
        row("files", "Signature = MD5", &files),
        row("packed", "Signature = SHA1; Compression = GZIP6; Sparse = yes", &files[..5]),
        row("objects", "Signature = MD5", &objects),
        row("errors", "Signature = MD5", &errors[..9]),
        row("events", "Signature = MD5", &events),
        row("malformed", "Signature = MD5", &malformed),
    ]
}
