//! A TUN device with checksum and segmentation offload, and the kernel's TCP at the other end. The
//! test runs in a network namespace of its own, which requires root. Without that, it prints that
//! it is skipped.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the kernel's side is no machine: threads, sockets")]

use std::env;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rotor::net::ListenOptions;
use rotor::stream::{Accept, AcceptConfig, Stream};
use rotor::{Config, Loop, LoopHandle};
use rotor_smoltcp::{
    KernelDevice, Smoltcp, SmoltcpHandle, SmoltcpTcpListener, SmoltcpTcpStream, StackConfig,
};

use echo::Echo;

#[path = "../../tests/loops/echo.rs"]
mod echo;

/// Set in the process that runs inside the namespace.
const INSIDE: &str = "ROTOR_TEST_NAMESPACE";

/// The number of bytes in each direction, for each version of IP.
const BYTES: usize = 64 << 20;

const PORT: u16 = 7;

/// Whether the programs and permissions are available. Prints what is missing.
fn can_create_a_namespace() -> bool {
    let mut tries = Command::new("timeout");
    tries.args(["20", "unshare", "-n", "ip", "tuntap", "add", "dev", "a", "mode", "tun"]);
    let may = tries.output().is_ok_and(|output| output.status.success());
    if !may {
        eprintln!("skipped: no network namespace, or no /dev/net/tun");
    }
    may
}

#[test]
fn all_bytes_arrive_when_the_kernel_segments_packets() {
    if !can_create_a_namespace() {
        return;
    }
    let own = env::current_exe().expect("the test is a file");
    let mut inside = Command::new("timeout");
    inside.args(["-k", "5", "400", "unshare", "-n"]).arg(own).env(INSIDE, "1");
    inside.args(["--ignored", "--exact", "all_bytes_arrive_inside_a_namespace", "--nocapture"]);
    let output = inside.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

/// Serves on the device until it is stopped. Sends handles to stop it and to read its counters.
fn serve(addresses: [IpAddr; 2], ready: &mpsc::Sender<(LoopHandle, SmoltcpHandle)>) {
    type Machine = Accept<Stream<Echo, SmoltcpTcpStream>, SmoltcpTcpListener>;
    let device = KernelDevice::tun_offloading("rotor0").expect("it may be made");
    let [four, six] = addresses;
    let config = StackConfig::new().address(four, 24).address(six, 64);
    let backend = Smoltcp::open(device, &config).expect("it is in order");
    let mut creator =
        Loop::<Machine, _>::with_backend(backend, &Config::new()).expect("there is memory");
    let mut handle = None;
    for address in addresses {
        let made = creator.add_machine_with(|scope| {
            handle = SmoltcpHandle::of(scope, "a test").ok().cloned();
            let address = SocketAddr::new(address, PORT);
            Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
        });
        made.expect("the address is the stack's own");
    }
    let mut instance = creator.instantiate(());
    let stats = handle.expect("it is of this backend");
    ready.send((instance.handle(), stats)).expect("somebody waits");
    instance.run().expect("the device stays");
}

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status().expect("there is `ip`");
    assert!(status.success(), "ip {words}");
}

/// Sends bytes whose values depend on their position, and reads them back.
fn converse(target: SocketAddr) {
    let pattern: Vec<u8> = (0..251 * 261).map(|byte| (byte % 251) as u8).collect();
    let mut writes = TcpStream::connect(target).expect("somebody listens");
    let mut reads = writes.try_clone().expect("descriptors are left");
    reads.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a time");
    let sent = pattern.clone();
    let writer = thread::spawn(move || {
        for start in (0..BYTES).step_by(sent.len()) {
            let len = sent.len().min(BYTES - start);
            writes.write_all(&sent[..len]).expect("it is read");
        }
    });
    let (mut got, mut chunk) = (0, vec![0; 60_000]);
    while got < BYTES {
        let count = reads.read(&mut chunk).expect("there is more");
        assert!(count > 0, "the end after {got} bytes");
        assert!(chunk[..count] == pattern[got % 251..][..count], "at byte {got}");
        got += count;
    }
    writer.join().expect("it wrote all");
    assert_eq!(got, BYTES);
}

#[test]
#[ignore = "it is for the namespace in which the other one runs it"]
fn all_bytes_arrive_inside_a_namespace() {
    if env::var_os(INSIDE).is_none() {
        return;
    }
    let six = |last| IpAddr::from([0xfd00, 0x90, 0, 0, 0, 0, 0, last]);
    let addresses = [IpAddr::from([10, 90, 0, 2]), six(2)];
    let (ready, is_ready) = mpsc::channel();
    let server = thread::spawn(move || serve(addresses, &ready));
    let (handle, stats) = is_ready.recv().expect("it serves");
    ip("address add 10.90.0.1/24 dev rotor0");
    ip("address add fd00:90::1/64 dev rotor0 nodad");
    ip("link set rotor0 up");
    for address in addresses {
        let before = stats.stats();
        converse((address, PORT).into());
        let stats = stats.stats();
        // Nearly everything arrived and left in large packets.
        assert!(stats.merged - before.merged > (BYTES / 1_500 / 2) as u64, "{stats:?}");
        assert!(stats.received_large > before.received_large, "{stats:?}");
        assert!(stats.received - before.received < (BYTES / 1_500) as u64, "{stats:?}");
        assert_eq!((stats.headers_refused, stats.refused, stats.unsent), (0, 0, 0));
    }
    handle.stop();
    server.join().expect("it ended in order");
}
