//! What the system knows about a process, read from `/proc`. On systems without it, the
//! measurements that need it return an error, and everything else works.

use std::fs;
use std::io;
use std::process;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

/// CPU time that processes have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In user space: the part that a library can change.
    pub user: Duration,
    /// In the kernel, for the process.
    pub system: Duration,
}

impl CpuTimes {
    /// Returns user and system time together.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }

    /// Returns the time used since an earlier reading.
    pub fn since(&self, earlier: &CpuTimes) -> CpuTimes {
        CpuTimes {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// Returns the CPU time of a process with all its threads, and of its living descendants (a server
/// may have worker processes), in units of the system's clock tick.
///
/// # Errors
///
/// There is no `/proc`, or no such process.
pub fn cpu_times(pid: u32) -> io::Result<CpuTimes> {
    let mut sum = Stat::read(pid)?.times();
    for descendant in descendants(pid) {
        // The time of a descendant that has just ended is not counted. A server that works ends
        // none.
        if let Ok(stat) = Stat::read(descendant) {
            let times = stat.times();
            sum.user += times.user;
            sum.system += times.system;
        }
    }
    Ok(sum)
}

/// Returns the CPU time of the children of this process that have ended and been waited for.
///
/// # Errors
///
/// There is no `/proc`.
pub fn children_times() -> io::Result<CpuTimes> {
    let stat = Stat::read(process::id())?;
    Ok(ticks(stat.children_user_ticks, stat.children_system_ticks))
}

/// Returns the resident memory of a process and its living descendants, in bytes. Pages that they
/// share count for each.
///
/// # Errors
///
/// There is no `/proc`, or no such process.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    let mut sum = own_resident_bytes(pid)?;
    for descendant in descendants(pid) {
        sum += own_resident_bytes(descendant).unwrap_or(0); // It may have ended in between.
    }
    Ok(sum)
}

fn own_resident_bytes(pid: u32) -> io::Result<u64> {
    Ok(status_field(pid, "VmRSS")? * 1024)
}

/// Returns the peak resident memory of a process, in bytes, without its descendants.
///
/// # Errors
///
/// There is no `/proc`, or no such process.
pub fn peak_resident_bytes(pid: u32) -> io::Result<u64> {
    Ok(status_field(pid, "VmHWM")? * 1024)
}

/// Returns the current number of threads of a process.
///
/// # Errors
///
/// There is no `/proc`, or no such process.
pub fn threads(pid: u32) -> io::Result<u64> {
    status_field(pid, "Threads")
}

/// Returns the CPU time of the current threads of a process, in nanoseconds: for work that takes
/// less than some of the clock ticks in which [`cpu_times`] counts. The time of threads that have
/// ended is not included.
///
/// # Errors
///
/// There is no `/proc` with `schedstat`, or no such process.
pub fn threads_cpu_time(pid: u32) -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // The thread may have ended in between.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
        let nanoseconds = nanoseconds.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("schedstat: not understood: {text}"))
        })?;
        sum += Duration::from_nanos(nanoseconds);
    }
    Ok(sum)
}

/// Returns a number in `/proc/PID/status`. Numbers with a unit are in KiB.
fn status_field(pid: u32, name: &str) -> io::Result<u64> {
    let file = format!("/proc/{pid}/status");
    let text =
        fs::read_to_string(&file).map_err(|e| io::Error::new(e.kind(), format!("{file}: {e}")))?;
    parse_status(&text, name).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{file}: it has no number '{name}'"))
    })
}

fn parse_status(status: &str, name: &str) -> Option<u64> {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim_end_matches(" kB").trim().parse().ok()
}

/// Raises this process's limit of open descriptors, and thereby that of the servers that it starts,
/// as far as the system allows. Returns the new limit.
///
/// # Errors
///
/// The system refuses.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Returns the children of a process, their children, and so on, parents before children. Empty if
/// there is no `/proc`.
pub fn descendants(pid: u32) -> Vec<u32> {
    let processes: Vec<Stat> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Stat::read(pid).ok())
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(processes.iter().filter(|stat| stat.parent == parent).map(|stat| stat.pid));
        next += 1;
    }
    found.split_off(1)
}

