//! `Refusal`: why a handshake failed.

use quick_error::quick_error;
use rotor_http::{MessageError, Status};

quick_error! {
    /// Why a connection does not become a WebSocket. The peer's fault, unless stated otherwise.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum Refusal {
        /// The request does not ask for a WebSocket: its method is not GET, it has a body, or it
        /// has no `Upgrade: websocket`. 405 for another method; else 426, and over HTTP/2, which
        /// has no `Upgrade`, 400.
        NoWebSocket {
            display("the request does not ask for a WebSocket")
        }
        /// The request asks for a version other than 13 (RFC 6455 §4.4). 426, over HTTP/2 400, with
        /// the version.
        Version {
            display("the request asks for another version of WebSocket than 13")
        }
        /// The request has no `Sec-WebSocket-Key` of 16 bytes, or several. 400.
        Key {
            display("the request has no proper Sec-WebSocket-Key")
        }
        /// The page that asks is not allowed to ([`Origins`](crate::Origins)), or the request names
        /// several. 403.
        Origin {
            display("the request comes from a page that may not ask")
        }
        /// The server did not agree to switch: it answered with a status other than 101.
        Status(status: Status) {
            display("the server answered {status}")
        }
        /// The connection speaks HTTP/2, and its server takes no WebSockets there (RFC 8441 §3).
        /// The server got a plain GET, and answered that. Over HTTP/1.1 it may take WebSockets.
        /// HTTP/1.1 is spoken if the handshake of TLS offers `http/1.1`, beside `h2` with a
        /// [pool](rotor_http::client::Pool); without TLS, if no prior knowledge
        /// (`Http2Config::prior_knowledge`) is claimed.
        NotOnHttp2(status: Status) {
            display("the server takes no WebSockets over HTTP/2 (it has no RFC 8441), \
                     and answered {status}: offer it HTTP/1.1 as well, which it may take them over")
        }
        /// The server's answer is not for this request: `Upgrade`, `Connection` or
        /// `Sec-WebSocket-Accept` is missing or wrong (RFC 6455 §4.1).
        Answer {
            display("the server's answer is not that of a WebSocket to this request")
        }
        /// The server chose a subprotocol that was not offered, or several.
        Subprotocol {
            display("the server chose a subprotocol that was not offered")
        }
        /// The server uses an extension that was not offered, or not in this form.
        Extension {
            display("the server uses an extension that was not offered")
        }
        /// The response could not be written, because it had begun already. The caller's fault.
        Response(error: MessageError) {
            display("the response cannot be written: {error}")
        }
    }
}
