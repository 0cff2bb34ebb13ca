//! Requests at a constant rate, whatever the server does.
//!
//! A closed loop sends fewer requests to a slow server, and therefore hardly notices its slow
//! moments. Here each request has a time at which it is due, and its latency counts from that time,
//! even if it is sent later because the previous response is late. This is the correction for
//! coordinated omission that wrk2 made known.

use std::time::{Duration, Instant};

use mio::{Events, Token};

use super::{Generator, LoadError, SILENCE_MAX, thread_time, wait};
use crate::histogram::Histogram;
use crate::load::connection::Progress;

/// Waits shorter than this are busy-waits: the kernel's time-out counts in milliseconds.
const SPIN_MAX: Duration = Duration::from_millis(2);

/// The result of a run at a constant rate.
#[derive(Debug, Clone)]
pub struct OpenRun {
    /// The number of requests sent and responses checked.
    pub requests: u64,
    /// The time from the first due time to the last response. If it is much longer than requested,
    /// the server did not keep up.
    pub wall: Duration,
    /// CPU time of the generator, which is meaningless because it busy-waits.
    pub generator: Duration,
    /// The time from when a request was due to its response.
    pub latency: Histogram,
    /// How late the generator itself was with requests for which a connection was free: this part
    /// of the latency is not the server's.
    pub lateness: Histogram,
}

/// When each request is due, and on which connection.
struct Schedule {
    start: Instant,
    interval: Duration,
    connections: u64,
    total: u64,
    /// The first request that is not due yet.
    next_due: u64,
    /// For each connection, the request that it sends next or waits for.
    current: Vec<u64>,
}

impl Schedule {
    fn due(&self, request: u64) -> Instant {
        self.start + self.interval.mul_f64(request as f64)
    }

    fn connection_of(&self, request: u64) -> usize {
        (request % self.connections) as usize
    }
}

impl Generator {
    /// Sends requests at a constant rate per second for this time, one at a time on each connection
    /// in turn.
    ///
    /// # Errors
    ///
    /// A response is wrong or does not arrive. The connections cannot be used any more.
    pub fn run_at_rate(&mut self, rate: f64, time: Duration) -> Result<OpenRun, LoadError> {
        let generator = thread_time();
        let connections = self.connections.len() as u64;
        let mut schedule = Schedule {
            start: Instant::now(),
            interval: Duration::from_secs_f64(1.0 / rate),
            connections,
            total: (rate * time.as_secs_f64()).max(1.0) as u64,
            next_due: 0,
            current: (0..connections).collect(),
        };
        let (mut latency, mut lateness) = (Histogram::default(), Histogram::default());
        let mut events = Events::with_capacity(1024);
        let mut last_answer = Instant::now();
        while latency.total() < schedule.total {
            self.send_due(&mut schedule, &mut lateness)?;
            let wait_max = if schedule.next_due < schedule.total {
                schedule.due(schedule.next_due).saturating_duration_since(Instant::now())
            } else {
                SILENCE_MAX
            };
            wait(
                &mut self.poll,
                &mut events,
                if wait_max < SPIN_MAX { Duration::ZERO } else { wait_max },
            )?;
            if last_answer.elapsed() >= SILENCE_MAX {
                return Err(LoadError::Silent(latency.total(), schedule.next_due));
            }
            for event in &events {
                if let Some(Progress { answered: 1.., .. }) = self.receive(event)? {
                    last_answer = Instant::now();
                    let Token(index) = event.token();
                    latency.record(
                        last_answer
                            .saturating_duration_since(schedule.due(schedule.current[index])),
                    );
                    schedule.current[index] += connections;
                    // A request that has become due meanwhile has waited for this response.
                    if schedule.current[index] < schedule.next_due {
                        self.send_one(index)?;
                    }
                }
                self.send_due(&mut schedule, &mut lateness)?;
            }
        }
        Ok(OpenRun {
            requests: latency.total(),
            wall: schedule.start.elapsed(),
            generator: thread_time().saturating_sub(generator),
            latency,
            lateness,
        })
    }

    /// Sends the requests that are due, on connections that are free.
    fn send_due(
        &mut self,
        schedule: &mut Schedule,
        lateness: &mut Histogram,
    ) -> Result<(), LoadError> {
        while schedule.next_due < schedule.total {
            let Some(late) = Instant::now().checked_duration_since(schedule.due(schedule.next_due))
            else {
                return Ok(());
            };
            let index = schedule.connection_of(schedule.next_due);
            let is_free = schedule.current[index] == schedule.next_due;
            schedule.next_due += 1;
            if is_free {
                lateness.record(late);
                self.send_one(index)?;
            }
        }
        Ok(())
    }

    fn send_one(&mut self, index: usize) -> Result<(), LoadError> {
        self.connections[index].start_batch(1, self.request_bytes);
        self.connections[index].send(&self.batch)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use crate::load::Generator;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";

    #[test]
    fn a_pause_of_the_server_is_counted_for_every_request_that_was_due_in_it() {
        const PAUSE: Duration = Duration::from_millis(100);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            let mut input = [0; 1000];
            for request in 0.. {
                // Requests are not pipelined, so each read returns one request.
                if socket.read(&mut input).unwrap_or(0) == 0 {
                    return;
                }
                if request == 50 {
                    thread::sleep(PAUSE);
                }
                socket.write_all(ANSWER).expect("the client reads");
            }
        });
        let mut generator = Generator::connect(address, 1, 1).expect("it listens");
        let run = generator.run_at_rate(1000.0, Duration::from_millis(200)).expect("right answers");
        assert_eq!(run.requests, 200);
        // About a hundred of the two hundred requests were due during the pause. A closed loop
        // would have measured one slow response.
        assert!(run.latency.percentile(80.0) > PAUSE / 4, "{:?}", run.latency.percentile(80.0));
        assert!(run.latency.percentile(99.9) >= PAUSE, "{:?}", run.latency.percentile(99.9));
    }
}
