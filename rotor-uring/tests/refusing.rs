//! Systems that really refuse a ring: by a seccomp filter on the test's thread, and by limits on a
//! separate process. The program runs on mio, and one log line says why.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "a filter is for one thread; the other end is no machine"
)]

use std::cell::RefCell;
use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Once;
use std::thread;
use std::time::Duration;

use rotor::net::{IpNet, ListenOptions};
use rotor::stream::{Accept, AcceptConfig, Stream};
use rotor::{Backend, Config, Loop};
use rotor_uring::{Choice, OnAnyLoop, Uring, UringConfig, UringKind, choose};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use echo::Echo;

#[path = "../../tests/loops/echo.rs"]
mod echo;

/// The numbers of io_uring_setup(2) and the other two system calls, the same on every current
/// architecture.
const SETUP: i64 = 425;
const ENTER: i64 = 426;
const REGISTER: i64 = 427;

/// Set in the process that runs a test under a limit.
const LIMITED: &str = "ROTOR_TEST_LIMITED";

#[test]
fn a_ring_forbidden_by_seccomp_falls_back_to_mio_and_logs_why() {
    // If there is no ring even without our filter, the line may give the reason for that: another
    // filter already forbids it, the sysctl is at 1 or 2, or the kernel is too old.
    let no_ring = Uring::open(&UringConfig::new()).err();
    if let Some(refused) = &no_ring {
        eprintln!("skipped, at what it is refused: {refused}");
    }
    for (call, errno, cause) in [
        (SETUP, Errno::PERM, "a ring: a seccomp filter forbids it"),
        (SETUP, Errno::NOSYS, "or a seccomp filter hides it"),
        (REGISTER, Errno::ACCESS, "a ring: a seccomp filter forbids it"),
        (ENTER, Errno::PERM, "a first call: a seccomp filter forbids it"),
        (ENTER, Errno::NOSYS, "a first call: the kernel was built without it"),
    ] {
        // The filter applies to this thread and ends with it.
        let tried = thread::spawn(move || {
            forbid(call, errno).map(|()| run(Choice::Uring, &UringConfig::new()))
        });
        let Some((name, lines)) = tried.join().expect("it ends in order") else { return };
        assert_eq!(name.expect("mio is there"), "mio", "{call}");
        assert_one_line(&lines, if no_ring.is_none() { cause } else { "" });
    }
}

#[test]
fn a_refused_kind_is_none_and_logs_why() {
    let ask = |choice| {
        clear_lines();
        (UringKind::chosen(choice, &UringConfig::new()).is_some(), LINES.take())
    };
    assert_eq!(ask(Choice::Mio), (false, Vec::new()), "it was not asked for");
    let (is_there, lines) = ask(Choice::Uring);
    assert_eq!(lines.len(), usize::from(!is_there), "{lines:?}");
    let tried = thread::spawn(move || forbid(SETUP, Errno::PERM).map(|()| ask(Choice::Uring)));
    let Some((is_there, lines)) = tried.join().expect("it ends in order") else { return };
    assert!(!is_there);
    assert_one_line(&lines, "");
}

