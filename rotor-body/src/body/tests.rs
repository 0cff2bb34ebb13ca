use std::io::{BufRead, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;

use super::*;

const TEXT: &[u8] = b"0123456789abcdef";

fn file_of(bytes: &[u8]) -> Arc<File> {
    let (mut file, _) = crate::disk::open_unnamed(
        std::fs::File::open(std::env::temp_dir()).expect("there is one").as_fd(),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .expect("a file can be made");
    file.write_all(bytes).expect("there is space");
    Arc::new(file)
}

/// The same bytes in every kind of body.
fn of_every_kind() -> Vec<Body> {
    let cut = |cuts: &[usize]| -> Body {
        let mut from = 0;
        let ends = cuts.iter().copied().chain([TEXT.len()]);
        ends.map(|to| Block::from(TEXT[std::mem::replace(&mut from, to)..to].to_vec())).collect()
    };
    let mut around = b"before".to_vec();
    around.extend_from_slice(TEXT);
    around.extend_from_slice(b"behind");
    vec![
        Body::from(TEXT),
        Body::from(TEXT.to_vec()),
        Body::from(Arc::<[u8]>::from(TEXT)),
        Body::from(String::from_utf8(TEXT.to_vec()).expect("it is text")),
        cut(&[]),
        cut(&[1]),
        cut(&[0, 5, 5, 6]),
        cut(&(1..TEXT.len()).collect::<Vec<_>>()),
        Body::from_file(file_of(TEXT), 0..TEXT.len() as u64),
        Body::from_file(file_of(&around), 6..6 + TEXT.len() as u64),
    ]
}

fn read_all(body: &Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    body.reader().read_to_end(&mut bytes).expect("it can be read");
    bytes
}

#[test]
fn every_kind_of_body_reads_as_the_same_bytes() {
    for body in of_every_kind() {
        assert_eq!(body.len(), TEXT.len() as u64, "{body:?}");
        assert_eq!(read_all(&body), TEXT, "{body:?}");
        assert_eq!(body.is_in_memory(), !matches!(body, Body::File(_)));
        for room in [1, 3, 100] {
            let (mut read, mut into) = (Vec::new(), vec![0; room]);
            loop {
                let count = body.read_at(read.len() as u64, &mut into).expect("it can be read");
                read.extend_from_slice(&into[..count]);
                if count == 0 {
                    break;
                }
            }
            assert_eq!(read, TEXT, "{body:?} by {room}");
        }
        assert_eq!(body.read_at(TEXT.len() as u64, &mut [0]).expect("nothing is there"), 0);
        assert_eq!(body.read_at(u64::MAX, &mut [0]).expect("nothing is there"), 0);
        let of_blocks: Vec<u8> = body.blocks().flat_map(|block| block.to_vec()).collect();
        assert_eq!(of_blocks, if body.is_in_memory() { TEXT } else { &[] }, "{body:?}");
        if let Some(bytes) = body.as_slice() {
            assert_eq!(bytes, TEXT, "{body:?}");
        }
    }
}

#[test]
fn a_slice_of_every_kind_has_the_bytes_of_its_range() {
    for body in of_every_kind() {
        for from in 0..TEXT.len() + 2 {
            for to in 0..TEXT.len() + 2 {
                let part = body.slice(from as u64..to as u64);
                let end = to.min(TEXT.len());
                let expected = if from < end { &TEXT[from..end] } else { &[] };
                assert_eq!(read_all(&part), expected, "{body:?} {from}..{to}");
                assert_eq!(part.is_empty(), expected.is_empty());
                assert_eq!(matches!(part, Body::Empty), expected.is_empty());
            }
        }
        assert_eq!(read_all(&body.slice(2..=3)), b"23");
        assert_eq!(read_all(&body.slice(..).slice(4..).slice(..2)), b"45");
        assert_eq!(read_all(&body.slice((Bound::Excluded(0), Bound::Unbounded))), &TEXT[1..]);
        assert!(body.slice(u64::MAX..).is_empty());
    }
}

#[test]
fn a_reader_seeks_and_reads_lines_in_every_kind() {
    for body in of_every_kind() {
        let mut reader = body.reader();
        for (to, at, next) in [
            (SeekFrom::Start(3), 3, Some(b'3')),
            (SeekFrom::Current(4), 8, Some(b'8')),
            (SeekFrom::Current(-9), 0, Some(b'0')),
            (SeekFrom::End(-1), 15, Some(b'f')),
            (SeekFrom::End(5), 21, None),
            (SeekFrom::Start(10), 10, Some(b'a')),
        ] {
            assert_eq!(reader.seek(to).expect("it is a place"), at, "{body:?} {to:?}");
            let read = reader.by_ref().bytes().next().transpose().expect("it can be read");
            assert_eq!(read, next, "{body:?} {to:?}");
        }
        assert!(reader.seek(SeekFrom::Current(-100)).is_err());
        assert_eq!(reader.stream_position().expect("it is a place"), 11, "an error moves nothing");
        let mut reader = body.reader();
        let mut until = Vec::new();
        reader.read_until(b'7', &mut until).expect("it can be read");
        assert_eq!(until, &TEXT[..8], "{body:?}");
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).expect("it can be read");
        assert_eq!(rest, &TEXT[8..], "{body:?}");
    }
}

#[test]
fn a_body_in_memory_is_gathered_up_to_the_limit() {
    for body in of_every_kind() {
        let len = TEXT.len();
        let is_in_memory = body.is_in_memory();
        let body = body.gather(len - 1).expect_err("it is too long");
        assert_eq!(read_all(&body), TEXT, "it is as it was");
        match body.gather(len) {
            Ok(block) => assert!(is_in_memory && *block == *TEXT),
            Err(body) => assert!(!is_in_memory && read_all(&body) == TEXT),
        }
    }
    let one = Block::from(TEXT.to_vec());
    let same = Body::from(one.clone()).gather(100).expect("it is in memory");
    assert_eq!(same.as_ptr(), one.as_ptr(), "one piece is not copied");
    assert_eq!(Body::Empty.gather(0).expect("nothing fits").len(), 0);
}

#[test]
fn an_empty_body_is_recognized_however_it_is_made() {
    let nothing: [Body; 7] = [
        Body::default(),
        Body::from(""),
        Body::from(Vec::new()),
        Body::from(Block::from("").slice(..)),
        std::iter::empty().collect(),
        [Block::from(""), Block::from("")].into_iter().collect(),
        Body::from_file(file_of(TEXT), 5..5),
    ];
    for body in nothing {
        assert!(matches!(body, Body::Empty), "{body:?}");
        assert_eq!((body.as_slice(), read_all(&body)), (Some(&b""[..]), Vec::new()));
    }
}

#[test]
fn reading_a_truncated_file_is_an_error() {
    let file = file_of(TEXT);
    let body = Body::from_file(file.clone(), 0..TEXT.len() as u64);
    file.set_len(4).expect("it can be cut");
    let mut read = Vec::new();
    let error = body.reader().read_to_end(&mut read).expect_err("there is less");
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(read, &TEXT[..4]);
}

#[test]
fn bodies_can_be_read_by_several_threads() {
    fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Body>();
    is_shared::<crate::Spool>();
    is_shared::<crate::Dir>();
    for body in of_every_kind() {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert_eq!(read_all(&body), TEXT));
            }
        });
    }
    assert!(size_of::<Body>() <= 48, "{}", size_of::<Body>());
}
