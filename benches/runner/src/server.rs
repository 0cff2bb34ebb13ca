//! A server as a child process: started on a free port, found by the address that it prints, ended
//! when dropped.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use quick_error::quick_error;
use rustix::process::Signal;

use crate::process;

/// The listen address that a server is given: loopback, and a port that the system chooses, so that
/// servers and tests do not conflict.
const LISTEN_ADDRESS: &str = "127.0.0.1:0";

quick_error! {
    /// Why a server could not be started or ended.
    #[derive(Debug)]
    pub enum ServerError {
        /// The program does not exist or cannot be executed.
        Spawn(program: String, error: io::Error) {
            display("cannot start {}", program)
            source(error)
        }
        /// It ended, or closed its standard output, before it printed its address.
        Ended(program: String, status: ExitStatus) {
            display("{} ended ({}) without printing an address", program, status)
        }
        /// It runs but did not print its address.
        NoAddress(program: String, patience: Duration) {
            display("{} did not say what address it listens on within {:?}", program, patience)
        }
        /// It was told to end and did not, so it was killed.
        StillRunning(program: String, patience: Duration) {
            display("{} was told to end and still ran after {:?}", program, patience)
        }
        /// The system refused to send it a signal or to wait for it.
        Process(program: String, error: io::Error) {
            display("cannot end {}", program)
            source(error)
        }
    }
}

/// A running server. Dropping it kills it and its descendants.
#[derive(Debug)]
pub struct Server {
    program: String,
    child: Child,
    address: SocketAddr,
    /// The lines that the server prints after its address. They are read even if they are not used,
    /// since a server must not block on a full pipe; and the end of the output shows that the
    /// process has ended, without polling.
    lines: Receiver<String>,
}

impl Server {
    /// Starts `command` with a loopback address and port 0 as last argument, and waits until it has
    /// printed a line in which [`find_address`] finds an address.
    ///
    /// # Errors
    ///
    /// It cannot be started, ends early, or prints no address within `patience`. It is not running
    /// any more.
    pub fn start(mut command: Command, patience: Duration) -> Result<Server, ServerError> {
        command.arg(LISTEN_ADDRESS);
        // From here on, `drop` cleans up. The address is filled in when it is known.
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server::start_on(command, unknown)?;
        server.address = server.wait_for_address(patience)?;
        Ok(server)
    }

    /// Starts `command`, which serves a listening socket that was handed to it. There is nothing to
    /// wait for: a client that connects too early waits in the socket's queue.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn start_on(mut command: Command, address: SocketAddr) -> Result<Server, ServerError> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| ServerError::Spawn(program.clone(), e))?;
        let stdout = child.stdout.take().expect("it was asked to be a pipe above");
        let lines = read_lines(stdout);
        Ok(Server { program, child, address, lines })
    }

    fn wait_for_address(&mut self, patience: Duration) -> Result<SocketAddr, ServerError> {
        let until = Instant::now() + patience;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(address) = find_address(&line) {
                        return Ok(address);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(ServerError::NoAddress(self.program.clone(), patience));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // Otherwise a server that has only closed its output would be waited for
                    // without end.
                    self.kill_all();
                    let status = self
                        .child
                        .wait()
                        .map_err(|e| ServerError::Process(self.program.clone(), e))?;
                    return Err(ServerError::Ended(self.program.clone(), status));
                }
            }
        }
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the process that was started: the server, or the tracer that runs it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line that it prints after the address, or `None` if there is none within
    /// `patience`.
    pub fn next_line(&self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    ///
    /// It still runs after `patience`, and is then killed.
    pub fn terminate(self, patience: Duration) -> Result<ExitStatus, ServerError> {
        let pid = self.child.id();
        self.terminate_process(pid, patience)
    }

    /// Sends SIGTERM to the server that runs under a tracer, and waits for the end of both. (A
    /// tracer that is itself told to end leaves no report.)
    ///
    /// # Errors
    ///
    /// As for [`terminate`](Server::terminate); also if the tracer has no child.
    pub fn terminate_traced(self, patience: Duration) -> Result<ExitStatus, ServerError> {
        let Some(&traced) = process::descendants(self.child.id()).first() else {
            let error = io::Error::new(io::ErrorKind::NotFound, "the tracer has no child");
            return Err(ServerError::Process(self.program.clone(), error));
        };
        self.terminate_process(traced, patience)
    }

    fn terminate_process(
        mut self,
        pid: u32,
        patience: Duration,
    ) -> Result<ExitStatus, ServerError> {
        process::signal(pid, Signal::TERM)
            .map_err(|e| ServerError::Process(self.program.clone(), e))?;
        let until = Instant::now() + patience;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(ServerError::StillRunning(self.program.clone(), patience));
                }
            }
        }
        // Its output is closed, which happens shortly before the process ends.
        self.child.wait().map_err(|e| ServerError::Process(self.program.clone(), e))
    }

    fn kill_all(&mut self) {
        // It is stopped first, so that it does not replace killed processes by new ones, as nginx
        // does. Then its descendants are killed: the processes of a killed tracer would run on, and
        // could not be found any more. If one of them is gone already, that is fine.
        let _ = process::signal(self.child.id(), Signal::STOP);
        for pid in process::descendants(self.child.id()) {
            let _ = process::signal(pid, Signal::KILL);
        }
        let _ = self.child.kill();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After a successful `wait` the number may belong to another process; `try_wait` checks
        // that.
        if let Ok(None) = self.child.try_wait() {
            self.kill_all();
            let _ = self.child.wait();
        }
    }
}

