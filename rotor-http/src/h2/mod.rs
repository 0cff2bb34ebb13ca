//! HTTP/2 (RFC 9113) as pure code: bytes in, bytes out; no clock, no socket, no loop.
//!
//! **Feed it what was read, send what it wrote, end what it says.** Nothing here panics on a peer's
//! bytes, and nothing grows beyond a bound that is given to it.
//!
//! Hidden, and no part of what the crate promises: the door for its own tests and fuzz targets.
//!
//! | module | what it holds |
//! |--|--|
//! | `frame`, `frame_writer` | frames: read from their octets, and written |
//! | `error` | error codes; what goes wrong, and how far it reaches |
//! | `settings`, `window`, `stream_state` | what the peer takes; how much may be sent; where a stream is |
//! | `intake` | what has come on a stream, against its windows and its length |
//! | `hpack` | the compression of fields |
//! | `field_block` | a block of fields that comes in several frames, and what may not come in between |
//! | `field_reader` | the blocks of one peer, decoded |
//! | `request`, `response`, `trailers` | what the fields of a block are, and whether they may be |
//! | `field_text` | fields as our own writers wrote them, into a block |
//! | `priority`, `schedule` | which response goes first |
//! | `settings_watch` | until when ours are to be acknowledged |
//! | `bodies_watch`, `window_watch` | how fast bodies come; how fast what windows hold up is taken |
//! | `forgotten` | streams that were reset, and what of them is on its way |
//! | `ledger` | the windows of one side, for tests that compare both |
//! | `floods` | what no honest peer does so often |

pub(crate) mod bodies_watch;
pub(crate) mod error;
pub(crate) mod field_block;
pub(crate) mod field_reader;
pub(crate) mod field_space;
pub(crate) mod field_text;
pub(crate) mod floods;
pub(crate) mod forgotten;
pub mod frame;
pub mod frame_writer;
pub mod hpack;
pub(crate) mod intake;
pub(crate) mod ledger;
pub(crate) mod priority;
pub mod request;
pub mod response;
pub(crate) mod schedule;
pub mod settings;
pub(crate) mod settings_watch;
pub(crate) mod stream_state;
pub(crate) mod trailers;
pub(crate) mod window;
pub(crate) mod window_watch;

pub(crate) use self::bodies_watch::BodiesWatch;
pub use self::error::{ErrorCode, Violation};
pub(crate) use self::field_reader::{FieldBounds, FieldReader, FieldsOf};
pub(crate) use self::field_space::FieldSpace;
pub use self::floods::{Bucket, FloodLimits, Floods, Nuisance, Rate};
pub use self::forgotten::Forgotten;
pub(crate) use self::intake::Intake;
pub use self::ledger::Ledger;
pub use self::priority::Priority;
pub use self::schedule::Schedule;
pub use self::settings::PeerSettings;
pub use self::settings_watch::SettingsWatch;
pub use self::stream_state::{StreamEvent, StreamState};
pub use self::trailers::trailers_of;
pub use self::window::{ReceiveWindow, SendWindow};
pub(crate) use self::window_watch::{GrantWatch, WindowWatch};
