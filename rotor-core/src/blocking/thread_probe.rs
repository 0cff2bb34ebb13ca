//! `ThreadProbe`: what the system reports about a loop's thread. In this folder, only this file and
//! `timer_slack` depend on the operating system.

#[cfg(any(target_os = "linux", target_os = "android"))]
use std::fs::File;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::io::Read;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::sync::Arc;
use std::time::Duration;

/// Reads from another thread what a thread does. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct ThreadProbe {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    folder: Option<Arc<str>>,
}

/// What a thread does, and how much CPU time it has used so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "no other system says what a thread does")
)]
pub(super) enum ThreadSample {
    Unknown,
    /// It computes, or waits for a CPU in order to compute.
    Runnable(CpuTimes),
    /// It waits in the kernel.
    Waiting {
        times: CpuTimes,
        syscall: Option<u32>,
    },
}

/// The CPU times of a thread since it began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct CpuTimes {
    /// How long it computed. While the thread computes, this grows at each timer interrupt of the
    /// system, every 1 to 10 ms.
    pub(super) ran: Duration,
    /// How long it waited for a CPU. This grows only when the wait is over.
    pub(super) queued: Duration,
}

impl ThreadSample {
    pub(super) fn times(&self) -> Option<CpuTimes> {
        match self {
            ThreadSample::Unknown => None,
            ThreadSample::Runnable(times) | ThreadSample::Waiting { times, .. } => Some(*times),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl ThreadProbe {
    pub(crate) fn of_this_thread() -> ThreadProbe {
        ThreadProbe {}
    }

    pub(super) fn sample(&self) -> ThreadSample {
        ThreadSample::Unknown
    }
}

/// See proc_pid_stat(5), proc_pid_schedstat(5) and proc_pid_syscall(5).
#[cfg(any(target_os = "linux", target_os = "android"))]
impl ThreadProbe {
    pub(crate) fn of_this_thread() -> ThreadProbe {
        let folder = std::fs::read_link("/proc/thread-self").ok();
        let folder = folder.and_then(|folder| Some(format!("/proc/{}", folder.to_str()?).into()));
        ThreadProbe { folder }
    }

    pub(super) fn sample(&self) -> ThreadSample {
        // A loop that is behind is checked every 50 µs, and each file takes 6 µs to read. So one
        // file is used to find out both whether the thread waits and in which system call. A kernel
        // may be built without that file.
        let syscall = self.read("syscall");
        let is_waiting = match &syscall {
            Some(syscall) => syscall.trim() != "running",
            None => match self.read("stat").as_deref().and_then(parse_state) {
                Some(state) => state != 'R',
                None => return ThreadSample::Unknown,
            },
        };
        let times = self.read("schedstat").as_deref().and_then(parse_times);
        let Some(times) = times else { return ThreadSample::Unknown };
        if !is_waiting {
            return ThreadSample::Runnable(times);
        }
        ThreadSample::Waiting { times, syscall: syscall.as_deref().and_then(parse_syscall) }
    }

    /// Reads a file with a single read: the kernel generates its content when it is read, and does
    /// not report its length.
    fn read(&self, file: &str) -> Option<String> {
        let mut text = vec![0; FILE_BYTES];
        let mut file = File::open(format!("{}/{file}", self.folder.as_deref()?)).ok()?;
        let read = file.read(&mut text).ok()?;
        text.truncate(read);
        String::from_utf8(text).ok()
    }
}

/// All of these files are shorter, except `stat`, of which only the beginning is needed.
#[cfg(any(target_os = "linux", target_os = "android"))]
const FILE_BYTES: usize = 256;

/// Returns the third field of `stat`. The second one is the thread's name in parentheses, which may
/// itself contain parentheses.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn parse_state(stat: &str) -> Option<char> {
    stat.get(stat.rfind(')')? + 1..)?.trim_start().chars().next()
}

/// Returns the first two of the three fields of `schedstat`, in nanoseconds.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn parse_times(schedstat: &str) -> Option<CpuTimes> {
    let mut fields = schedstat.split_whitespace().map(|field| field.parse().ok());
    let mut next = || fields.next().flatten().map(Duration::from_nanos);
    Some(CpuTimes { ran: next()?, queued: next()? })
}

/// Returns the first field of `syscall`, which is a number, -1 outside of a system call, or
/// `running`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn parse_syscall(syscall: &str) -> Option<u32> {
    syscall.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn the_proc_files_are_parsed_as_documented() {
        for (stat, state) in [
            ("12 (cat) R 1 12 12", Some('R')),
            ("12 (a) S (b) D 1 12 12", Some('D')),
            ("12 (cat)", None),
            ("12 (cat", None),
            ("", None),
        ] {
            assert_eq!(parse_state(stat), state, "{stat:?}");
        }
        let times = CpuTimes { ran: Duration::from_nanos(5), queued: Duration::from_nanos(7) };
        for (schedstat, read) in
            [("5 7 23\n", Some(times)), ("5\n", None), ("", None), ("5 x 1", None)]
        {
            assert_eq!(parse_times(schedstat), read, "{schedstat:?}");
        }
        for (syscall, number) in [
            ("202 0x3 0x7fc 0x2 0x2\n", Some(202)),
            ("-1 0x7ffd 0x7fca\n", None),
            ("running\n", None),
            ("", None),
        ] {
            assert_eq!(parse_syscall(syscall), number, "{syscall:?}");
        }
    }

    #[test]
    fn samples_tell_a_computing_thread_from_a_waiting_one() {
        let mine = ThreadProbe::of_this_thread();
        assert_ne!(mine.sample(), ThreadSample::Unknown, "this system has no schedstat in /proc");
        let (send, probe) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let computes = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|scope| {
            let computes = &computes;
            scope.spawn(move || {
                send.send(ThreadProbe::of_this_thread()).expect("the test waits");
                while computes.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                let _ = ended.recv();
            });
            let probe = probe.recv().expect("the thread sends it");
            // The kernel updates its times only occasionally.
            while !matches!(probe.sample(), ThreadSample::Runnable(times) if !times.ran.is_zero()) {
                std::thread::yield_now();
            }
            computes.store(false, std::sync::atomic::Ordering::Relaxed);
            // It is about to block.
            while !matches!(probe.sample(), ThreadSample::Waiting { syscall: Some(_), .. }) {
                std::thread::yield_now();
            }
            drop(end);
        });
    }

    #[test]
    fn the_state_of_an_ended_thread_is_unknown() {
        let probe = std::thread::scope(|scope| {
            scope.spawn(ThreadProbe::of_this_thread).join().expect("it does not panic")
        });
        while probe.sample() != ThreadSample::Unknown {
            std::thread::yield_now();
        }
        assert_eq!(ThreadProbe { folder: None }.sample(), ThreadSample::Unknown);
    }
}
