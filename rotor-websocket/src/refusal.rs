//! `Refusal`: why a handshake failed.

use quick_error::quick_error;
use rotor_http::{MessageError, Status};

quick_error! {
    /// Why a connection does not become a WebSocket. The peer's mistake, unless stated otherwise.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum Refusal {
        /// The request does not ask for a WebSocket: its method is not GET, it has a body, or it
        /// has no `Upgrade: websocket`. The client gets 405 for another method; otherwise 426, or
        /// 400 over HTTP/2, which has no `Upgrade`.
        NoWebSocket {
            display("the request does not ask for a WebSocket")
        }
        /// The request asks for a version other than 13 (RFC 6455 §4.4). The client gets 426, or
        /// 400 over HTTP/2, with the supported version.
        Version {
            display("the request asks for a WebSocket version other than 13")
        }
        /// The request has no `Sec-WebSocket-Key` of 16 bytes, or several. The client gets 400.
        Key {
            display("the request has no valid Sec-WebSocket-Key")
        }
        /// The page that sent the request is not allowed to ([`Origins`](crate::Origins)), or the
        /// request names several origins. The client gets 403.
        Origin {
            display("the origin of the request is not allowed")
        }
        /// The server refused: it responded with a status other than 101.
        Status(status: Status) {
            display("the server answered {status}")
        }
        /// The connection speaks HTTP/2, and its server does not support WebSockets over it (RFC
        /// 8441 §3). The server got a plain GET, and responded to that. Over HTTP/1.1 it may
        /// support WebSockets. To use HTTP/1.1, let the TLS handshake offer `http/1.1`, beside `h2`
        /// if a [pool](rotor_http::client::Pool) is used; without TLS, do not set prior knowledge
        /// (`Http2Config::prior_knowledge`).
        NotOnHttp2(status: Status) {
            display("the server takes no WebSockets over HTTP/2 (it has no RFC 8441), \
                     and answered {status}: offer it HTTP/1.1 as well, which it may take them over")
        }
        /// The server's response does not belong to this request: `Upgrade`, `Connection` or
        /// `Sec-WebSocket-Accept` is missing or wrong (RFC 6455 §4.1).
        Answer {
            display("the server's answer is not that of a WebSocket to this request")
        }
        /// The server chose a subprotocol that was not offered, or several.
        Subprotocol {
            display("the server chose a subprotocol that was not offered")
        }
        /// The server uses an extension that was not offered, or with parameters that were not
        /// offered.
        Extension {
            display("the server uses an extension that was not offered")
        }
        /// The response could not be written, because it had already begun. The caller's mistake.
        Response(error: MessageError) {
            display("the response cannot be written: {error}")
        }
    }
}