/// Reads the lines of a pipe until its end.
fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { break };
            // The receiver is gone if the server is being dropped; the rest is still read.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// Returns the address in the first `http://ADDRESS:PORT/` or `https://ADDRESS:PORT/` of a line, or
/// of a line `listening on ADDRESS:PORT`, which servers of other protocols print.
pub fn find_address(line: &str) -> Option<SocketAddr> {
    let address = match line.split_once("://") {
        Some((_, after)) => after.split_once('/')?.0,
        None => line.strip_prefix("listening on ")?,
    };
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::sync::mpsc::RecvTimeoutError;
    use std::time::Duration;

    use super::{Server, ServerError, find_address};

    const PATIENCE: Duration = Duration::from_secs(100);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn an_address_is_found_anywhere_in_a_line() {
        let expected = "127.0.0.1:3000".parse().ok();
        assert_eq!(find_address("listening on http://127.0.0.1:3000/"), expected);
        assert_eq!(find_address("listening on https://127.0.0.1:3000/"), expected);
        let proxy = "listening on https://127.0.0.1:3000/, passing on to http://127.0.0.1:80/";
        assert_eq!(find_address(proxy), expected);
        assert_eq!(find_address("try: wrk -t2 http://127.0.0.1:3000/ now"), expected);
        assert_eq!(find_address("listening on 127.0.0.1:3000"), expected);
        assert_eq!(find_address("not listening on 127.0.0.1:3000"), None);
        assert_eq!(find_address("http://127.0.0.1:3000"), None);
        assert_eq!(find_address("http://localhost:3000/"), None);
        assert_eq!(find_address(""), None);
    }

    #[test]
    fn a_server_is_found_by_its_output_line_and_ends_on_request() {
        let script = "echo hello; echo at http://127.0.0.1:9/; echo more; exec tail -f /dev/null";
        let server = Server::start(shell(script), PATIENCE).expect("it prints an address");
        assert_eq!(server.address(), "127.0.0.1:9".parse().expect("an address"));
        assert_eq!(server.next_line(PATIENCE).as_deref(), Some("more"));
        let status = server.terminate(PATIENCE).expect("it ends");
        assert_eq!(status.signal(), Some(15));
    }

    #[test]
    fn a_server_that_does_not_end_on_request_is_killed_and_reported() {
        let script = "trap '' TERM; echo http://127.0.0.1:9/; exec tail -f /dev/null";
        let server = Server::start(shell(script), PATIENCE).expect("it prints an address");
        let pid = server.pid();
        match server.terminate(Duration::from_millis(10)) {
            Err(ServerError::StillRunning(..)) => {}
            other => panic!("expected it to run on, got {other:?}"),
        }
        assert!(crate::process::signal(pid, rustix::process::Signal::TERM).is_err(), "it is gone");
    }

    #[test]
    fn a_server_that_replaces_its_killed_workers_leaves_none() {
        for _ in 0..20 {
            let script = "echo http://127.0.0.1:9/; while :; do tail -f /dev/null; done";
            let mut server = Server::start(shell(script), PATIENCE).expect("it prints an address");
            server.kill_all();
            server.child.wait().expect("it has been killed");
            // A remaining worker would keep the other end of the pipe open.
            assert_eq!(server.lines.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
        }
    }

    #[test]
    fn a_server_that_ends_early_is_reported_with_its_status() {
        match Server::start(shell("echo nothing to see; exit 3"), PATIENCE) {
            Err(ServerError::Ended(_, status)) => assert_eq!(status.code(), Some(3)),
            other => panic!("expected an early end, got {other:?}"),
        }
    }

    #[test]
    fn a_silent_server_times_out() {
        match Server::start(shell("exec tail -f /dev/null"), Duration::from_millis(10)) {
            Err(ServerError::NoAddress(..)) => {}
            other => panic!("expected to find no address, got {other:?}"),
        }
    }

    #[test]
    fn a_missing_program_is_reported() {
        match Server::start(Command::new("/no/such/program"), PATIENCE) {
            Err(ServerError::Spawn(program, _)) => assert_eq!(program, "/no/such/program"),
            other => panic!("expected a spawn error, got {other:?}"),
        }
    }
}
