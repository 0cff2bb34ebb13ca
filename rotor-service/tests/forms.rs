//! A form on a real socket, whose peer disconnects in the middle of it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop, Scope};
use rotor_http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Response, Server, ServerConfig,
};
use rotor_http::{BodyError, Method, Status, Trailers};
use rotor_service::{Multipart, MultipartConfig, Piece, Rejection};

const PATIENCE: Duration = Duration::from_secs(60);

/// The outcomes of forms, in the order in which they ended.
type Ends = Vec<String>;

/// Records the pieces of a form as they arrive.
struct Form {
    reader: Multipart,
    said: String,
}

impl Form {
    fn take(&mut self, mut input: &[u8]) -> Result<(), Rejection> {
        while let Some(piece) = self.reader.next(&mut input)? {
            match piece {
                Piece::Begin(head) => self.said += &format!("{}=", head.name()),
                Piece::Data(octets) => self.said += &octets.escape_ascii().to_string(),
                Piece::End => self.said.push('.'),
            }
        }
        Ok(())
    }
}

impl Server for Form {
    type Context = Ends;
    type Seed = ();
    type Upgrade = NoUpgrade<Ends>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Ends>,
    ) -> Next<Self> {
        if matches!(head.method(), Method::Delete) {
            scope.stop_loop();
            return response.reply(Status::OK, "text/plain", b"").into();
        }
        match Multipart::new(head.field("Content-Type"), &MultipartConfig::new()) {
            Ok(reader) => {
                let form = Form { reader, said: String::new() };
                Next::recv(form, RecvMode::Blocks).keep_deadline()
            }
            Err(refused) => refused.reply(response).into(),
        }
    }

    fn request_chunk(
        mut self,
        chunk: &[u8],
        response: &mut Response<'_>,
        _: &mut Scope<'_, Ends>,
    ) -> Next<Self> {
        match self.take(chunk) {
            Ok(()) => Next::go_on(self).keep_deadline(),
            Err(refused) => refused.reply(response).into(),
        }
    }

    fn request_end(
        self,
        _: &Trailers,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Ends>,
    ) -> Next<Self> {
        match self.reader.finish() {
            Ok(()) => {
                scope.push(format!("whole: {}", self.said));
                response.reply(Status::OK, "text/plain", b"").into()
            }
            Err(refused) => {
                scope.push(format!("refused: {}", self.said));
                refused.reply(response).into()
            }
        }
    }

    fn bad_request(self, _: BodyError, scope: &mut Scope<'_, Ends>) {
        // The form may be complete, but the body is not.
        let is_whole = self.reader.finish().is_ok();
        scope.push(format!("lost, {}: {}", if is_whole { "whole" } else { "cut" }, self.said));
    }
}

/// Sends a text, ends its side, and returns the answer.
#[expect(clippy::disallowed_methods, reason = "a peer is none of the loop's")]
fn say(address: SocketAddr, text: &str) -> String {
    let mut peer = TcpStream::connect(address).expect("it listens");
    peer.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    peer.write_all(text.as_bytes()).expect("it reads");
    peer.shutdown(Shutdown::Write).expect("it is there");
    let mut answer = String::new();
    // The server may reset the connection if it has not read everything.
    let _reset = peer.read_to_string(&mut answer);
    answer
}

const PART: &str = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\nHello";

/// The bytes that are sent of a body, the length of that body, and the outcome.
fn cases() -> [(String, usize, &'static str); 7] {
    let whole = format!("{PART}\r\n--x--\r\n");
    let len = whole.len();
    [
        (whole.clone(), len, "whole: a=Hello."),
        (PART.to_owned(), PART.len(), "refused: a=Hello"),
        (PART.to_owned(), len, "lost, cut: a=Hello"),
        (format!("{PART}\r\n--"), len, "lost, cut: a=Hello"),
        (PART[..20].to_owned(), len, "lost, cut: "),
        (String::new(), len, "lost, cut: "),
        (whole, len + 1, "lost, whole: a=Hello."),
    ]
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a peer is another thread")]
fn a_form_cut_short_by_its_peer_is_reported_as_lost() {
    let mut creator = Loop::<HttpAccept<Form, TcpListener>>::new(&Config::new()).expect("a loop");
    let mut bound = None;
    let added = creator.add_machine_with(|scope| {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(&any, &ListenOptions::new(), scope).expect("a port");
        bound = listener.local_address();
        server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope)
    });
    added.expect("there is room");
    let mut instance = creator.instantiate(Ends::new());
    let address = bound.expect("it was bound");
    let peer = std::thread::spawn(move || {
        let head =
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\n";
        let mut answers = Vec::new();
        for (sent, len, _) in cases() {
            answers.push(say(address, &format!("{head}Content-Length: {len}\r\n\r\n{sent}")));
            // In chunks; the last one is missing if the body is incomplete.
            let rest = if sent.len() == len { "0\r\n\r\n" } else { "" };
            let chunk =
                if sent.is_empty() { sent } else { format!("{:x}\r\n{sent}\r\n", sent.len()) };
            answers.push(say(
                address,
                &format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}{rest}"),
            ));
        }
        say(address, "DELETE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        answers
    });
    instance.run().expect("it runs");
    let answers = peer.join().expect("no panic");
    let expected = cases().map(|(_, _, end)| [end.to_owned(), end.to_owned()]).concat();
    assert_eq!(instance.into_context(), expected);
    for (answer, end) in answers.iter().zip(expected) {
        let status = if end.starts_with("whole") { "200" } else { "400" };
        assert!(
            answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{end}: {answer}"
        );
        assert!(!answer.is_empty() || end.starts_with("lost"), "{end}");
    }
}
