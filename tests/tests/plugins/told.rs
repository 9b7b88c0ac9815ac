//! What a job left, as lines without what two jobs never have in common.

use bed::{COUNTS_OF_A_REPORT, Catalog, JobResult, Record, Records, Result, stream_name};

/// Times since 2020 are of the job, not of a test plugin's file.
const RECENT: u64 = 1_577_836_800;

/// The text without numbers that are recent times.
fn without_times(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|byte: char| byte.is_ascii_digit()) {
        let digits = rest[start..].chars().take_while(char::is_ascii_digit).count();
        let (before, number) = rest[..start + digits].split_at(start);
        result.push_str(before);
        let is_time = digits == 10 && number.parse::<u64>().is_ok_and(|number| number > RECENT);
        result.push_str(if is_time { "TIME" } else { number });
        rest = &rest[start + digits..];
    }
    result + rest
}

/// A trace without names, numbers and times of the job.
pub fn plain_trace(lines: &[String], job: &JobResult, name: &str) -> Vec<String> {
    let number = format!("JobId={} ", job.row.id);
    let plain = |line: &String| {
        let line = line.replace(&job.row.job, "JOB").replace(&number, "JobId=N ");
        without_times(&line.replace(&format!("{name}-"), "client-").replace(&format!("/{name}/"), "/client/"))
    };
    lines.iter().map(plain).collect()
}

/// A job's records, each a line. Bytes that the stock daemon leaves to chance are cut off.
pub fn records(records: Result<Records>) -> Result<Vec<String>> {
    let line = |record: Record| {
        let filler = match record.stream & 0x7ff {
            28 => 1,
            35 | 36 => 8,
            _ => 0,
        };
        let kept = &record.data[..record.data.len().saturating_sub(filler)];
        let shown = if kept.len() > 400 {
            format!(
                "{}… {:?}",
                kept[..100].escape_ascii(),
                openssl::hash::hash(openssl::hash::MessageDigest::md5(), kept).unwrap()
            )
        } else {
            kept.escape_ascii().to_string()
        };
        format!("{} {} {} {shown}", record.file_index, stream_name(record.stream), record.data.len())
    };
    // A job that never came to the Storage Daemon has no volume.
    match records {
        Err(_) => Ok(vec!["no records".to_owned()]),
        Ok(records) => records.map(|record| record.map(line)).collect(),
    }
}

/// What the catalog holds of a job.
pub fn catalog(catalog: &Catalog, job: u32) -> Result<Vec<String>> {
    let files = catalog.files(job)?;
    let mut lines: Vec<_> = files
        .iter()
        .map(|file| {
            let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
            format!(
                "File {} {} {} {} {}",
                file.file_index,
                text(&file.path),
                text(&file.lstat),
                text(&file.digest),
                file.delta_seq
            )
        })
        .collect();
    let tables: [(&str, &[&str]); 4] = [
        (
            "RestoreObject",
            &[
                "ObjectName",
                "RestoreObject",
                "PluginName",
                "ObjectLength",
                "ObjectFullLength",
                "ObjectIndex",
                "ObjectType",
                "FileIndex",
                "ObjectCompression",
            ],
        ),
        (
            "Object",
            &[
                "Path",
                "Filename",
                "PluginName",
                "ObjectCategory",
                "ObjectType",
                "ObjectName",
                "ObjectSource",
                "ObjectUUID",
                "ObjectSize",
                "ObjectStatus",
                "ObjectCount",
            ],
        ),
        ("FileEvents", &["SourceJobId = JobId", "FileIndex", "Type", "Description", "Severity", "Source"]),
        ("MetaEmail", &["EmailTenant", "EmailOwner", "EmailSubject", "FileIndex"]),
    ];
    for (table, columns) in tables {
        let rows = catalog.rows(columns, &format!("FROM {table} WHERE JobId = {job} ORDER BY rowid"))?;
        for row in rows {
            let cells: Vec<_> = row.iter().map(|cell| cell.escape_ascii().to_string()).collect();
            lines.push(format!("{table} {}", cells.join(" | ")));
        }
    }
    Ok(lines)
}

/// The counts of the Director's report.
pub fn report(job: &JobResult) -> Vec<String> {
    let report = job.report();
    let counts = COUNTS_OF_A_REPORT.iter().filter(|key| **key != "FileSet");
    counts.map(|key| format!("{key}: {}", report.get(*key).map_or("-", String::as_str))).collect()
}
