//! What `cargo metadata` says of our packages: their names and direct dependencies.

use std::process::Command;

use serde_json::Value;

use crate::sources::{Outcome, root};

/// One package of the workspace, or the fuzz targets' package.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A direct dependency.
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Named by path: one of our own.
    pub(crate) ours: bool,
    /// For tests and benches only. Optional ones are for models (docs/testing.md).
    pub(crate) development: bool,
}

impl Package {
    /// Dependencies on our own packages.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|dependency| dependency.ours)
    }

    /// Dependencies on other people's packages.
    pub(crate) fn theirs(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|dependency| !dependency.ours)
    }
}

/// The workspace's packages and the fuzz targets' one.
pub(crate) fn packages() -> Outcome<Vec<Package>> {
    let mut found = Vec::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version=1", "--no-deps", "--offline", "--manifest-path"])
            .arg(root().join(manifest))
            .output()?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        found.extend(list(&metadata, "packages").iter().map(package));
    }
    Ok(found)
}

fn package(value: &Value) -> Package {
    let dependencies = list(value, "dependencies")
        .iter()
        .map(|dependency| Dependency {
            name: text(dependency, "name"),
            ours: dependency.get("path").is_some_and(Value::is_string),
            development: ["kind", "optional"]
                .into_iter()
                .any(|key| dependency.get(key).is_some_and(|value| value == "dev" || *value == Value::Bool(true))),
        })
        .collect();
    Package { name: text(value, "name"), dependencies }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}
