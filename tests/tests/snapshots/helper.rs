//! The helper of the tests: a script in the place of a program that makes snapshots
//! (reference 07 §12.8). It keeps what it is called with.

use std::fs;
use std::path::Path;

/// The file system `data` has the snapshot `snap`. A line `ACTION: COMMANDS` of the file
/// `modes/JOB` is done before what is done for an action, where JOB is the job's name without its
/// client.
const HELPER: &str = r#"#!/bin/sh
here=@HERE@
job=${SNAPSHOT_NAME%%.*}
{
    echo "= $SNAPSHOT_ACTION $SNAPSHOT_MOUNTPOINT"
    echo "$*"
    env | grep ^SNAPSHOT_ | sort
} >> "$here/calls/$job"
eval "$(sed -n "s/^$SNAPSHOT_ACTION: //p" "$here/modes/${job%-*}" 2> /dev/null)"
case $SNAPSHOT_ACTION in
support)
    case $SNAPSHOT_MOUNTPOINT in
    $here/data) echo "status=1 type=fake device=\"$SNAPSHOT_DEVICE\"" ;;
    *) echo 'status=0 error="not here"'; exit 1 ;;
    esac ;;
create) echo "status=1 volume=\"$here/volume $SNAPSHOT_NAME\" createtdate=1700000000 type=fake" ;;
mount) echo "status=1 snapmountpoint=$here/snap snapdirectory=$here/data/.snapshots/" ;;
unmount | delete) echo status=1 ;;
query) echo "status=1 size=4711" ;;
list)
    cat << END
volume="/v/one two" name="job one" device="$SNAPSHOT_DEVICE" createdate="2023-11-14 22:13:20" size=12 status=1 error="" type="fake"
volume=/v/three name=three device=$SNAPSHOT_DEVICE createtdate=1700000001 status=0 error="it is bad" type=fake
volume="/found $SNAPSHOT_NAME" name="$SNAPSHOT_NAME" device="$SNAPSHOT_DEVICE" createtdate=1 type=fake
END
esac
"#;

/// The codes of `Snapshot Command`, as one argument.
const CODES: &str = "%n|%v|%d|%D|%a|%t|%f|%p|%s|%%|%x";

/// Writes the script, and returns the directive that names it.
pub(crate) fn write(folder: &Path) -> String {
    for name in ["calls", "modes"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let path = folder.join("helper");
    scripts::write(&path, &HELPER.replace("@HERE@", &folder.to_string_lossy())).unwrap();
    format!("Snapshot Command = \"{} \\\"{CODES}\\\"\"", path.display())
}

/// What is done before the usual, in jobs of this name.
pub(crate) fn set_mode(folder: &Path, job: &str, mode: &str) {
    fs::write(folder.join("modes").join(job), format!("{mode}\n")).unwrap();
}

/// Begins the line of a question for support. The stock daemon also asks about file systems that
/// hold nothing of the job.
pub(crate) const ASKS: &str = "asks support ";

/// The calls about the bed's own file systems, without what differs between jobs: a question for
/// support in one line, any other call in several.
pub(crate) fn calls(folder: &Path, job: &str, client: &str) -> Vec<String> {
    calls_of(folder, &format!("{job}-{client}"), client)
}

/// The same for a job with this whole name.
pub(crate) fn calls_of(folder: &Path, job: &str, client: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.join("calls").join(job)).unwrap_or_default();
    let text = text.replace(&*folder.to_string_lossy(), "/bed");
    let mut lines = Vec::new();
    for block in text.split("\n= ") {
        let block = block.trim_start_matches("= ");
        let (action, of) = block.lines().next().and_then(|head| head.split_once(' ')).unwrap_or_default();
        if !of.starts_with("/bed") && !["query", "delete"].contains(&action) {
            continue;
        }
        let block = block.replace(&format!("-{client}."), "-client.").replace(&format!("work/{client}"), "work");
        let plain = block.lines().map(without_number);
        if action == "support" {
            lines.push(format!("{ASKS}{}", plain.collect::<Vec<_>>().join(" ~ ")));
        } else {
            lines.extend(plain);
        }
    }
    lines
}

/// `job-client.2026-11-22_15.36.48_03` without its time and number.
pub(crate) fn without_number(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("-client.") {
        text.push_str(before);
        text.push_str("-client");
        rest = after.trim_start_matches(|next: char| next.is_ascii_digit() || "-_.".contains(next));
    }
    text + rest
}

/// The words `ACTION MOUNTPOINT` of all calls, in order.
pub(crate) fn heads(folder: &Path, job: &str, client: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.join("calls").join(format!("{job}-{client}"))).unwrap_or_default();
    let text = text.replace(&*folder.to_string_lossy(), "/bed");
    text.lines().filter_map(|line| line.strip_prefix("= ")).map(str::to_owned).collect()
}
