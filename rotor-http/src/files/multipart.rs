//! `Multipart`: `multipart/byteranges` (RFC 9110 §14.6), several parts of a file in one body, whose
//! length is known in advance.

use super::range::ByteRange;

/// The framing of a body with several parts: the text before each part, and after the last.
#[derive(Debug)]
pub(super) struct Multipart {
    boundary: String,
    parts: Vec<(String, ByteRange)>,
    end: String,
}

impl Multipart {
    /// Frames `ranges` of a file of `size` bytes. The boundary must not occur in the file, which
    /// 128 random bits ensure. The peer sees these bits, but nobody who writes files may know them
    /// in advance, so they come from the secure source.
    pub(super) fn new(
        ranges: &[ByteRange],
        size: u64,
        content_type: &str,
        random: [u8; 16],
    ) -> Multipart {
        let boundary = format!("{:032x}", u128::from_be_bytes(random));
        let parts = ranges.iter().enumerate().map(|(index, &range)| {
            // The line end before a delimiter belongs to it; the first delimiter needs none.
            let line_end = if index == 0 { "" } else { "\r\n" };
            let ByteRange { first, last } = range;
            let head = format!(
                "{line_end}--{boundary}\r\nContent-Type: {content_type}\r\n\
                 Content-Range: bytes {first}-{last}/{size}\r\n\r\n"
            );
            (head, range)
        });
        Multipart { parts: parts.collect(), end: format!("\r\n--{boundary}--\r\n"), boundary }
    }

    /// Returns the content type of the whole body.
    pub(super) fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Returns the length of the whole body in bytes.
    pub(super) fn len(&self) -> u64 {
        let parts = self.parts.iter().map(|(head, range)| head.len() as u64 + range.len());
        // There are at most 16 ranges, which do not overlap: the sum is at most a file and 16
        // heads.
        parts.sum::<u64>() + self.end.len() as u64
    }

    /// Returns each part, with the text before it.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&str, ByteRange)> {
        self.parts.iter().map(|(head, range)| (head.as_str(), *range))
    }

    /// Returns the text after the last part.
    pub(super) fn end(&self) -> &str {
        &self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(multipart: &Multipart, file: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for (head, range) in multipart.parts() {
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(&file[range.first as usize..=range.last as usize]);
        }
        body.extend_from_slice(multipart.end().as_bytes());
        body
    }

    #[test]
    fn parts_are_framed_as_the_rfc_says_and_the_length_is_exact() {
        let ranges = [ByteRange { first: 0, last: 1 }, ByteRange { first: 4, last: 9 }];
        let multipart = Multipart::new(&ranges, 10, "text/plain", *b"0123456789abcdef");
        let boundary = "30313233343536373839616263646566";
        assert_eq!(multipart.content_type(), format!("multipart/byteranges; boundary={boundary}"));
        let expected = format!(
            "--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
             --{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 4-9/10\r\n\r\n456789\r\n\
             --{boundary}--\r\n"
        );
        let body = body(&multipart, b"0123456789");
        assert_eq!(String::from_utf8_lossy(&body), expected);
        assert_eq!(multipart.len(), expected.len() as u64);
    }

    #[test]
    fn the_length_is_exact_whatever_the_numbers_of_digits() {
        let file = vec![b'x'; 12_345];
        for ranges in [
            vec![ByteRange { first: 0, last: 0 }],
            vec![ByteRange { first: 9, last: 10 }, ByteRange { first: 99, last: 100 }],
            vec![
                ByteRange { first: 12_000, last: 12_344 },
                ByteRange { first: 0, last: 9_999 },
                ByteRange { first: 10_500, last: 10_500 },
            ],
        ] {
            let multipart =
                Multipart::new(&ranges, file.len() as u64, "application/octet-stream", [0; 16]);
            assert_eq!(multipart.len(), body(&multipart, &file).len() as u64, "{ranges:?}");
        }
    }
}
