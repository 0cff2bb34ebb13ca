//! The chat, with clients that talk, clients that do not read, and a client that floods.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr};

use rotor_bench::server::Server;
use socket2::SockRef;

use crate::support::{PATIENCE, connect, start_example};

/// The longest line, including its line end; the same as in the example.
const LINE_BYTES_MAX: usize = 1_024;

struct Client(BufReader<std::net::TcpStream>);

impl Client {
    /// Joins as the client with this number. Checks that all others are notified.
    fn join(address: SocketAddr, number: usize, others: &mut [&mut Client]) -> Client {
        let mut client = Client(BufReader::new(connect(address)));
        assert_eq!(client.hear(), format!("* you are {number}\n"));
        for other in others {
            assert_eq!(other.hear(), format!("* {number} joined\n"));
        }
        client
    }

    fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).expect("the server takes it");
    }

    /// The next line, or an empty string at EOF.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line or a good end");
        line
    }
}

#[test]
fn a_line_reaches_all_other_clients() {
    let server = start_example("line_chat");
    let address = server.address();
    let mut first = Client::join(address, 1, &mut []);
    let mut second = Client::join(address, 2, &mut [&mut first]);
    let mut third = Client::join(address, 3, &mut [&mut first, &mut second]);
    second.say("hello, all");
    first.say("I am first\n");
    assert_eq!((second.hear(), third.hear()), ("1: I am first\n".into(), "1: I am first\n".into()));
    // The rest of a line and another line, in one write.
    second.say(" of you\n\n");
    for other in [&mut first, &mut third] {
        assert_eq!((other.hear(), other.hear()), ("2: hello, all of you\n".into(), "2: \n".into()));
    }
    // A partial line is dropped when its sender leaves.
    third.say("I am go");
    third.0.get_mut().shutdown(Shutdown::Write).expect("it is connected");
    assert_eq!((first.hear(), second.hear()), ("* 3 left\n".into(), "* 3 left\n".into()));
    assert_eq!(third.hear(), "");
    first.say("still there?\n");
    assert_eq!(second.hear(), "1: still there?\n");
}

#[test]
fn an_overlong_line_ends_only_its_sender() {
    let server = start_example("line_chat");
    let mut listener = Client::join(server.address(), 1, &mut []);
    let mut speaker = Client::join(server.address(), 2, &mut [&mut listener]);
    let longest = format!("{}\n", "x".repeat(LINE_BYTES_MAX - 1));
    speaker.say(&longest);
    assert_eq!(listener.hear(), format!("2: {longest}"));
    speaker.say(&format!("{}\n", "x".repeat(LINE_BYTES_MAX)));
    assert_eq!(listener.hear(), "* 2 left\n");
    let mut another = Client::join(server.address(), 3, &mut [&mut listener]);
    another.say("next\n");
    assert_eq!(listener.hear(), "3: next\n");
}

#[test]
fn a_client_that_does_not_read_is_dropped_and_the_others_continue() {
    const LINES_AT_A_TIME: usize = 64;
    /// More than the kernel can buffer for one connection by far, in bytes.
    const BYTES_MAX: usize = 512 << 20;
    let server = start_example("line_chat");
    let mut speaker = Client::join(server.address(), 1, &mut []);
    let mut listener = Client::join(server.address(), 2, &mut [&mut speaker]);
    let mut slow = Client::join(server.address(), 3, &mut [&mut speaker, &mut listener]);
    // The speaker has to wait after each line, so a small buffer makes this short.
    SockRef::from(slow.0.get_ref()).set_recv_buffer_size(1_024).expect("it is open");
    let line = format!("{}\n", "x".repeat(LINE_BYTES_MAX - 1));
    let heard = format!("1: {line}");
    let mut said = 0;
    let mut is_dropped = false;
    while !is_dropped {
        assert!(said < BYTES_MAX, "{said} bytes were said to one who does not read");
        speaker.say(&line.repeat(LINES_AT_A_TIME));
        said += LINES_AT_A_TIME * line.len();
        // The listener is never far behind. The lines it receives are complete and in order.
        let mut left = LINES_AT_A_TIME;
        while left > 0 {
            match listener.hear() {
                told if told == "* 3 left\n" => is_dropped = true,
                told => {
                    assert!(told == heard, "{told:?}");
                    left -= 1;
                }
            }
        }
    }
    assert_eq!(speaker.hear(), "* 3 left\n");
    // What the kernel had buffered for it, and then EOF or a reset.
    let mut unread = Vec::new();
    let _end_or_reset = slow.0.read_to_end(&mut unread);
    assert!(unread.len() < said);
    listener.say("that is better\n");
    assert_eq!(speaker.hear(), "2: that is better\n");
}

#[test]
fn sigterm_ends_the_chat_in_order_and_prints_its_totals() {
    let server = start_example("line_chat");
    let address = server.address();
    let try_this = server.next_line(PATIENCE).unwrap_or_default();
    assert_eq!(try_this, format!("try, in two terminals: nc {} {}", address.ip(), address.port()));
    let mut first = Client::join(address, 1, &mut []);
    let mut second = Client::join(address, 2, &mut [&mut first]);
    terminate(&server);
    assert_eq!(
        server.next_line(PATIENCE).as_deref(),
        Some("at the end: 2 clients came, 0 are there")
    );
    assert_eq!((first.hear(), second.hear()), (String::new(), String::new()));
}

fn terminate(server: &Server) {
    let signal = std::process::Command::new("kill").arg(server.pid().to_string()).status();
    assert!(signal.expect("a Unix system").success());
}