/// Sends a signal.
///
/// # Errors
///
/// The process is gone or belongs to another user.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, signal)?)
}

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    pid: u32,
    parent: u32,
    user_ticks: u64,
    system_ticks: u64,
    children_user_ticks: u64,
    children_system_ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> io::Result<Stat> {
        let file = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&file)
            .map_err(|e| io::Error::new(e.kind(), format!("{file}: {e}")))?;
        Stat::parse(&text).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{file}: not understood: {text}"))
        })
    }

    /// Parses the file. See proc(5): the name, which is the second field, is in parentheses and may
    /// itself contain spaces and parentheses; the parent is the 4th field, user and system ticks
    /// are the 14th and 15th.
    fn parse(text: &str) -> Option<Stat> {
        let (pid, _) = text.split_once(' ')?;
        let (_, after_name) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Stat {
            pid: pid.parse().ok()?,
            parent: field(4)?.parse().ok()?,
            user_ticks: field(14)?.parse().ok()?,
            system_ticks: field(15)?.parse().ok()?,
            children_user_ticks: field(16)?.parse().ok()?,
            children_system_ticks: field(17)?.parse().ok()?,
        })
    }

    fn times(&self) -> CpuTimes {
        ticks(self.user_ticks, self.system_ticks)
    }
}

fn ticks(user: u64, system: u64) -> CpuTimes {
    let per_second = rustix::param::clock_ticks_per_second();
    let duration = |ticks: u64| Duration::from_nanos(ticks * (1_000_000_000 / per_second));
    CpuTimes { user: duration(user), system: duration(system) }
}

/// One core for the server and another one for the load generator, so that they do not take each
/// other's time.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    server: usize,
    generator: usize,
}

#[cfg(target_os = "linux")]
impl Cores {
    /// Picks the first two of the cores on which this process may run.
    ///
    /// # Errors
    ///
    /// There are fewer than two.
    pub fn pick() -> io::Result<Cores> {
        let allowed = rustix::thread::sched_getaffinity(None)?;
        let mut cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let (Some(server), Some(generator)) = (cores.next(), cores.next()) else {
            return Err(io::Error::other("pinning needs two cores"));
        };
        Ok(Cores { server, generator })
    }

    /// Moves the calling thread, and every process that it starts later, to the server's core.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn enter_server(&self) -> io::Result<()> {
        enter(self.server)
    }

    /// Moves the calling thread to the generator's core.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn enter_generator(&self) -> io::Result<()> {
        enter(self.generator)
    }
}

#[cfg(target_os = "linux")]
fn enter(core: usize) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

#[cfg(not(target_os = "linux"))]
impl Cores {
    /// Pinning is supported on Linux only.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn pick() -> io::Result<Cores> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "pinning is for Linux only"))
    }

    /// Never called, since [`pick`](Cores::pick) always fails.
    ///
    /// # Errors
    ///
    /// None.
    pub fn enter_server(&self) -> io::Result<()> {
        Ok(())
    }

    /// Never called, since [`pick`](Cores::pick) always fails.
    ///
    /// # Errors
    ///
    /// None.
    pub fn enter_generator(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process;
    use std::time::Duration;

    use super::{Stat, parse_status, peak_resident_bytes, resident_bytes, threads};

    #[test]
    fn numbers_of_a_status_file_are_found_by_their_full_name() {
        let status = "VmPeak:\t  99 kB\nVmRSS:\t    12 kB\nThreads:\t3\n";
        assert_eq!(parse_status(status, "VmRSS"), Some(12));
        assert_eq!(parse_status(status, "Threads"), Some(3));
        assert_eq!(parse_status(status, "Vm"), None);
        assert_eq!(parse_status("Name:\tkthreadd\n", "Name"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_used_memory_threads_and_time() {
        let pid = process::id();
        assert!(threads(pid).expect("it runs") >= 1);
        assert!(super::threads_cpu_time(pid).expect("it runs") > Duration::ZERO);
        let resident = resident_bytes(pid).expect("it runs");
        assert!(resident > 0 && peak_resident_bytes(pid).expect("it runs") > 0);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_shifts_no_field() {
        let text = "42 (a) (b c) S 7 42 42 0 -1 4194560 100 0 0 0 5 6 8 9 20 0 1 0 100 1000 10";
        let expected = Stat {
            pid: 42,
            parent: 7,
            user_ticks: 5,
            system_ticks: 6,
            children_user_ticks: 8,
            children_system_ticks: 9,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("42 (a) S 7"), None);
    }
}
