//! Field blocks: any block stays within the bounds, and decoded fields survive encoding and
//! decoding.

use rotor_http::Limits;
use rotor_http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};
use rotor_http::h2::request::{CheckedRequest, StreamPurpose};

use super::input::Input;

pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let bounds = Bounds {
        list_bytes_max: choices.pick(&[4096, 0, 100, 1 << 16]),
        decoded_bytes_max: choices.pick(&[16 << 10, 0, 100, 1 << 16]),
    };
    let table = choices.pick(&[4096, 0, 64, 65_535]);
    let (mut whole, mut list) = (HpackDecoder::new(table), FieldList::new());
    // Several blocks, so that they use the dynamic table.
    for block in data.get(4..).unwrap_or_default().split(|octet| *octet == 0xfe) {
        list.clear();
        if whole.decode(block, &mut list, &bounds).is_err() {
            return;
        }
        assert!(whole.table().size() <= table);
        let size: usize = list.fields().iter().map(|f| f.name.len() + f.value.len() + 32).sum();
        assert!(size <= bounds.list_bytes_max.min(bounds.decoded_bytes_max));
        check_round_trip(&list);
        if let Ok(request) = CheckedRequest::check(&mut list, &Limits::new(), true) {
            check(&request, &list);
        }
    }
}

/// Decoded fields are the same after encoding and decoding.
fn check_round_trip(list: &FieldList) {
    let (encoder, mut block) = (HpackEncoder::new(), Vec::new());
    for field in list.fields().iter() {
        encoder.field(field.name.as_bytes(), field.value, &mut block);
    }
    let bounds = Bounds { list_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20 };
    let mut second = FieldList::new();
    HpackDecoder::new(0).decode(&block, &mut second, &bounds).expect("it is well-formed");
    let lower = |list: &FieldList| -> Vec<_> {
        let fields = list.fields();
        fields.iter().map(|f| (f.name.to_ascii_lowercase(), f.value.to_vec())).collect()
    };
    assert_eq!(lower(list), lower(&second));
}

/// The fields for a handler contain nothing that an HTTP/1.1 server would read differently.
fn check(request: &CheckedRequest, list: &FieldList) {
    let target = request.target(list).expect("it was checked");
    assert!(target.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(request.authority(list).is_some());
    for field in list.fields().iter() {
        let is_control = |byte: u8| byte.is_ascii_control() && byte != b'\t';
        assert!(!field.value.iter().copied().any(is_control), "{field:?}");
        assert!(!field.name.is_empty() && !field.name.starts_with(':'), "{field:?}");
        assert!(!field.name.bytes().any(|byte| byte.is_ascii_uppercase()), "{field:?}");
        assert!(!["connection", "transfer-encoding"].contains(&field.name));
        // A request cannot contain this field; it is made of the peer's `:protocol`.
        assert!(field.name != "upgrade" || request.purpose == StreamPurpose::Protocol);
    }
}
