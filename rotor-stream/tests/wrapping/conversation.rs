//! A client and a server that exchange bytes in pieces of any size.

use rotor_core::Machine;
use rotor_stream::Stream;
use rotor_stream::testing::{Peer, Scripted, TestLoop, pair};

use crate::negotiated_protocol::{LINE, Log, NegotiatedProtocol};
use crate::record::Record;

/// Carries bytes from one end to the other, this many at a time; returns whether there were any.
fn carry<M: Machine>(test: &mut TestLoop<M>, from: &Peer, to: &Peer, at_a_time: usize) -> bool {
    let bytes = from.take_received();
    for piece in bytes.chunks(at_a_time) {
        to.send(piece);
        test.settle();
    }
    !bytes.is_empty()
}

/// How many bytes move at a time.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    carried: usize,
    written: usize,
    /// By the wrapper, from the inner socket.
    read: usize,
}

/// Runs a conversation between a client and a server; returns the log.
fn run_conversation<const D: bool>(
    pieces: Pieces,
    has_narrow_edges: bool,
    key_after: [Option<usize>; 2],
) -> Log {
    let mut test = TestLoop::<Stream<NegotiatedProtocol, Record<Scripted<D>>>>::new(Log::new());
    if has_narrow_edges {
        test.world().narrow_edges();
    }
    let (socket, peer) = pair(test.world());
    let (client_socket, client) = pair(test.world());
    for end in [&peer, &client] {
        end.limit_writes(pieces.written);
    }
    let wrap = |record: Record<Scripted<D>>, after: Option<usize>| match after {
        Some(after) => record.with_read_max(pieces.read).change_key_after(after),
        None => record.with_read_max(pieces.read),
    };
    let server = wrap(Record::server(socket), key_after[0]);
    let wrapped = wrap(Record::client(client_socket, b"upper"), key_after[1]);
    test.add(|scope| Stream::connected(server, None, scope));
    test.add(|scope| Stream::connected(wrapped, Some(5), scope));
    loop {
        let mut moved = carry(&mut test, &client, &peer, pieces.carried);
        moved |= carry(&mut test, &peer, &client, pieces.carried);
        for (end, other) in [(&client, &peer), (&peer, &client)] {
            if end.is_ended() && end.received_len() == 0 {
                other.end();
            }
        }
        test.settle();
        if !moved {
            break;
        }
    }
    assert_eq!(test.failures(), Vec::<String>::new());
    assert_eq!(test.machines(), 0, "both have closed in order: {:?}", test.context());
    test.context().clone()
}

#[test]
fn a_conversation_is_the_same_however_it_is_cut() {
    let mut expected = vec!["serves upper".to_string()];
    expected.extend(vec![String::from_utf8_lossy(LINE).to_uppercase(); 5]);
    expected.push("the peer has ended the stream".to_string());
    for key_after in [[None, None], [Some(1), None], [None, Some(1)], [Some(0), Some(2)]] {
        for (carried, read) in
            [(usize::MAX, 7), (usize::MAX, 64), (1, 7), (2, 7), (3, 1), (11, 7), (11, 64)]
        {
            for (written, has_narrow_edges) in
                [(usize::MAX, false), (1, false), (5, true), (1, true)]
            {
                let pieces = Pieces { carried, written, read };
                for run in [run_conversation::<false>, run_conversation::<true>] {
                    assert_eq!(
                        run(pieces, has_narrow_edges, key_after),
                        expected,
                        "{pieces:?}, narrow edges {has_narrow_edges}, keys {key_after:?}"
                    );
                }
            }
        }
    }
}
