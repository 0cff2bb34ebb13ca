//! `Compression`: decides which responses are compressed, and how.

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

/// From which length in bytes a body is compressed by default: a shorter one fits into a packet
/// anyway.
pub const COMPRESSED_BYTES_MIN: usize = 1 << 10;

/// How many bytes a body may have to be compressed in one step, on the loop, which takes some 20
/// ms. A longer body is sent uncompressed, or compressed in pieces by an [`Encoder`].
pub const WHOLE_BYTES_MAX: usize = 1 << 20;

/// Compresses responses for clients that accept it (RFC 9110 §12.5.3): with gzip, and also with
/// zstd if the feature of that name is on.
///
/// It compresses text, JSON, XML, scripts and similar types, from 1 KiB on, in responses that have
/// a body and whose request has no `Range`. Each response that could differ for another client gets
/// `Vary: Accept-Encoding`, as does a 304 that stands for such a response. A client that accepts
/// none of these codings gets the response uncompressed.
///
/// If a response contains both a secret and something that the requester chose, the response's
/// length reveals whether the two resemble each other, even over an encrypted connection (the
/// attack is named BREACH). Send such responses uncompressed.
///
/// # Examples
///
/// A complete response (for async handlers there is a layer, `Compression::layer`, with the feature
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
/// A stream: [`Encoding::fields`] go into its head, and its pieces through an [`Encoder`]:
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
    /// Returns the defaults: all available codings, for bodies from 1 KiB on.
    pub fn new() -> Compression {
        Compression { bytes_min: COMPRESSED_BYTES_MIN }
    }

    /// Sets from which length in bytes a body is compressed. Default: 1 KiB.
    pub fn bytes_min(self, bytes_min: usize) -> Compression {
        Compression { bytes_min }
    }

    /// Reads from the request's fields what the client accepts. Pass `request.fields()` in an async
    /// handler, else `head.fields().iter().map(|field| (field.name, field.value))`.
    pub fn check<'r>(
        &self,
        fields: impl IntoIterator<Item = (&'r str, &'r [u8])>,
    ) -> AcceptedCoding {
        let mut is_range = false;
        let lines = fields.into_iter().filter_map(|(name, value)| {
            is_range |= name.eq_ignore_ascii_case("Range");
            name.eq_ignore_ascii_case("Accept-Encoding").then_some(value)
        });
        let coding = coding::best(lines.collect::<Vec<_>>().into_iter());
        AcceptedCoding { coding, is_range, bytes_min: self.bytes_min }
    }
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::new()
    }
}

/// What a client accepts; returned by [`Compression::check`].
#[doc(alias = "Taken")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptedCoding {
    coding: Option<Coding>,
    /// The request has a `Range`. The client may combine the response with what it has, even if the
    /// response is whole.
    is_range: bool,
    bytes_min: usize,
}

impl AcceptedCoding {
    /// Decides whether a response with this status, type and (if known) length is compressed. Do
    /// not call it for a response that is encoded already. For a 304, pass the type of the 200 that
    /// it stands for.
    ///
    /// This call makes the encoder. If there is no memory for it, the response goes out
    /// uncompressed, and the fields of the [`Encoding`] say so.
    pub fn encoding(&self, status: Status, content_type: &str, length: Option<u64>) -> Encoding {
        self.encoding_with(Encoder::new, status, content_type, length)
    }

    fn encoding_with(
        &self,
        make: fn(Coding) -> io::Result<Encoder>,
        status: Status,
        content_type: &str,
        length: Option<u64>,
    ) -> Encoding {
        let is_long = length.is_none_or(|length| length >= self.bytes_min as u64);
        let is_whole = !matches!(status, Status::PARTIAL_CONTENT | Status::RANGE_NOT_SATISFIABLE);
        // RFC 9110 §15.4.5: a 304 has `Vary` if the 200 would have it.
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

    /// Writes a complete response, compressed if appropriate. It is not compressed if the fields
    /// say that the body is encoded already, is a part (`Content-Range`), must not be changed
    /// (`no-transform`), or has a digest (`Content-Digest`, `Repr-Digest`, and the older `Digest`
    /// and `Content-MD5`), which would not be that of the compressed bytes (RFC 9530 §2, §3). If it
    /// is compressed, an `ETag` among the fields becomes weak and `Accept-Ranges` is left out,
    /// since both describe the uncompressed bytes.
    pub fn reply(
        &self,
        response: &mut Response<'_>,
        status: Status,
        fields: &[(&str, &[u8])],
        content_type: &str,
        body: &[u8],
    ) -> Reply {
        if fields.iter().any(|(name, value)| forbids_compression(name, value)) {
            return response.reply_with(status, fields, content_type, body);
        }
        let whole = self.compress_whole(status, content_type, body);
        let is_coded = matches!(whole.body, Cow::Owned(_));
        // The 304 may stand for a 200 that was compressed and had a weak tag.
        let may_stand_for_compressed = status == Status::NOT_MODIFIED && self.coding.is_some();
        let is_weak = is_coded || (may_stand_for_compressed && !whole.fields.is_empty());
        let own = fields.iter().filter(|(name, _)| !is_coded || !is_named(name, "Accept-Ranges"));
        let own: Vec<(&str, Cow<'_, [u8]>)> = own
            .map(|&(name, value)| match is_weak && is_named(name, "ETag") {
                true => (name, weak_tag(value)),
                false => (name, Cow::Borrowed(value)),
            })
            .collect();
        let own = own.iter().map(|(name, value)| (*name, &**value));
        let fields: Vec<(&str, &[u8])> = own.chain(whole.fields.iter().copied()).collect();
        response.reply_with(status, &fields, content_type, &whole.body)
    }

    /// Compresses a whole body, if that is appropriate and makes it shorter.
    fn compress_whole<'b>(
        &self,
        status: Status,
        content_type: &str,
        body: &'b [u8],
    ) -> WholeBody<'b> {
        if body.len() > WHOLE_BYTES_MAX {
            // Too long for every client, so there is no `Vary`.
            return WholeBody { fields: &[], body: Cow::Borrowed(body) };
        }
        let is_known = status != Status::NOT_MODIFIED;
        let length = is_known.then_some(body.len() as u64);
        let encoding = self.encoding(status, content_type, length);
        let (fields, plain) = (encoding.fields(), encoding_fields(None, encoding.varies));
        match encoding.compress_whole(body) {
            Some(coded) => WholeBody { fields, body: Cow::Owned(coded) },
            None => WholeBody { fields: plain, body: Cow::Borrowed(body) },
        }
    }
}

