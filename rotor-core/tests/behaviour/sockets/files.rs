//! Sending files, by the kernel and by copying.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net as unix;

use rotor_core::EarlyScope;
use rotor_core::net::{Either, StreamSocket};

use super::wrapped::Wrapper;
use super::{Paths, with_scope};
use crate::loops::{Adopt, OnKernel, StreamOn, UnixStreamOn, on_kernel_loops};

#[cfg(target_os = "linux")]
on_kernel_loops!(a_file_that_the_kernel_cannot_send_is_copied, "others copy all files");
#[cfg(target_os = "linux")]
fn a_file_that_the_kernel_cannot_send_is_copied<L: OnKernel>() {
    // The kernel has no pages of this file, so sendfile(2) refuses it.
    let path = "/proc/self/cmdline";
    let content = std::fs::read(path).expect("every process has one");
    let file = File::open(path).expect("as above");
    with_scope::<L, _>(|scope| {
        let (one, mut two) = unix::UnixStream::pair().expect("there are descriptors");
        let mut socket = UnixStreamOn::<L>::adopt(one, scope).expect("it is of this backend");
        assert_eq!(socket.send_file(&file, 2, 1 << 20).expect("there is room"), content.len() - 2);
        let end = content.len() as u64;
        assert_eq!(
            socket.send_file(&file, end, 1 << 20).expect("it is no failure"),
            0,
            "the file ends there"
        );
        drop(socket);
        let mut sent = Vec::new();
        two.read_to_end(&mut sent).expect("it was sent");
        assert_eq!(sent, content[2..]);
    });
}

/// Sends parts of a file from every interesting offset, and compares what arrives.
fn send_file_by<L: OnKernel, S: StreamSocket>(
    make: impl Fn(unix::UnixStream, &EarlyScope<'_>) -> S,
) {
    // Larger than the copy buffer.
    let content: Vec<u8> = (0..40_000u32).map(|byte| (byte % 251) as u8).collect();
    let directory = Paths::new();
    let path = directory.path("file");
    std::fs::write(&path, &content).expect("there is room");
    let file = File::open(&path).expect("it was written");
    with_scope::<L, _>(|scope| {
        for (offset, count) in
            [(0, 40_000), (1, 16_384), (1, 16_385), (39_999, 10), (20_000, 50_000), (7, 0)]
        {
            let (one, mut two) = unix::UnixStream::pair().expect("there are descriptors");
            let mut socket = make(one, scope);
            two.set_nonblocking(true).expect("it can be");
            let (mut sent, mut received) = (0, Vec::new());
            while sent < count {
                match socket.send_file(&file, offset + sent as u64, count - sent) {
                    Ok(0) => break,
                    Ok(len) => sent += len,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
                let mut bytes = [0; 1_000];
                while let Ok(len) = two.read(&mut bytes) {
                    received.extend_from_slice(&bytes[..len]);
                }
            }
            let end = content.len().min(offset as usize + count);
            assert!(received == content[offset as usize..end], "{offset} {count}");
            let past = socket.send_file(&file, 40_000, 10).expect("there is room");
            assert_eq!(past, 0, "0 says that the file ends before");
        }
    });
    std::fs::remove_file(path).expect("it is there");
}

on_kernel_loops!(files_arrive_alike_whether_sent_by_the_kernel_or_copied, "others copy all files");
fn files_arrive_alike_whether_sent_by_the_kernel_or_copied<L: OnKernel>() {
    let unix = |socket, scope: &EarlyScope<'_>| {
        UnixStreamOn::<L>::adopt(socket, scope).expect("of this backend")
    };
    send_file_by::<L, _>(unix);
    send_file_by::<L, _>(|socket, scope| Wrapper(unix(socket, scope)));
    send_file_by::<L, _>(|socket, scope| {
        Either::<StreamOn<L>, UnixStreamOn<L>>::B(unix(socket, scope))
    });
    send_file_by::<L, _>(|socket, scope| {
        Either::<Wrapper<UnixStreamOn<L>>, StreamOn<L>>::A(Wrapper(unix(socket, scope)))
    });
}
