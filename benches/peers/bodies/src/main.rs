//! Large bodies, many at a time, received by a client: in memory, and in files.
//!
//! ```text
//! cargo run --release -p bodies                       on the disk of the working directory, and on tmpfs
//! cargo run --release -p bodies -- --rounds 3 ram     of those with that in their name
//! cargo run --release -p bodies -- --smoke            ours, once
//! cargo build --release --manifest-path bodies/futio/Cargo.toml     its rows are there then
//! ```
//!
//! A server in a process of its own sends 8 MiB in chunks of 32 KiB, from memory. Sixteen requests
//! at a time are a batch. The client is measured: each row is a process, with six batches after one
//! that is not counted, and the rows take turns. Figures are medians. The ratio is that of the CPU
//! time to the first row of the same program, the median over the rounds. Ticks of a millisecond
//! show how long the loop was held up, including one tick.
//!
//! The tmpfs is in a mount namespace of its own (`unshare -m`), with huge pages if the system has
//! them. If that is not permitted, this part is skipped with a note.
#![forbid(unsafe_code)]

mod hyper;
mod ours;
mod serve;
mod table;

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bodies_work::{Figures, Task};

type BoxError = Box<dyn Error + Send + Sync>;

const BATCHES: usize = 6;

/// A contender: a program, its name in the table, and its ways.
struct Contender {
    name: &'static str,
    program: PathBuf,
    ways: &'static [&'static str],
}

fn main() -> Result<(), BoxError> {
    let mut words = env::args().skip(1);
    match words.next().as_deref() {
        Some("serve") => serve::serve(),
        Some("run") => {
            let task = Task::parse(words).ok_or("run WAY ADDRESS DIRECTORY BATCHES")?;
            let figures = if hyper::WAYS.contains(&task.way.as_str()) {
                hyper::run(&task)?
            } else {
                ours::run(&task)?
            };
            println!("{figures}");
            Ok(())
        }
        _ => compare(&Options::parse(env::args().skip(1))?),
    }
}

struct Options {
    rounds: usize,
    is_smoke: bool,
    /// For the second half of the runs, which is on tmpfs.
    tmpfs: Option<PathBuf>,
    part: String,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, BoxError> {
        let mut options = Options { rounds: 5, is_smoke: false, tmpfs: None, part: String::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rounds" => options.rounds = words.next().ok_or("--rounds N")?.parse()?,
                "--smoke" => options.is_smoke = true,
                "--tmpfs" => options.tmpfs = words.next().map(PathBuf::from),
                _ => options.part = word,
            }
        }
        if options.is_smoke {
            options.rounds = 1;
        }
        Ok(options)
    }
}

fn contenders(options: &Options) -> Result<Vec<Contender>, BoxError> {
    let own = env::current_exe()?;
    let mut all = vec![Contender { name: "rotor", program: own.clone(), ways: ours::WAYS }];
    if options.is_smoke {
        return Ok(all);
    }
    all.push(Contender { name: "hyper", program: own, ways: hyper::WAYS });
    let futio = Path::new(env!("CARGO_MANIFEST_DIR")).join("futio/target/release/bodies-futio");
    if futio.exists() {
        let ways = &[
            "ram",
            "gather",
            "file-direct",
            "file-permit",
            "file-dispatch",
            "mapped",
            "mapped-copy",
        ];
        all.push(Contender { name: "body-image-futio", program: futio, ways });
    } else {
        eprintln!("body-image-futio is left out: it is not built");
    }
    match build_go(&all[0].program) {
        Ok(program) => all.push(Contender { name: "go", program, ways: &["ram", "file"] }),
        Err(error) => eprintln!("Go is left out: {error}"),
    }
    Ok(all)
}

/// Builds the Go client, next to this program.
fn build_go(own: &Path) -> Result<PathBuf, BoxError> {
    let go = own.with_file_name("bodies-go");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../go");
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(&go).arg("./bodies");
    match command.current_dir(folder).status()? {
        status if status.success() => Ok(go),
        status => Err(format!("its compiler has ended with {status}").into()),
    }
}

fn compare(options: &Options) -> Result<(), BoxError> {
    let disk = tempfile::tempdir_in(env::current_dir()?)?;
    let directory = options.tmpfs.as_deref().unwrap_or(disk.path());
    let batches = if options.is_smoke { 1 } else { BATCHES };
    let (server, address) = start_server()?;
    let programs = contenders(options)?;
    let mut rows = Vec::new();
    for contender in &programs {
        for way in contender.ways.iter().filter(|way| way.contains(&options.part)) {
            rows.push(table::Row { name: contender.name, way, figures: Vec::new() });
        }
    }
    for _ in 0..options.rounds {
        for row in &mut rows {
            let program = programs.iter().find(|contender| contender.name == row.name);
            let program = &program.ok_or("it took part before")?.program;
            row.figures.push(run(program, row.way, &address, directory, batches)?);
        }
    }
    drop(server);
    let place = if options.tmpfs.is_some() { "tmpfs" } else { "the disk of the working directory" };
    table::print(&format!("files on {place}, rounds: {}", options.rounds), &rows);
    if options.tmpfs.is_none() && !options.is_smoke { on_tmpfs(options) } else { Ok(()) }
}

fn run(
    program: &Path,
    way: &str,
    address: &str,
    directory: &Path,
    batches: usize,
) -> Result<Figures, BoxError> {
    let mut command = Command::new(program);
    command.args(["run", way, address]).arg(directory).arg(batches.to_string());
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{way} has ended with {}", output.status).into());
    }
    Ok(text.trim().parse()?)
}

/// The server, which ends when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_server() -> Result<(Server, String), BoxError> {
    let mut child =
        Command::new(env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("it has an output")?;
    let server = Server(child);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    Ok((server, line.trim().to_owned()))
}

/// Runs this program again, in a mount namespace with a tmpfs of its own.
fn on_tmpfs(options: &Options) -> Result<(), BoxError> {
    let place = tempfile::tempdir_in(env::current_dir()?)?;
    // `unshare` fails with 1, as this program does: the latter becomes another number.
    let script = r#"mount -t tmpfs -o size=1g,huge=always rotor "$1" 2>/dev/null || mount -t tmpfs -o size=1g rotor "$1" || exit 1
        "$2" --tmpfs "$1" --rounds "$3" $4 || exit 2"#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(place.path()).arg(env::current_exe()?);
    let status = command.args([&options.rounds.to_string(), &options.part]).status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => Ok(()),
        Ok(Some(1)) | Err(_) => {
            println!("left out: no tmpfs of one's own is allowed here");
            Ok(())
        }
        Ok(_) => Err("the run on tmpfs has failed".into()),
    }
}
