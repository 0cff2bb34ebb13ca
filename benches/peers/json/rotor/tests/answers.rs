//! Our service responds correctly with each of its implementations.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Killed when dropped.
struct Server(Child);

impl Server {
    /// Returns the CPU time of its threads: the first number of proc_pid_schedstat(5).
    fn cpu_time(&self) -> Result<Duration, Box<dyn Error>> {
        let mut sum = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            // The thread may have ended in between.
            let Ok(times) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let nanoseconds = times.split(' ').next().unwrap_or_default().parse()?;
            sum += Duration::from_nanos(nanoseconds);
        }
        Ok(sum)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the service with an implementation. Returns it and its address.
fn start(way: &str, delay_ms: &str) -> Result<(Server, String), Box<dyn Error>> {
    let child = Command::new(env!("CARGO_BIN_EXE_json-rotor"))
        .arg("127.0.0.1:0")
        .envs([("WAY", way), ("DELAY_MS", delay_ms), ("POOL", "2")])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut server = Server(child);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().ok_or("it is a pipe")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on http://").ok_or("it says where")?;
    Ok((server, address.trim_end_matches('/').to_owned()))
}

/// Sends a request body. Returns the status line and the body of the response.
fn post(address: &str, body: &str) -> Result<(String, String), Box<dyn Error>> {
    let mut socket = TcpStream::connect(address)?;
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    socket.write_all(head.as_bytes())?;
    socket.write_all(body.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("a head")?;
    Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
}

#[test]
fn every_way_sums_small_and_large_bodies_and_refuses_others() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<String> = (0..100_000).map(|number: u32| number.to_string()).collect();
    let large = format!("[{}]", numbers.join(","));
    for way in ["sync", "async1", "async2"] {
        let (_server, address) = start(way, "1")?;
        let right = |sum: i64| ("HTTP/1.1 200 OK".to_owned(), format!(r#"{{"sum":{sum}}}"#));
        assert_eq!(post(&address, "[1, 2, 3]")?, right(6), "{way}");
        assert_eq!(post(&address, &large)?, right(4_999_950_000), "{way}");
        for wrong in ["[1", "{}"] {
            let (status, _) = post(&address, wrong)?;
            assert_eq!(status, "HTTP/1.1 400 Bad Request", "{way}: {wrong}");
        }
    }
    Ok(())
}

#[test]
fn the_delay_begins_after_the_sum() -> Result<(), Box<dyn Error>> {
    let body = format!("[{}1]", "1,".repeat(500_000));
    for way in ["async1", "async2"] {
        // Longer than the sum, which would otherwise hide when it began.
        let (server, address) = start(way, "1000")?;
        let cpu_before = server.cpu_time()?;
        let begun = Instant::now();
        assert_eq!(post(&address, &body)?.1, r#"{"sum":500001}"#);
        let time = begun.elapsed();
        // One thread after the other works for the only request, so that a busy machine makes it
        // take longer than this, never shorter. A little of it is used behind the delay.
        let sum_time = server.cpu_time()?.saturating_sub(cpu_before) * 3 / 4;
        assert!(time >= sum_time + Duration::from_secs(1), "{way}: {time:?}, {sum_time:?}");
    }
    Ok(())
}

#[test]
fn the_answer_comes_after_the_delay() -> Result<(), Box<dyn Error>> {
    for way in ["sync", "async1", "async2"] {
        let (_server, address) = start(way, "50")?;
        let begun = Instant::now();
        assert_eq!(post(&address, "[1]")?.1, r#"{"sum":1}"#);
        assert!(begun.elapsed().as_millis() >= 50, "{way}: {:?}", begun.elapsed());
    }
    Ok(())
}
