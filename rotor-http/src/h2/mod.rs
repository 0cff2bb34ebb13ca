//! HTTP/2 (RFC 9113) as pure code: bytes in, bytes out; no clock, no socket, no loop.
//!
//! **Feed it the bytes that were read, send the bytes that it wrote, and end the streams and
//! connections that it says must end.** Nothing here panics on a peer's bytes, and nothing grows
//! beyond a given limit.
//!
//! This module is hidden and not part of the crate's public API. It is there for the crate's own
//! tests and fuzz targets.
//!
//! | module | contents |
//! |--|--|
//! | `frame`, `frame_writer` | reading and writing frames |
//! | `error` | error codes; violations of the protocol, by a stream or a connection |
//! | `settings`, `window`, `stream_state` | settings of the peer; windows; states of a stream |
//! | `intake` | the DATA received on a stream, checked against its windows and its length |
//! | `hpack` | the compression of fields |
//! | `field_block` | a block of fields in several frames, which no other frame may interrupt |
//! | `field_reader` | decodes the blocks of one peer |
//! | `request`, `response`, `trailers` | checks the fields of a block as a head or as trailers |
//! | `field_text` | encodes fields that our own writers wrote as text |
//! | `priority`, `schedule`, `turn` | the order in which responses are sent |
//! | `settings_watch` | the time limit for the acknowledgement of our settings |
//! | `bodies_watch`, `window_watch` | minimum rates of bodies, and of what windows hold up |
//! | `reset_streams` | streams that were reset, and frames for them that may still arrive |
//! | `ledger` | the windows of one side, for tests that compare both |
//! | `floods` | limits for frames that no honest peer sends so often |

pub(crate) mod bodies_watch;
pub(crate) mod error;
pub(crate) mod field_block;
pub(crate) mod field_reader;
pub(crate) mod field_space;
pub(crate) mod field_text;
pub(crate) mod floods;
pub mod frame;
pub mod frame_writer;
pub mod hpack;
pub(crate) mod intake;
pub(crate) mod ledger;
pub(crate) mod priority;
pub mod request;
pub(crate) mod reset_streams;
pub mod response;
pub(crate) mod schedule;
pub mod settings;
pub(crate) mod settings_watch;
pub(crate) mod stream_state;
pub(crate) mod trailers;
pub(crate) mod turn;
pub(crate) mod window;
pub(crate) mod window_watch;

pub(crate) use self::bodies_watch::BodiesWatch;
pub(crate) use self::error::GoAwayReason;
pub use self::error::{ErrorCode, Violation};
pub(crate) use self::field_reader::{FieldBlockInfo, FieldBounds, FieldReader};
pub(crate) use self::field_space::FieldSpace;
pub use self::floods::{Bucket, FloodBuckets, FloodLimits, Nuisance, Rate};
pub(crate) use self::intake::Intake;
pub use self::ledger::Ledger;
pub use self::priority::Priority;
pub use self::reset_streams::ResetStreams;
pub use self::schedule::Schedule;
pub use self::settings::PeerSettings;
pub use self::settings_watch::SettingsWatch;
pub use self::stream_state::{StreamEvent, StreamState};
pub use self::trailers::to_trailers;
pub(crate) use self::turn::{SPLIT_MIN, Turn, TurnOutcome};
pub use self::window::{ReceiveWindow, SendWindow};
pub(crate) use self::window_watch::{GrantWatch, WindowWatch};
