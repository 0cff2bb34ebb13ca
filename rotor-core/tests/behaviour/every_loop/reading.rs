//! Reading into memory that the socket does not see.

use std::io;

use rotor_core::net::{ReadBuf, StreamSocket};
use rotor_core::{Config, Interest, Response, Scope};

use super::TEXT;
use crate::actor::{Actor, Call, actor};
use crate::loops::{End, MaybeSend, OnLoop, Rig, StreamOn, on_every_loop};

#[derive(Default)]
struct ReadProgress {
    bytes: Vec<u8>,
    /// How often there was nothing to read.
    nothing: usize,
    has_ended: bool,
}

/// Reads once, after a byte that the socket did not supply.
fn read_after_prefix(socket: &mut impl StreamSocket) -> io::Result<Vec<u8>> {
    let (mut memory, mut count) = ([0; 16], 0);
    let mut buf = ReadBuf::new(&mut memory, &mut count);
    buf.put_slice(b"#");
    let result = socket.read_unseen(&mut buf);
    assert_eq!(memory[0], b'#');
    result.map(|()| memory[1..count].to_vec())
}

/// Writes a byte, then reads until EOF.
fn reader<S: StreamSocket + MaybeSend>(
    mut socket: S,
    scope: &Scope<'_, ReadProgress>,
) -> Actor<ReadProgress> {
    scope.register(&mut socket, Interest::Both).expect("it is of this backend");
    let mut is_connected = false;
    actor(move |call, scope: &mut Scope<'_, ReadProgress>| {
        let Call::Ready(_) = call else { return Response::keep(()) };
        Response::attempt(|| {
            if !is_connected {
                is_connected = socket.has_connected()?;
                if !is_connected {
                    return Ok(Response::keep(()));
                }
                assert_eq!(socket.write(b"x")?, 1);
            }
            loop {
                match read_after_prefix(&mut socket) {
                    Ok(bytes) if bytes.is_empty() => {
                        scope.has_ended = true;
                        return Ok(Response::done());
                    }
                    Ok(bytes) => scope.bytes.extend(bytes),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        scope.nothing += 1;
                        return Ok(Response::keep(()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        })
    })
}

on_every_loop!(
    reads_append_to_the_buffer_and_would_block_is_no_end,
    not mio: "the kernel may read into memory that it does not see anyway, and a stream knows that",
    not simulated: "it reads by `read`"
);
fn reads_append_to_the_buffer_and_would_block_is_no_end<L: OnLoop>() {
    let mut rig = Rig::<Actor<ReadProgress>, L>::new(&Config::new(), ReadProgress::default());
    let (mut door, target) = rig.peer_listener();
    rig.add(|scope| {
        Response::attempt(|| {
            let socket = StreamOn::<L>::connect(&target, scope)?;
            Ok(Response::ok(reader(socket, scope)))
        })
    });
    let mut end = rig.accept_peer(&mut door);
    rig.until(|rig| rig.machines() == 0 || rig.context(|got| got.nothing > 0));
    assert!(rig.context(|got| !got.has_ended), "there is nothing yet");
    rig.send(&mut end, TEXT).expect("there is room");
    rig.until(|rig| rig.machines() == 0 || rig.context(|got| got.bytes.len() == TEXT.len()));
    assert!(rig.context(|got| got.bytes == TEXT && !got.has_ended));
    end.end().expect("it is connected");
    rig.until(|rig| rig.machines() == 0);
    assert!(rig.context(|got| got.has_ended));
}