struct WholeBody<'b> {
    /// The fields that describe the coding.
    fields: Fields,
    /// Owned if it is compressed.
    body: Cow<'b, [u8]>,
}

type Fields = &'static [(&'static str, &'static [u8])];

/// The decision how a response is sent; made by [`AcceptedCoding::encoding`].
#[derive(Debug)]
pub struct Encoding {
    /// Made in advance, so that no head promises a coding that cannot be produced later.
    encoder: Option<Encoder>,
    /// Whether another client might get a different response.
    varies: bool,
}

impl Encoding {
    /// Returns the coding; `None` if the response is not compressed.
    pub fn coding(&self) -> Option<Coding> {
        self.encoder.as_ref().map(Encoder::coding)
    }

    /// Returns the fields to add to the response. If it is compressed, the rest is up to the
    /// caller: it must have no `Content-Length` unless the compressed length is known, no
    /// `Accept-Ranges`, and no digest of the uncompressed bytes, and an `ETag` must be weak.
    pub fn fields(&self) -> &'static [(&'static str, &'static [u8])] {
        encoding_fields(self.coding(), self.varies)
    }

    /// Returns the encoder for the pieces of the body; `None` if the body is sent uncompressed, as
    /// [`fields`](Encoding::fields) says.
    pub fn into_encoder(self) -> Option<Encoder> {
        self.encoder
    }

    /// Returns the compressed body if it is shorter than the original.
    fn compress_whole(self, body: &[u8]) -> Option<Vec<u8>> {
        let mut encoder = self.encoder?;
        let mut coded = encoder.write(body).ok()?.to_vec();
        coded.extend(encoder.finish().ok()?);
        (coded.len() < body.len()).then_some(coded)
    }
}

fn encoding_fields(coding: Option<Coding>, varies: bool) -> Fields {
    const VARY: (&str, &[u8]) = ("Vary", b"Accept-Encoding");
    match (coding, varies) {
        (Some(Coding::Gzip), _) => &[("Content-Encoding", b"gzip"), VARY],
        (Some(Coding::Zstd), _) => &[("Content-Encoding", b"zstd"), VARY],
        (None, true) => &[VARY],
        (None, false) => &[],
    }
}

/// The fields that describe the bytes of a body as they are. A digest is computed after the coding
/// (RFC 9530 §2, §3; the last two are obsolete), so a recipient would refuse a body that was
/// compressed since.
const BYTES_FIELDS: [&str; 6] =
    ["Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5"];

/// Returns whether this field says that the response is encoded, is a part, has a digest, or must
/// not be changed.
fn forbids_compression(name: &str, value: &[u8]) -> bool {
    BYTES_FIELDS.iter().any(|field| is_named(name, field))
        || (is_named(name, "Cache-Control")
            && value.to_ascii_lowercase().windows(12).any(|part| part == b"no-transform"))
}

/// Makes a tag weak. A compressed body is equivalent to the one that the tag was made for, but has
/// other bytes (RFC 9110 §8.8.1).
fn weak_tag(tag: &[u8]) -> Cow<'_, [u8]> {
    match tag.starts_with(b"W/") {
        true => Cow::Borrowed(tag),
        false => Cow::Owned([b"W/", tag].concat()),
    }
}

fn is_named(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Returns whether bodies of this type become smaller. Pictures, sounds and archives are compressed
/// already. An event stream is excluded because its events would wait in the encoder.
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
