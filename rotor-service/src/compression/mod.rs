//! `Compression`: which answers are compressed, and for whom.

mod coding;
mod encoder;
#[cfg(feature = "async")]
mod layer;
#[cfg(test)]
mod tests;
#[cfg(feature = "zstd")]
mod zstd;

use std::borrow::Cow;
use std::io;

use rotor_http::Status;
use rotor_http::server::{Reply, Response};

pub use self::coding::Coding;
pub use self::encoder::{ENCODER_BYTES_MAX, Encoder};
#[cfg(feature = "async")]
pub use self::layer::CompressionLayer;

/// From how many octets on a body is worth compressing: a shorter one fits a packet as it is.
pub const COMPRESSED_BYTES_MIN: usize = 1 << 10;

/// How many octets a body may have that is compressed whole, on the loop: some 20 ms. A longer one
/// is sent as it is, or in pieces by an [`Encoder`].
pub const WHOLE_BYTES_MAX: usize = 1 << 20;

/// Compression of answers: gzip, and zstd with the feature of that name, for clients that accept
/// them (RFC 9110 §12.5.3).
///
/// It compresses text, JSON, XML, scripts and the like, from 1 KiB, in answers with a body to
/// requests without a range. Each answer that would differ for other clients gets `Vary:
/// Accept-Encoding`, as does a 304 that stands for one. A client that accepts only codings that are
/// not here gets the answer as it is.
///
/// If an answer holds both a secret and something that its requester chose, its length shows
/// whether they resemble each other, encrypted or not (the attack is named BREACH). Send such
/// answers uncompressed.
///
/// # Examples
///
/// A complete answer (the layer for async handlers is `Compression::layer`, with the feature
/// `async`):
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Head, Reply, Response, Scope};
/// use rotor_service::Compression;
///
/// fn page(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
///     let fields = head.fields().iter().map(|field| (field.name, field.value));
///     let taken = Compression::new().check(fields);
///     let body = "All work and no play. ".repeat(1_000);
///     taken.reply(response, Status::OK, &[], "text/plain", body.as_bytes())
/// }
/// # let _ = page;
/// ```
///
/// A stream: [`Encoding::fields`] go into its head, its pieces through an [`Encoder`]:
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor_service::Compression;
///
/// let taken = Compression::new().check([("Accept-Encoding", &b"gzip;q=0.8"[..])]);
/// let encoding = taken.encoding(Status::OK, "text/csv", None);
/// assert_eq!(encoding.fields().len(), 2, "`Content-Encoding` and `Vary`");
/// let mut encoder = encoding.into_encoder().expect("it is a stream of text");
/// let first = encoder.write(b"a,b,c\n")?.to_vec();
/// # let _ = first;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Compression {
    bytes_min: usize,
}

impl Compression {
    /// Offers all codings that are here, for bodies from 1 KiB.
    pub fn new() -> Compression {
        Compression { bytes_min: COMPRESSED_BYTES_MIN }
    }

    /// Sets from how many octets on a body is compressed. Default: 1 KiB.
    pub fn bytes_min(self, bytes_min: usize) -> Compression {
        Compression { bytes_min }
    }

    /// Reads from a request's fields what its client accepts. Pass `request.fields()` of an async
    /// handler, or `head.fields().iter().map(|field| (field.name, field.value))`.
    pub fn check<'r>(&self, fields: impl IntoIterator<Item = (&'r str, &'r [u8])>) -> Taken {
        let mut is_range = false;
        let lines = fields.into_iter().filter_map(|(name, value)| {
            is_range |= name.eq_ignore_ascii_case("Range");
            name.eq_ignore_ascii_case("Accept-Encoding").then_some(value)
        });
        let coding = coding::best(lines.collect::<Vec<_>>().into_iter());
        Taken { coding, is_range, bytes_min: self.bytes_min }
    }
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::new()
    }
}

/// What a client accepts, as [`Compression::check`] has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    coding: Option<Coding>,
    /// The request is for a part: what it gets, be it whole, may be put beside what it has.
    is_range: bool,
    bytes_min: usize,
}

impl Taken {
    /// Decides how an answer goes out that has this status, this type and, if it is known, this
    /// length. Do not ask about an answer that is encoded already. For a 304, pass the type of the
    /// 200 that it stands for.
    ///
    /// The encoder is made here. If there is no memory for one, the answer goes out as it is, and
    /// its fields are right for that.
    pub fn encoding(&self, status: Status, content_type: &str, length: Option<u64>) -> Encoding {
        self.encoding_by(Encoder::new, status, content_type, length)
    }

    fn encoding_by(
        &self,
        make: fn(Coding) -> io::Result<Encoder>,
        status: Status,
        content_type: &str,
        length: Option<u64>,
    ) -> Encoding {
        let is_long = length.is_none_or(|length| length >= self.bytes_min as u64);
        let is_whole = !matches!(status, Status::PARTIAL_CONTENT | Status::RANGE_NOT_SATISFIABLE);
        // RFC 9110 §15.4.5: a 304 says `Vary` where the 200 would have.
        let has_body = !status.forbids_body();
        let would_have_body = has_body || status == Status::NOT_MODIFIED;
        let varies = would_have_body
            && is_whole
            && !self.is_range
            && is_long
            && is_compressible(content_type);
        let coding = self.coding.filter(|_| varies && has_body);
        Encoding { encoder: coding.and_then(|coding| make(coding).ok()), varies }
    }