#[test]
fn an_allowed_choice_is_used_and_logs_nothing() {
    assert_eq!(run(Choice::Mio, &UringConfig::new()).0.expect("mio is there"), "mio");
    let (name, lines) = run(Choice::Uring, &UringConfig::new());
    match (name.expect("a loop is there").as_str(), &lines[..]) {
        ("io_uring", []) => {}
        ("mio", [line]) => eprintln!("skipped: {line}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_program_runs_on_mio_without_memory_for_its_buffers() {
    run_limited("the_program_runs_on_mio_without_memory_for_its_buffers", |error| {
        // The ring itself is created; the gigabyte of buffers is not.
        set_limit(Resource::As, address_space() + (256 << 20));
        let config = UringConfig::new().buffers(1_024, 1 << 20);
        assert_eq!(error(&config), Some(Errno::NOMEM));
        let (name, lines) = run(Choice::Uring, &config);
        assert_eq!(name.expect("mio is there"), "mio");
        assert_one_line(&lines, "fewer or smaller");
    });
}

#[test]
fn a_ring_is_opened_without_address_space_for_all_sockets() {
    run_limited("a_ring_is_opened_without_address_space_for_all_sockets", |error| {
        // What the allocator has reserved is taken first.
        set_limit(Resource::As, address_space());
        let mut taken = Vec::with_capacity(10_000);
        let mut piece = Vec::<u8>::new();
        while taken.len() < taken.capacity() && piece.try_reserve_exact(64 << 10).is_ok() {
            taken.push(std::mem::take(&mut piece));
        }
        // Enough for the ring and its buffers, and too little for the table of 65,536 sockets.
        set_limit(Resource::As, address_space() + (2 << 20));
        let refused = error(&UringConfig::new().buffers(2, 4_096));
        // Rings of other tests may leave the user no memory to lock.
        assert!(matches!(refused, None | Some(Errno::NOMEM)), "{refused:?}");
    });
}

#[test]
fn a_ring_without_descriptors_closes_what_it_opened() {
    run_limited("a_ring_without_descriptors_closes_what_it_opened", |error| {
        // All lower descriptors are in use, even if some were inherited: the system assigns the
        // lowest free number.
        set_limit(Resource::Nofile, u64::MAX);
        let highest = highest_descriptor();
        if getrlimit(Resource::Nofile).current.is_some_and(|most| most < highest + 5) {
            return eprintln!("skipped: RLIMIT_NOFILE leaves no room");
        }
        while next_descriptor(true) < highest {}
        let first = next_descriptor(false);
        // The waker and its copy are opened; the ring is not. Rings of other tests may leave the
        // user no memory to lock.
        for free in 0..3 {
            set_limit(Resource::Nofile, first + free);
            let refused = error(&UringConfig::new());
            let is_right = matches!(refused, Some(Errno::MFILE | Errno::NOMEM));
            assert!(is_right, "{free}: {refused:?}");
            set_limit(Resource::Nofile, first + 10);
            assert_eq!(next_descriptor(false), first, "{free}");
        }
        set_limit(Resource::Nofile, first + 3);
        let refused = error(&UringConfig::new());
        assert!(matches!(refused, None | Some(Errno::NOMEM)), "three suffice: {refused:?}");
    });
}

#[test]
fn the_program_runs_on_mio_without_memory_to_lock() {
    run_limited("the_program_runs_on_mio_without_memory_to_lock", |error| {
        set_limit(Resource::Memlock, 0);
        // With this capability, a process may lock any amount of memory.
        let mut own = capabilities(None).expect("they are read");
        own.effective.remove(CapabilitySet::IPC_LOCK);
        set_capabilities(None, own).expect("whoever has one may lay it aside");
        let Some(errno) = error(&UringConfig::new()) else {
            return eprintln!("skipped: this kernel does not count its queues as locked memory");
        };
        assert_eq!(errno, Errno::NOMEM);
        let (name, lines) = run(Choice::Uring, &UringConfig::new());
        assert_eq!(name.expect("mio is there"), "mio");
        assert_one_line(&lines, LOCKED);
    });
}

/// Part of the message if no more memory may be locked.
const LOCKED: &str = "raise RLIMIT_MEMLOCK";

/// Asserts that one line was logged, which says why the loop runs on mio.
fn assert_one_line(lines: &[String], cause: &str) {
    let [line] = lines else { panic!("{cause}: {lines:?}") };
    assert!(line.starts_with("the loop runs on mio: io_uring refused: "), "{line}");
    // A dropped ring still counts for a moment, against the limit for all rings of the user.
    assert!(line.contains(cause) || line.contains(LOCKED), "{cause}: {line}");
}

/// Makes this system call fail on the current thread. If that is impossible, prints why and returns
/// `None`.
fn forbid(call: i64, errno: Errno) -> Option<()> {
    let forbidden = SeccompAction::Errno(errno.raw_os_error().unsigned_abs());
    let install = || -> Result<(), Box<dyn Error>> {
        let rules = [(call, Vec::new())].into_iter().collect();
        let arch = env::consts::ARCH.try_into()?;
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, forbidden, arch)?;
        Ok(apply_filter(&BpfProgram::try_from(filter)?)?)
    };
    install().map_err(|why| eprintln!("skipped: no seccomp filter: {why}")).ok()
}

/// Opens a ring. Returns the error if the system refuses it.
type Open = dyn Fn(&UringConfig) -> Option<Errno>;

/// Runs this test again in a separate process. There, it calls `test` with a function that opens a
/// ring and returns the system's error.
fn run_limited(name: &str, test: fn(&Open)) {
    let open = |config: &UringConfig| {
        let refused = Uring::open(config).err()?;
        Some(Errno::from_io_error(refused.error()).expect("it is the system's"))
    };
    if env::var_os(LIMITED).is_some() {
        return test(&open);
    }
    if let Err(refused) = Uring::open(&UringConfig::new()) {
        return eprintln!("skipped: {refused}");
    }
    let program = env::current_exe().expect("it runs");
    let arguments = ["--exact", name, "--nocapture", "--test-threads", "1"];
    let output =
        Command::new(program).args(arguments).env(LIMITED, "1").output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text.lines().filter(|line| line.contains("skipped: ")).for_each(|line| eprintln!("{line}"));
}

/// Sets the soft limit, to the hard limit at most; the hard limit stays.
fn set_limit(resource: Resource, to: u64) {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(to, |most| most.min(to)));
    setrlimit(resource, Rlimit { current, maximum }).expect("it is no more than one may have");
}

