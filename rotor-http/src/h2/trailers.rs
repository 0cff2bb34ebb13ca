//! Makes the trailers of a message from the fields of its last block (RFC 9113 §8.1).

use super::hpack::FieldList;
use super::request::check_field;
use crate::limits::Limits;
use crate::semantics::error::HeadError;
use crate::semantics::trailers::Trailers;

/// Makes trailers from the fields, none of which may be a pseudo-field.
///
/// # Errors
///
/// The reason why the message is malformed.
pub fn to_trailers(list: &FieldList) -> Result<Trailers, &'static str> {
    let mut trailers = Trailers::default();
    for (name, value) in list.fields().iter_bytes() {
        check_field(name, value)?;
        trailers.push_field(name, value);
    }
    Ok(trailers)
}

/// Returns which limit of trailer sections the fields exceed, if any. They are counted as lines of
/// HTTP/1.1, with their line ends and the empty line after them.
pub(crate) fn exceeded_trailer_limit(list: &FieldList, limits: &Limits) -> Option<HeadError> {
    let lines = list.fields().iter_bytes().map(|(name, value)| name.len() + value.len() + 4);
    if list.len() > limits.trailers_max {
        Some(HeadError::TooManyFields)
    } else if list.is_truncated() || lines.sum::<usize>() + 2 > limits.trailer_bytes_max {
        Some(HeadError::TooLarge)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::hpack::{Bounds, HpackDecoder, HpackEncoder};

    #[test]
    fn fields_are_trailers_unless_they_are_invalid_in_a_head() {
        let bounds = Bounds { list_bytes_max: 4096, decoded_bytes_max: 4096 };
        for (name, value, is_valid) in [
            ("grpc-status", "0", true),
            (":status", "200", false),
            ("x", "a\r\nb: c", false),
            ("connection", "close", false),
        ] {
            let (mut block, mut list) = (Vec::new(), FieldList::new());
            HpackEncoder::new().field(name.as_bytes(), value.as_bytes(), &mut block);
            HpackDecoder::new(0).decode(&block, &mut list, &bounds).expect("it is well-formed");
            let trailers = to_trailers(&list);
            assert_eq!(trailers.is_ok(), is_valid, "{name}");
            if let Ok(trailers) = trailers {
                assert_eq!(trailers.get(name), Some(value.as_bytes()));
            }
        }
    }
}
