//! `Refusal`: why a handshake came to nothing.

use quick_error::quick_error;
use rotor_http::{MessageError, Status};

quick_error! {
    /// Why a connection does not become a WebSocket: the peer's fault, unless it says otherwise.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum Refusal {
        /// The request asks for no WebSocket: it has another method than GET, a body, or no
        /// `Upgrade: websocket`. 426, or 405.
        NoWebSocket {
            display("the request does not ask for a WebSocket")
        }
        /// The request asks for another version than 13 (RFC 6455 §4.4). 426, with the version.
        Version {
            display("the request asks for another version of WebSocket than 13")
        }
        /// The request has no `Sec-WebSocket-Key` of 16 bytes, or several. 400.
        Key {
            display("the request has no proper Sec-WebSocket-Key")
        }
        /// The page that asks is not one that may ([`Origins`](crate::Origins)). 403.
        Origin {
            display("the request comes from a page that may not ask")
        }
        /// The server did not agree to switch: it answered with another status than 101.
        Status(status: Status) {
            display("the server answered {status}")
        }
        /// The connection speaks HTTP/2, and its server takes no WebSockets there (RFC 8441 §3): it
        /// was asked as by any GET, and answered that. Over HTTP/1.1 it may take them: that is
        /// spoken where the handshake of TLS offers `http/1.1`, beside `h2` with a
        /// [pool](rotor_http::client::Pool), and without TLS where no prior knowledge
        /// (`Http2Config::prior_knowledge`) is claimed.
        NotOnHttp2(status: Status) {
            display("the server takes no WebSockets over HTTP/2 (it has no RFC 8441), \
                     and answered {status}: offer it HTTP/1.1 as well, which it may take them over")
        }
        /// The server's answer is not for this request: `Upgrade` or `Sec-WebSocket-Accept` is
        /// missing or wrong.
        Answer {
            display("the server's answer is not that of a WebSocket to this request")
        }
        /// The server chose a subprotocol that was not offered, or several.
        Subprotocol {
            display("the server chose a subprotocol that was not offered")
        }
        /// The server uses an extension that was not offered, or not in this way.
        Extension {
            display("the server uses an extension that was not offered")
        }
        /// The response could not be written: it had begun already. The caller's mistake.
        Response(error: MessageError) {
            display("the response cannot be written: {error}")
        }
    }
}