/// The size of the address space in bytes, including untouched memory.
fn address_space() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("it has one");
    let kib = line.trim().strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok());
    kib.expect("a number") * 1024
}

/// The highest descriptor in use.
fn highest_descriptor() -> u64 {
    let open = fs::read_dir("/proc/self/fd").expect("there is /proc");
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.max().expect("that of the folder")
}

/// The number of the next descriptor, which stays open if `is_kept`.
fn next_descriptor(is_kept: bool) -> u64 {
    let file = fs::File::open("/dev/null").expect("it is there");
    let number = u64::try_from(file.as_raw_fd()).expect("it is no error");
    if is_kept {
        // Open until the process ends, together with the test.
        std::mem::forget(file);
    }
    number
}

/// The name of the loop that a program runs on, and the lines that were logged.
fn run(choice: Choice, config: &UringConfig) -> (io::Result<String>, Vec<String>) {
    clear_lines();
    let name = choose(choice, config, OneEcho);
    (name, LINES.take())
}

/// Discards this thread's log lines. From here on, new ones are kept.
fn clear_lines() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        log::set_logger(&Lines).expect("no other was installed");
        log::set_max_level(log::LevelFilter::Info);
    });
    LINES.with_borrow_mut(Vec::clear);
}

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what each thread logs.
struct Lines;

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.level() <= log::Level::Info {
            LINES.with_borrow_mut(|lines| lines.push(record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// Serves one connection, which sends something and reads it back. Returns the name of the loop.
struct OneEcho;

impl OnAnyLoop for OneEcho {
    type Output = String;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> String {
        let creator = Loop::<Accept<Stream<Echo, N::Stream>, N::Listener>, B>::with_backend(
            backend,
            &Config::new(),
        );
        let mut creator = creator.expect("there is memory");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut name = String::new();
        let made = creator.add_machine_with(|scope| {
            name = scope.backend().name().into();
            Accept::bind(&any, &ListenOptions::new(), (), AcceptConfig::new(), scope)
        });
        made.expect("a port is free");
        let mut instance = creator.instantiate(());
        let address = instance.machines().iter().find_map(|(_, machine)| machine.local_address());
        let mut client = TcpStream::connect(address.expect("it is bound")).expect("it listens");
        client.set_nonblocking(true).expect("it can be");
        client.write_all(b"hello").expect("it fits");
        let mut heard = [0; 5];
        for _ in 0..10_000 {
            instance.turn(Some(Duration::from_millis(1))).expect("the loop goes on");
            if client.read(&mut heard).is_ok() {
                break;
            }
        }
        assert_eq!(&heard, b"hello", "on {name}");
        name
    }
}
