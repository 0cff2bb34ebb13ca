//! `HelloReader`: finds the end of a client's first message, and the server name that it requests.
//!
//! The hello is read here before a connection is made. Until it is complete, a peer costs only the
//! bytes that it has sent. A peer that speaks another protocol gets an answer that it understands.
//! And the key for that name can be chosen first. Everything else is for rustls, which reads the
//! same bytes again.

use rustls::pki_types::DnsName;

/// The maximum length of a hello in bytes, including the headers of its records; the same limit as
/// in rustls. The largest hellos in practice, with post-quantum keys, several tickets and much
/// padding, need a twentieth of it.
pub const HELLO_BYTES_MAX: usize = 64 * 1024;

/// The header of a record: type, version, length (RFC 8446 §5.1).
const RECORD_HEADER: usize = 5;
/// The header of a handshake message: type, length (RFC 8446 §4).
const MESSAGE_HEADER: usize = 4;

const TYPE_HANDSHAKE: u8 = 22;
const TYPE_CLIENT_HELLO: u8 = 1;
const EXTENSION_SERVER_NAME: u16 = 0;
const NAME_TYPE_HOST: u8 = 0;

/// The position of the reader in the bytes of a connection. It is remembered, so that a peer that
/// sends byte by byte costs no more than others.
#[derive(Default, Debug)]
pub(crate) struct HelloReader {
    /// Complete records before this position have been read.
    at: usize,
    /// How many bytes of the message these records contain.
    gathered: usize,
    /// The length of the message with its header; 0 until it is known.
    total: usize,
}

/// What the first bytes of a connection are.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum HelloResult {
    /// More bytes are needed.
    Incomplete,
    /// A complete hello; or something that rustls must reject.
    Hello {
        /// The server name that the client requests, in lower case; `None` if it requests none, or
        /// not a host.
        name: Option<Box<str>>,
    },
    /// An unencrypted HTTP request.
    PlainHttp,
    /// Not the beginning of a TLS record.
    NotTls,
    /// A hello longer than [`HELLO_BYTES_MAX`].
    TooLarge,
}

impl HelloReader {
    /// Returns whether these bytes, which `examine` has not rejected, begin with a record.
    pub(crate) fn is_tls(&self, bytes: &[u8]) -> bool {
        bytes.first() == Some(&TYPE_HANDSHAKE)
    }

    /// Examines all bytes so far: the same bytes as before, and more.
    pub(crate) fn examine(&mut self, bytes: &[u8]) -> HelloResult {
        match bytes.first() {
            None => return HelloResult::Incomplete,
            Some(&TYPE_HANDSHAKE) => {}
            Some(_) => return classify_non_tls(bytes),
        }
        while let Some((is_handshake, fragment)) = first_record(&bytes[self.at..]) {
            // rustls does not accept any other kind of record in between.
            if !is_handshake || fragment.is_empty() {
                return HelloResult::Hello { name: None };
            }
            self.at += RECORD_HEADER + fragment.len();
            self.gathered += fragment.len();
            if self.total == 0 && self.gathered >= MESSAGE_HEADER {
                self.total = message_len(&join_fragments(&bytes[..self.at]));
            }
            if self.total > HELLO_BYTES_MAX {
                return HelloResult::TooLarge;
            }
            if self.total != 0 && self.gathered >= self.total {
                let message = join_fragments(&bytes[..self.at]);
                return HelloResult::Hello { name: server_name(&message[..self.total]) };
            }
        }
        if is_too_long(&bytes[self.at..]) {
            return HelloResult::Hello { name: None };
        }
        if bytes.len() > HELLO_BYTES_MAX { HelloResult::TooLarge } else { HelloResult::Incomplete }
    }
}

/// Classifies bytes that are not TLS: perhaps they are HTTP, once there are enough of them.
fn classify_non_tls(bytes: &[u8]) -> HelloResult {
    // A method is a token, by convention in capitals, followed by a space (RFC 9112 §3). No common
    // method is longer.
    const METHOD_BYTES_MAX: usize = 16;
    let method = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    match bytes.get(method) {
        _ if method > METHOD_BYTES_MAX => HelloResult::NotTls,
        None => HelloResult::Incomplete,
        Some(b' ') if method >= 3 => classify_target(&bytes[..method], &bytes[method + 1..]),
        Some(_) => HelloResult::NotTls,
    }
}

