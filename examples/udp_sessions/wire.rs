//! The format of datagrams, as pure code.
//!
//! ```text
//! client says         server says
//! HELLO..             WELCOME number        the address is proven by its ACK; nothing more is sent to it before
//! ACK number          STATE number id:x,y.. each second, and again until ACK: itself first, then others
//! MOVE x y
//! BYE                 BYE
//!                     CLOSING number        again until ACK
//!                     ERROR                 that was no command
//!                     FULL                  no session for you
//! ```

/// The longest datagram that is accepted, in bytes.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 256;

/// The longest datagram that is sent, in bytes: one that passes everywhere in one packet.
pub(crate) const STATE_BYTES_MAX: usize = 1_200;

/// The shortest greeting, in bytes, which is as long as the longest answer to it. So a sender with
/// a forged address cannot make the server send more to that address than it sends itself.
pub(crate) const HELLO_BYTES_MIN: usize = "WELCOME 4294967295".len();

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Hello,
    Ack(u32),
    Move(i32, i32),
    Bye,
}

/// Parses a command. Returns `None` if it is invalid.
pub(crate) fn parse(datagram: &[u8]) -> Option<Command> {
    if datagram.len() > DATAGRAM_BYTES_MAX {
        return None;
    }
    let mut words = str::from_utf8(datagram).ok()?.split_ascii_whitespace();
    let command = match words.next()? {
        // The rest of it does not matter, as long as it is long enough.
        "HELLO" => return (datagram.len() >= HELLO_BYTES_MIN).then_some(Command::Hello),
        "ACK" => Command::Ack(words.next()?.parse().ok()?),
        "MOVE" => Command::Move(words.next()?.parse().ok()?, words.next()?.parse().ok()?),
        "BYE" => Command::Bye,
        _ => return None,
    };
    words.next().is_none().then_some(command)
}

pub(crate) fn welcome(number: u32) -> String {
    format!("WELCOME {number}")
}

pub(crate) fn closing(number: u32) -> String {
    format!("CLOSING {number}")
}

/// Writes as many positions as there is room for.
pub(crate) fn state(number: u32, positions: impl Iterator<Item = (u64, (i32, i32))>) -> String {
    let mut text = format!("STATE {number}");
    for (id, (x, y)) in positions {
        let entry = format!(" {id}:{x},{y}");
        if text.len() + entry.len() > STATE_BYTES_MAX {
            break;
        }
        text.push_str(&entry);
    }
    text
}
