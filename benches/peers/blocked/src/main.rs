//! Servers in which one request in a hundred blocks its handler for 20 ms without any declaration.
//! How does that affect the other requests?
//!
//! ```text
//! cargo run --release -p blocked                             everything, three rounds
//! cargo run --release -p blocked -- --rounds 1 --seconds 2 rotor      of those with that in their name
//! cargo run --release -p blocked -- --smoke                  ours, for a moment
//! ```
//!
//! Each server is a process of its own, started anew for each run, and the servers take turns. The
//! loads have the shapes of `wrk -t1 -c50`, `-t10 -c50` and `-t1 -c500`: this many threads and
//! connections, each of which sends its next request when the previous one has been answered. A
//! fifth of the time is for warming up. A response says whether it was blocked on purpose;
//! latencies are those of the others. CPU time is the server's. Figures are medians of the rounds.
#![forbid(unsafe_code)]

mod load;
mod process;
mod servers;
mod table;

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use load::Load;
use process::Server;
use table::{Figures, Row};

type BoxError = Box<dyn Error + Send + Sync>;

const LOADS: [Load; 3] = [
    Load { threads: 1, connections: 50 },
    Load { threads: 10, connections: 50 },
    Load { threads: 1, connections: 500 },
];

fn main() -> Result<(), BoxError> {
    match env::args().nth(1).as_deref() {
        Some("serve") => servers::serve(&env::args().nth(2).ok_or("serve WAY")?),
        _ => compare(&Options::parse(env::args().skip(1))?),
    }
}

struct Options {
    rounds: usize,
    time: Duration,
    is_smoke: bool,
    part: String,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, BoxError> {
        let (rounds, time, part) = (3, Duration::from_secs(5), String::new());
        let mut options = Options { rounds, time, is_smoke: false, part };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rounds" => options.rounds = words.next().ok_or("--rounds N")?.parse()?,
                "--seconds" => {
                    let seconds = words.next().ok_or("--seconds N")?.parse()?;
                    options.time = Duration::from_secs(seconds);
                }
                "--smoke" => options.is_smoke = true,
                _ => options.part = word,
            }
        }
        if options.is_smoke {
            options.rounds = 1;
            options.time = Duration::from_millis(500);
            options.part = "rotor".to_owned();
        }
        Ok(options)
    }
}

/// A contender: its name in the table, its program, and the arguments of that.
type Contender = (&'static str, PathBuf, Vec<&'static str>);

fn contenders(options: &Options) -> Result<Vec<Contender>, BoxError> {
    let own = env::current_exe()?;
    let mut all: Vec<_> =
        servers::WAYS.iter().map(|way| (*way, own.clone(), vec!["serve", way])).collect();
    if !options.is_smoke {
        match build_go(&own) {
            Ok(go) => all.push(("go", go, vec!["127.0.0.1:0"])),
            Err(error) => eprintln!("Go is left out: {error}"),
        }
    }
    Ok(all)
}

/// Builds the Go server, next to this program.
fn build_go(own: &Path) -> Result<PathBuf, BoxError> {
    let go = own.with_file_name("blocked-go");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../go");
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&go)
        .arg("./blocked")
        .current_dir(folder)
        .status()?;
    if status.success() {
        Ok(go)
    } else {
        Err(format!("its compiler has ended with {status}").into())
    }
}

fn compare(options: &Options) -> Result<(), BoxError> {
    let contenders = contenders(options)?;
    for load in LOADS {
        let names = contenders.iter().map(|(name, ..)| *name);
        let names = names.filter(|name| name.contains(&options.part));
        let mut rows: Vec<_> = names.map(|name| Row { name, figures: Vec::new() }).collect();
        for _ in 0..options.rounds {
            for row in &mut rows {
                let contender = contenders.iter().find(|(name, ..)| *name == row.name);
                let (_, program, words) = contender.ok_or("it took part before")?;
                row.figures.push(measure(program, words, load, options.time)?);
            }
        }
        table::print(&format!("wrk -t{} -c{}", load.threads, load.connections), &rows);
    }
    Ok(())
}

fn measure(
    program: &Path,
    words: &[&str],
    load: Load,
    time: Duration,
) -> Result<Figures, BoxError> {
    let server = Server::start(program, words)?;
    let seen = load.run(server.address, time, || server.cpu_time())?;
    Ok(Figures { seen, threads_most: server.threads_most() })
}