/// Classifies bytes by what follows a word in capitals: a request target (RFC 9112 §3.2), or what
/// has none, such as `EHLO` of SMTP and the header of the PROXY protocol.
fn classify_target(method: &[u8], target: &[u8]) -> HelloResult {
    match target.first() {
        None => HelloResult::Incomplete,
        // A path; `*`; the host and port of a tunnel.
        Some(b'/' | b'*') => HelloResult::PlainHttp,
        Some(_) if method == b"CONNECT" => HelloResult::PlainHttp,
        Some(_) => classify_url(target),
    }
}

/// Classifies bytes by whether they begin a URL of HTTP.
fn classify_url(bytes: &[u8]) -> HelloResult {
    let prefixes = [&b"http://"[..], b"https://"];
    let begins = |prefix: &&[u8]| {
        let len = bytes.len().min(prefix.len());
        bytes[..len].eq_ignore_ascii_case(&prefix[..len])
    };
    match prefixes.into_iter().find(begins) {
        Some(prefix) if bytes.len() >= prefix.len() => HelloResult::PlainHttp,
        Some(_) => HelloResult::Incomplete,
        None => HelloResult::NotTls,
    }
}

/// Returns the first record, if it is complete: whether it belongs to a handshake, and its content.
fn first_record(bytes: &[u8]) -> Option<(bool, &[u8])> {
    let (header, rest) = bytes.split_at_checked(RECORD_HEADER)?;
    let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
    Some((header[0] == TYPE_HANDSHAKE, rest.get(..len)?))
}

/// Returns whether a record begins that exceeds the maximum length, so that it need not be waited
/// for.
fn is_too_long(bytes: &[u8]) -> bool {
    const FRAGMENT_BYTES_MAX: usize = 16 * 1024 + 2048;
    matches!(bytes, [_, _, _, high, low, ..]
        if usize::from(u16::from_be_bytes([*high, *low])) > FRAGMENT_BYTES_MAX)
}

/// Returns the message that is in complete records.
fn join_fragments(mut bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(bytes.len());
    while let Some((_, fragment)) = first_record(bytes) {
        message.extend_from_slice(fragment);
        bytes = &bytes[RECORD_HEADER + fragment.len()..];
    }
    message
}

/// Returns the length of a message, including its header. For a message that is not a hello this is
/// the length of the header; rustls reports what is wrong with it.
fn message_len(message: &[u8]) -> usize {
    match *message {
        [TYPE_CLIENT_HELLO, high, middle, low, ..] => {
            MESSAGE_HEADER + u32::from_be_bytes([0, high, middle, low]) as usize
        }
        _ => MESSAGE_HEADER,
    }
}

/// Returns the host name that a hello requests (RFC 6066 §3), if the hello is well-formed up to
/// there.
fn server_name(message: &[u8]) -> Option<Box<str>> {
    let mut reader = Reader(message.get(MESSAGE_HEADER..)?);
    // Version, random.
    reader.bytes(2 + 32)?;
    // Session, ciphers, compression methods (RFC 8446 §4.1.2).
    reader.vector8()?;
    reader.vector16()?;
    reader.vector8()?;
    let mut extensions = Reader(reader.vector16()?);
    loop {
        let kind = extensions.number()?;
        let body = extensions.vector16()?;
        if kind == EXTENSION_SERVER_NAME {
            let mut names = Reader(Reader(body).vector16()?);
            let is_host = names.bytes(1)? == [NAME_TYPE_HOST];
            let name = DnsName::try_from(names.vector16()?).ok()?;
            return is_host.then(|| name.as_ref().to_ascii_lowercase().into());
        }
    }
}

/// Reads vectors in the presentation language of TLS (RFC 8446 §3.4).
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u16> {
        self.bytes(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Returns the bytes after a length of one byte.
    fn vector8(&mut self) -> Option<&'a [u8]> {
        let len = self.bytes(1)?[0];
        self.bytes(len.into())
    }

    /// Returns the bytes after a length of two bytes.
    fn vector16(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.bytes(len.into())
    }
}

#[cfg(test)]
mod tests;
