//! The chat, with clients that talk, clients that do not read, and a client that floods.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use rotor_bench::server::Server;
use socket2::{Domain, Socket, Type};

use crate::support::{PATIENCE, connect, start_example};

/// The longest line, including its line end; the same as in the example.
const LINE_BYTES_MAX: usize = 1_024;

struct Client(BufReader<TcpStream>);

impl Client {
    /// Joins as the client with this number. Checks that all others are notified.
    fn join(address: SocketAddr, number: usize, others: &mut [&mut Client]) -> Client {
        Client::join_with(connect(address), number, others)
    }

    fn join_with(socket: TcpStream, number: usize, others: &mut [&mut Client]) -> Client {
        let mut client = Client(BufReader::new(socket));
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
    /// Each has to pause after a line, so several together are faster.
    const OTHERS: usize = 8;
    const LINES_AT_A_TIME: usize = 8;
    /// Far more than the chat and the kernel hold for the slow client, in bytes.
    const BYTES_MAX: usize = 16 << 20;
    let server = start_example("line_chat");
    let mut others: Vec<Client> = Vec::new();
    for number in 1..=OTHERS {
        let mut there: Vec<&mut Client> = others.iter_mut().collect();
        let client = Client::join(server.address(), number, &mut there);
        others.push(client);
    }
    let mut there: Vec<&mut Client> = others.iter_mut().collect();
    let socket = connect_with_small_buffers(server.address());
    let mut slow = Client::join_with(socket, OTHERS + 1, &mut there);
    let notice = format!("* {} left\n", OTHERS + 1);
    let line = format!("{}\n", "x".repeat(LINE_BYTES_MAX - 1));
    let mut said = 0;
    let mut notified = [false; OTHERS];
    while notified == [false; OTHERS] {
        assert!(said < BYTES_MAX, "{said} bytes were said to one who does not read");
        for other in &mut others {
            other.say(&line.repeat(LINES_AT_A_TIME));
        }
        said += OTHERS * LINES_AT_A_TIME * line.len();
        // Those who read are never far behind. The lines they receive are complete.
        for (other, is_notified) in others.iter_mut().zip(&mut notified) {
            let mut left = (OTHERS - 1) * LINES_AT_A_TIME;
            while left > 0 {
                let told = other.hear();
                if told == notice {
                    *is_notified = true;
                } else {
                    let is_whole = told.split_once(": ").is_some_and(|(_, said)| said == line);
                    assert!(is_whole, "{told:?}");
                    left -= 1;
                }
            }
        }
    }
    for (other, is_notified) in others.iter_mut().zip(notified) {
        assert!(is_notified || other.hear() == notice);
    }
    // What the kernel had buffered for it, and then EOF or a reset.
    let mut unread = Vec::new();
    let _end_or_reset = slow.0.read_to_end(&mut unread);
    assert!(unread.len() < said);
    others[1].say("that is better\n");
    assert_eq!(others[0].hear(), "2: that is better\n");
}

/// A connection for which the kernels of both sides buffer little: the server's buffer depends on
/// the segment size, too.
fn connect_with_small_buffers(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(1_024).expect("it is open");
    socket.set_tcp_mss(536).expect("it is open");
    socket.connect(&address.into()).expect("the server listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket.into()
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