    /// Answers, compressed if that is appropriate: not if the fields say that the body is encoded
    /// already or a part, or `no-transform`. If it is compressed, an `ETag` among the fields is sent
    /// as a weak one, and `Accept-Ranges` is left out, since they speak of other octets.
    pub fn reply(
        &self,
        response: &mut Response<'_>,
        status: Status,
        fields: &[(&str, &[u8])],
        content_type: &str,
        body: &[u8],
    ) -> Reply {
        if fields.iter().any(|(name, value)| leaves_alone(name, value)) {
            return response.reply_with(status, fields, content_type, body);
        }
        let whole = self.whole(status, content_type, body);
        let is_coded = matches!(whole.body, Cow::Owned(_));
        // A 304 may stand for a 200 that was coded, and whose tag was weak.
        let is_like_one = status == Status::NOT_MODIFIED && self.coding.is_some();
        let is_weak = is_coded || (is_like_one && !whole.fields.is_empty());
        let own = fields.iter().filter(|(name, _)| !is_coded || !is_called(name, "Accept-Ranges"));
        let own: Vec<(&str, Cow<'_, [u8]>)> = own
            .map(|&(name, value)| match is_weak && is_called(name, "ETag") {
                true => (name, weak_tag(value)),
                false => (name, Cow::Borrowed(value)),
            })
            .collect();
        let own = own.iter().map(|(name, value)| (*name, &**value));
        let fields: Vec<(&str, &[u8])> = own.chain(whole.fields.iter().copied()).collect();
        response.reply_with(status, &fields, content_type, &whole.body)
    }

    /// The whole of a body as it goes out.
    fn whole<'b>(&self, status: Status, content_type: &str, body: &'b [u8]) -> Whole<'b> {
        if body.len() > WHOLE_BYTES_MAX {
            // The same for everybody.
            return Whole { fields: &[], body: Cow::Borrowed(body) };
        }
        let is_there = status != Status::NOT_MODIFIED;
        let length = is_there.then_some(body.len() as u64);
        let encoding = self.encoding(status, content_type, length);
        let (fields, plain) = (encoding.fields(), fields_of(None, encoding.varies));
        match encoding.whole(body) {
            Some(coded) => Whole { fields, body: Cow::Owned(coded) },
            None => Whole { fields: plain, body: Cow::Borrowed(body) },
        }
    }
}

struct Whole<'b> {
    /// What says how it is coded.
    fields: Fields,
    /// Owned where it is.
    body: Cow<'b, [u8]>,
}

type Fields = &'static [(&'static str, &'static [u8])];

/// How an answer goes out.
#[derive(Debug)]
pub struct Encoding {
    /// Here, so that no head promises what cannot be made when the body comes.
    encoder: Option<Encoder>,
    /// It would be another one for other clients.
    varies: bool,
}

impl Encoding {
    /// Returns the coding; `None` if there is none.
    pub fn coding(&self) -> Option<Coding> {
        self.encoder.as_ref().map(Encoder::coding)
    }

    /// Returns the fields of the answer. If it is encoded, it has no length before its end is
    /// known, no ranges (`Accept-Ranges`), and its `ETag`, if any, is weak.
    pub fn fields(&self) -> &'static [(&'static str, &'static [u8])] {
        fields_of(self.coding(), self.varies)
    }

    /// Returns the encoder for the pieces of the body. `None` if they go out as they are, and then
    /// [`fields`](Encoding::fields) said so.
    pub fn into_encoder(self) -> Option<Encoder> {
        self.encoder
    }

    /// The whole, where it is coded and shorter so.
    fn whole(self, body: &[u8]) -> Option<Vec<u8>> {
        let mut encoder = self.encoder?;
        let mut coded = encoder.write(body).ok()?.to_vec();
        coded.extend(encoder.finish().ok()?);
        (coded.len() < body.len()).then_some(coded)
    }
}

fn fields_of(coding: Option<Coding>, varies: bool) -> Fields {
    const VARY: (&str, &[u8]) = ("Vary", b"Accept-Encoding");
    match (coding, varies) {
        (Some(Coding::Gzip), _) => &[("Content-Encoding", b"gzip"), VARY],
        (Some(Coding::Zstd), _) => &[("Content-Encoding", b"zstd"), VARY],
        (None, true) => &[VARY],
        (None, false) => &[],
    }
}

/// Whether a field says that its answer is encoded, is a part, or must stay as it is.
fn leaves_alone(name: &str, value: &[u8]) -> bool {
    is_called(name, "Content-Encoding")
        || is_called(name, "Content-Range")
        || (is_called(name, "Cache-Control")
            && value.to_ascii_lowercase().windows(12).any(|part| part == b"no-transform"))
}

/// The tag of a body that is coded: equivalent to what the tag was made of, no longer the same octets
/// (RFC 9110 §8.8.1).
fn weak_tag(tag: &[u8]) -> Cow<'_, [u8]> {
    match tag.starts_with(b"W/") {
        true => Cow::Borrowed(tag),
        false => Cow::Owned([b"W/", tag].concat()),
    }
}

fn is_called(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Whether a body of this type becomes smaller: what is no picture, sound or archive, which are
/// compressed by themselves. A stream of events is not, since it would wait in the encoder.
fn is_compressible(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((kind, subtype)) = essence.split_once('/') else { return false };
    match kind {
        "text" => subtype != "event-stream",
        "font" => matches!(subtype, "ttf" | "otf" | "sfnt" | "collection"),
        _ if subtype.ends_with("+json") || subtype.ends_with("+xml") => true,
        "image" => matches!(subtype, "bmp" | "x-icon" | "vnd.microsoft.icon"),
        "application" => matches!(
            subtype,
            "json"
                | "javascript"
                | "ecmascript"
                | "xml"
                | "xml-dtd"
                | "wasm"
                | "x-ndjson"
                | "jsonl"
                | "json-seq"
                | "graphql"
                | "rtf"
                | "sql"
                | "yaml"
                | "toml"
                | "x-www-form-urlencoded"
        ),
        _ => false,
    }
}
