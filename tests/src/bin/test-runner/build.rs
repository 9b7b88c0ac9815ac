//! Has cargo build test programs, and reads from its messages where they are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bed::{BedError, Result};
use serde_json::Value;

use crate::entry::{Entry, cargo};

/// The entries that have models.
const MODELS: [&str; 4] = ["fd-os", "fd-walk", "fd-backup", "fd-restore"];

/// Builds the test programs that these arguments of `cargo test` name.
pub(crate) fn programs(arguments: &[String]) -> Result<Vec<Entry>> {
    let failed = |problem: String| BedError::Program { program: "cargo test --no-run".to_owned(), problem };
    let mut command = Command::new(cargo());
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(arguments);
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let repository = env::current_dir().map_err(|error| failed(error.to_string()))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let found: Vec<Entry> = messages.lines().filter_map(|line| program(line, &repository)).collect();
    if found.is_empty() {
        return Err(failed(format!("{arguments:?} name no test program")));
    }
    Ok(found)
}

/// The models: the same crates, built once more with their locks and threads exchanged.
pub(crate) fn models() -> Result<Vec<Entry>> {
    let features = MODELS.map(|name| format!("{name}/models")).join(",");
    // Of the whole workspace, as ever: what has no models is there already.
    let arguments = ["--workspace", "--features", &features, "--lib"].map(str::to_owned);
    let with_models = |entry: &Entry| MODELS.contains(&entry.name.as_str());
    Ok(programs(&arguments)?.into_iter().filter(with_models).map(Entry::models).collect())
}

/// The test program of one of cargo's messages, if it has one.
fn program(message: &str, repository: &Path) -> Option<Entry> {
    let message: Value = serde_json::from_str(message).ok()?;
    let text = |pointer: &str| message.pointer(pointer)?.as_str();
    if !message.pointer("/profile/test")?.as_bool()? {
        return None;
    }
    let executable = PathBuf::from(text("/executable")?);
    let package = Path::new(text("/manifest_path")?).parent()?;
    let folder = package.strip_prefix(repository).unwrap_or(package);
    let folder = folder.strip_prefix("crates").unwrap_or(folder).display();
    let name = match text("/target/kind/0")? {
        "lib" | "rlib" | "cdylib" | "proc-macro" => folder.to_string(),
        _ => format!("{folder}/{}", text("/target/name")?),
    };
    Some(Entry::program(name, executable, package.to_owned()))
}
