//! The circumstances without which a figure means little: when, where and with what it was
//! measured.

use std::env;
use std::fs;
use std::process::Command;

use time::OffsetDateTime;

use super::catalogue::{peers, root};
use super::nginx;
use crate::program;

/// The packages whose versions matter, by their names in the lock file.
const PACKAGES: &[&str] =
    &["mio", "hyper", "tokio", "may_minihttp", "may", "ntex", "actix-web", "axum"];

/// Returns lines of a Markdown list. What cannot be determined is listed as unknown.
pub(crate) fn describe() -> Vec<String> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    vec![
        format!("Date: {}", OffsetDateTime::now_utc().date()),
        format!("Machine: {}", machine().unwrap_or_else(unknown)),
        format!("Kernel: {}", kernel().unwrap_or_else(unknown)),
        format!("Compiler: {}", output_of("rustc", &["--version"]).unwrap_or_else(unknown)),
        format!("Commit: {}", commit().unwrap_or_else(unknown)),
        format!("Command: `cargo run -p rotor-bench --release -- {}`", arguments.join(" ")),
        format!("Versions: {}", versions()),
    ]
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn machine() -> Option<String> {
    let processors = fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = field(&processors, "model name")?;
    // Not the cores on which this process may run, which pinning has changed.
    let cores = processors.lines().filter(|line| line.starts_with("processor")).count();
    let memory = field(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")?;
    let kibibytes: f64 = memory.strip_suffix(" kB")?.parse().ok()?;
    Some(format!("{model}, {cores} cores, {:.0} GiB", kibibytes / (1024.0 * 1024.0)))
}

/// Returns the value in the first line `NAME : VALUE`.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kernel() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/osrelease").ok()?.trim().to_owned())
}

fn commit() -> Option<String> {
    let root = root().to_str()?;
    output_of("git", &["-C", root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn versions() -> String {
    let lock = fs::read_to_string(peers().join("Cargo.lock")).unwrap_or_default();
    let go_mod = fs::read_to_string(peers().join("go/go.mod")).unwrap_or_default();
    let mut versions: Vec<String> = PACKAGES
        .iter()
        .filter_map(|name| locked_version(&lock, name).map(|version| format!("{name} {version}")))
        .collect();
    if let Some((_, after)) = go_mod.split_once("github.com/valyala/fasthttp v") {
        versions.push(format!("fasthttp {}", after.split_whitespace().next().unwrap_or_default()));
    }
    if let Some(go) = output_of("go", &["version"]) {
        versions.push(go.replace("go version go", "Go "));
    }
    // It prints its version to standard error.
    if let Some(output) =
        nginx::find().and_then(|nginx| Command::new(nginx).arg("-v").output().ok())
    {
        let text = String::from_utf8_lossy(&output.stderr);
        versions
            .extend(text.trim().rsplit_once('/').map(|(_, version)| format!("nginx {version}")));
    }
    versions.join(", ")
}

/// Returns the newest version of a package, which is the last one in the lock file.
fn locked_version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = lock.rsplit_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(after.split_once('"')?.0)
}

fn output_of(name: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program::find(name)?).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{field, locked_version};

    #[test]
    fn fields_and_versions_are_found() {
        assert_eq!(field("a : b\nmodel name\t: c: d\n", "model name").as_deref(), Some("c: d"));
        let lock = "[[package]]\nname = \"mio\"\nversion = \"1.2.4\"\n";
        assert_eq!(locked_version(lock, "mio"), Some("1.2.4"));
        let older = "[[package]]\nname = \"mio\"\nversion = \"0.8.11\"\n";
        assert_eq!(locked_version(&format!("{older}\n{lock}"), "mio"), Some("1.2.4"));
        assert_eq!(locked_version(lock, "mi"), None);
    }
}
