//! `permessage-deflate` (RFC 7692); pure.
//!
//! | module | contents |
//! |--|--|
//! | `config` | the settings of this end |
//! | `params` | the parameters on which both ends agree |
//! | `codec` | compression and decompression, with codecs that the connections of a thread share |

pub(crate) mod codec;
pub(crate) mod config;
pub(crate) mod params;
