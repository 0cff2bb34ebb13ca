//! The servers that can be compared: how each is built, started and told its number of threads.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::rig::Rig;
use super::scenario::{Held, Scenario, Task};
use super::{BoxError, nginx};
use crate::program;
use crate::server::Server;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

const EVERYTHING: &[Task] = &[Task::Hello, Task::Body64K, Task::File, Task::Post, Task::Close];

/// Including the body of a megabyte, which is for the comparison with nginx.
const AND_BODY_1M: &[Task] =
    &[Task::Hello, Task::Body64K, Task::Body1M, Task::File, Task::Post, Task::Close];

/// A server that can be compared.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    build: Build,
    /// The variable for its number of threads; without one it has a single thread.
    threads: Option<&'static str>,
    offers: &'static [Task],
    /// The number of connections at which it ends or refuses further ones.
    connections_max: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// A package of the workspace of peers.
    Peer(&'static str),
    /// A package with a workspace of its own, next to the peers. Its script `prepare` makes what is
    /// not in the repository.
    OwnWorkspace { directory: &'static str, package: &'static str, prepared: &'static str },
    /// A command of the Go module next to the peers.
    Go(&'static str),
    /// An example of rotor.
    Example(&'static str),
    /// A program of the system.
    Nginx,
}

const fn entry(name: &'static str, build: Build, threads: Option<&'static str>) -> Entry {
    Entry { name, build, threads, offers: EVERYTHING, connections_max: usize::MAX }
}

/// All servers. Ratios are to the first one of those that take part.
pub(super) const SERVERS: &[Entry] = &[
    Entry {
        offers: &[Task::Hello, Task::Body64K, Task::Body1M, Task::Close],
        ..entry("bare-loop", Build::Peer("bare-loop"), None)
    },
    // The same on io_uring; left out if the system refuses that.
    Entry {
        offers: &[Task::Hello, Task::Body64K, Task::Body1M, Task::Close],
        ..entry("bare-uring", Build::Peer("bare-uring"), None)
    },
    Entry { offers: AND_BODY_1M, ..entry("rotor", Build::Peer("rotor-peer"), None) },
    Entry {
        offers: AND_BODY_1M,
        ..entry("rotor-threads", Build::Peer("rotor-peer"), Some("THREADS"))
    },
    // The same on another main loop. If the system refuses io_uring it does not serve, and is left
    // out.
    Entry { offers: AND_BODY_1M, ..entry("rotor-uring", Build::Peer("uring-peer"), None) },
    Entry {
        offers: AND_BODY_1M,
        ..entry("rotor-uring-threads", Build::Peer("uring-peer"), Some("THREADS"))
    },
    // The example with which people usually begin: nothing but hello.
    Entry {
        offers: &[Task::Hello, Task::Close],
        ..entry("threaded_hello_world", Build::Example("threaded_hello_world"), Some("THREADS"))
    },
    Entry { offers: AND_BODY_1M, ..entry("hyper", Build::Peer("hyper-peer"), None) },
    Entry {
        offers: AND_BODY_1M,
        ..entry("hyper-threads", Build::Peer("hyper-peer"), Some("THREADS"))
    },
    Entry {
        offers: &[Task::Hello, Task::Body64K, Task::Post],
        ..entry("may_minihttp", Build::Peer("may-minihttp-peer"), Some("THREADS"))
    },
    Entry {
        offers: &[Task::Hello, Task::Body64K, Task::Post, Task::Close],
        ..entry("ntex", Build::Peer("ntex-peer"), Some("THREADS"))
    },
    Entry {
        offers: &[Task::Hello, Task::Body64K, Task::Post, Task::Close],
        ..entry("ntex-uring", Build::Peer("ntex-uring-peer"), Some("THREADS"))
    },
    Entry {
        offers: &[Task::Hello, Task::Body64K, Task::Body1M, Task::Post, Task::Close],
        ..entry("monoio", Build::Peer("monoio-peer"), Some("THREADS"))
    },
    entry("actix-web", Build::Peer("actix-web-peer"), Some("THREADS")),
    Entry { offers: AND_BODY_1M, ..entry("nginx", Build::Nginx, Some("THREADS")) },
    entry("go-net-http", Build::Go("net-http"), Some("GOMAXPROCS")),
    entry("go-fasthttp", Build::Go("fasthttp"), Some("GOMAXPROCS")),
    Entry {
        offers: &[Task::Hello, Task::Body64K, Task::Post],
        connections_max: 4_000,
        ..entry(
            "rotor-http-0.7",
            Build::OwnWorkspace {
                directory: "rotor-http-0.7",
                package: "rotor-http-peer",
                prepared: "rotor-stream",
            },
            None,
        )
    },
];

/// Returns the server with this name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    SERVERS.iter().find(|entry| entry.name == name)
}

/// Returns the root directory of rotor's workspace.
pub(super) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(super) fn peers() -> PathBuf {
    root().join("benches/peers")
}

/// A server that is built.
#[derive(Debug)]
pub(super) struct Ready {
    entry: &'static Entry,
    program: PathBuf,
}

/// Builds the servers. Those that cannot be built are left out, with a note that says why.
pub(super) fn prepare(entries: &[&'static Entry], notes: &mut Vec<String>) -> Vec<Ready> {
    let mut ready = Vec::new();
    for entry in entries {
        match entry.build.run() {
            Ok(program) => ready.push(Ready { entry, program }),
            Err(why) => notes.push(format!("{} is skipped: {why}", entry.name)),
        }
    }
    ready
}

impl Build {
    /// Returns the program, after building it if it is not up to date.
    pub(crate) fn run(&self) -> Result<PathBuf, BoxError> {
        match *self {
            Build::Peer(package) => {
                let manifest = peers().join("Cargo.toml");
                cargo(&manifest, &["-p", package])?;
                Ok(peers().join("target/release").join(package))
            }
            Build::OwnWorkspace { directory, package, prepared } => {
                let directory = peers().join(directory);
                if !directory.join(prepared).exists() {
                    succeed(Command::new(directory.join("prepare")).stdout(Stdio::null()))?;
                }
                cargo(&directory.join("Cargo.toml"), &["-p", package])?;
                Ok(directory.join("target/release").join(package))
            }
            Build::Go(command) => {
                let go = program::find("go").ok_or("there is no go")?;
                let program = peers().join("target/go").join(command);
                succeed(
                    Command::new(go)
                        .args(["build", "-o"])
                        .arg(&program)
                        .arg(format!("./{command}"))
                        .current_dir(peers().join("go")),
                )?;
                Ok(program)
            }
            Build::Example(name) => {
                let examples = root().join("examples");
                if !examples.join(name).exists()
                    && !examples.join(name).with_extension("rs").exists()
                {
                    return Err("there is no such example yet".into());
                }
                // The examples on the first page belong to the library's own package, which has no
                // dependencies that they do not need.
                let first = matches!(name, "hello_world_server" | "threaded_hello_world");
                let package = if first { "rotor" } else { "rotor-examples" };
                cargo(&root().join("Cargo.toml"), &["-p", package, "--example", name])?;
                Ok(root().join("target/release/examples").join(name))
            }
            Build::Nginx => Ok(nginx::find().ok_or("there is no nginx")?),
        }
    }
}

fn cargo(manifest: &Path, package: &[&str]) -> Result<(), BoxError> {
    let mut cargo = Command::new("cargo");
    // Elsewhere it would leave the programs of an earlier build to be measured.
    cargo.env_remove("CARGO_TARGET_DIR");
    cargo
        .args(["build", "--quiet", "--release", "--locked", "--manifest-path"])
        .arg(manifest)
        .args(package);
    succeed(&mut cargo)
}

fn succeed(command: &mut Command) -> Result<(), BoxError> {
    let status = command.status()?;
    let program = command.get_program().to_string_lossy();
    if status.success() { Ok(()) } else { Err(format!("{program} ended with {status}").into()) }
}

impl Ready {
    pub(super) fn name(&self) -> &'static str {
        self.entry.name
    }

    /// Returns why it cannot take part in a scenario, if so.
    pub(super) fn cannot(&self, scenario: &Scenario) -> Option<&'static str> {
        let offers = self.entry.offers;
        if !offers.contains(&scenario.task)
            || scenario.held.task().is_some_and(|task| !offers.contains(&task))
        {
            return Some("it does not offer that");
        }
        // Its response is prepared, and the same for every request.
        let is_bare = matches!(self.entry.build, Build::Peer("bare-loop" | "bare-uring"));
        if is_bare && scenario.held.task().is_some_and(|task| task != scenario.task) {
            return Some("it has one answer for all requests");
        }
        self.cannot_hold(scenario.load.connections() + scenario.held.connections())
    }

    /// Returns why it cannot hold this many connections, if so.
    pub(super) fn cannot_hold(&self, connections: usize) -> Option<&'static str> {
        (connections > self.entry.connections_max).then_some("it does not take so many connections")
    }

    pub(super) fn start(&self, scenario: &Scenario, rig: &Rig) -> Result<Server, BoxError> {
        self.start_for(scenario.task, scenario.held, rig)
    }

    /// Starts it on the cores of the calling thread.
    pub(super) fn start_for(&self, task: Task, held: Held, rig: &Rig) -> Result<Server, BoxError> {
        if self.entry.build == Build::Nginx {
            return nginx::start(&self.program, &rig.site, rig.threads);
        }
        let mut command = Command::new(&self.program);
        command.env_remove("THREADS").env("FILE", rig.site.file());
        if let Some(variable) = self.entry.threads {
            command.env(variable, rig.threads.to_string());
        }
        // The bare loop does not parse requests, so its response is configured in advance.
        if held == Held::Nothing
            && let Some(bytes) = task.body_bytes()
        {
            command.env("BODY_BYTES", bytes.to_string());
        }
        if task == Task::Close {
            command.env("CLOSE", "1");
        }
        Ok(Server::start(command, PATIENCE)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{SERVERS, find};

    #[test]
    fn every_server_is_found_by_its_own_name() {
        for entry in SERVERS {
            assert_eq!(find(entry.name), Some(entry));
        }
    }
}
