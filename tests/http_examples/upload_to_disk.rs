//! `upload_to_disk`: bodies of any size are written to files.

// Included so that its unit tests run. They simulate a full disk, which no process here can have.
#[path = "../../examples/upload_to_disk/machine.rs"]
#[allow(dead_code, reason = "the program is run, and not what is taken in here")]
mod machine;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use rotor_bench::server::Server;
use rotor_test_kit::Directory;

use crate::client::{ask, command, connect, read_until, start_command};

/// A temporary directory in which a server runs.
struct Place(Directory);

impl Place {
    fn start() -> (Place, Server) {
        let path = Directory::create();
        let mut command = command("upload_to_disk");
        command.current_dir(&path);
        (Place(path), start_command(command))
    }

    fn uploads(&self) -> PathBuf {
        self.0.join("uploads")
    }

    fn names(&self) -> Vec<String> {
        names(&self.uploads())
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("it is there");
    let names = entries.map(|entry| entry.expect("it is one").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn an_upload_of_any_length_and_framing_becomes_a_file_of_its_name() {
    let (place, server) = Place::start();
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    let mut client = connect(&server);
    // The first upload creates the file, the others replace it.
    let mut status = 201;
    for length in [0, 1, 65_536, 65_537, body.len()] {
        for is_chunked in [false, true] {
            let body = &body[..length];
            write!(client, "PUT /some.file HTTP/1.1\r\nHost: a\r\n").expect("room");
            if is_chunked {
                write!(client, "Transfer-Encoding: chunked\r\n\r\n").expect("room");
                for piece in body.chunks(9_999) {
                    write!(client, "{:x}\r\n", piece.len()).expect("room");
                    client.write_all(piece).expect("the server reads");
                    client.write_all(b"\r\n").expect("the server reads");
                }
                client.write_all(b"0\r\n\r\n").expect("the server reads");
            } else {
                write!(client, "Content-Length: {length}\r\n\r\n").expect("room");
                client.write_all(body).expect("the server reads");
            }
            let says = format!("{length} bytes\n");
            let answer = read_until(&mut client, |got| got.ends_with(says.as_bytes()));
            let begins = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(begins.as_bytes()), "{}", answer.escape_ascii());
            status = 200;
            let file = fs::read(place.uploads().join("some.file")).expect("it is there");
            assert!(file == body, "{length}");
            assert_eq!(place.names(), ["some.file"]);
        }
    }
}

#[test]
fn an_aborted_upload_leaves_no_file_and_others_are_served() {
    let (place, server) = Place::start();
    for sent in [0, 1_000, 1_000_000] {
        let mut client = connect(&server);
        write!(client, "PUT /gone HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n")
            .expect("room");
        client.write_all(&vec![b'x'; sent]).expect("the server reads");
        client.shutdown(std::net::Shutdown::Write).expect("it is open");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("the server closes");
        assert!(answer.starts_with(b"HTTP/1.1 400 "), "{}", answer.escape_ascii());
    }
    assert_eq!(place.names(), [""; 0]);
    assert!(ask(&server, "PUT /here", "", "x").0.starts_with("HTTP/1.1 201 "));
    assert_eq!(place.names(), ["here"]);
}

#[test]
fn an_invalid_name_or_upload_is_refused() {
    let (place, server) = Place::start();
    for path in ["/", "/.hidden", "/a/b", "/..", "/%2e%2e", "/-rf", "/a%00b", "/a~"] {
        let (head, _) = ask(&server, &format!("PUT {path}"), "", "x");
        assert!(head.starts_with("HTTP/1.1 400 "), "{path}: {head}");
    }
    assert!(ask(&server, "GET /name", "", "").0.contains("Allow: PUT"));
    let (head, _) = ask(&server, "PUT /large", "Content-Length: 1073741825\r\n", "");
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn an_overwrite_against_the_preconditions_is_refused() {
    let (place, server) = Place::start();
    let put = |fields: &str, body: &str| {
        let (head, _) = ask(&server, "PUT /name", fields, body);
        let text = fs::read_to_string(place.uploads().join("name"));
        (head["HTTP/1.1 ".len()..][..3].to_owned(), text.unwrap_or_default())
    };
    let says = |status: &str, text: &str| (status.to_owned(), text.to_owned());
    // The file does not exist, so nothing matches.
    assert_eq!(put("If-Match: *\r\n", "lost"), says("412", ""));
    assert_eq!(put("If-None-Match: *\r\n", "first"), says("201", "first"));
    assert_eq!(put("If-None-Match: *\r\n", "second"), says("412", "first"));
    assert_eq!(put("If-None-Match: \"tag\"\r\n", "third"), says("200", "third"));
    assert_eq!(put("If-Match: \"tag\"\r\n", "lost"), says("412", "third"));
    // Two bytes of a hundred are not a file of two bytes.
    assert_eq!(put("Content-Range: bytes 0-1/100\r\n", "xy"), says("400", "third"));
    assert_eq!(place.names(), ["name"]);
}

#[test]
fn the_name_of_a_directory_is_a_conflict_and_the_directory_stays() {
    let (place, server) = Place::start();
    fs::create_dir(place.uploads().join("taken")).expect("it can be made");
    // A body in memory, and one in a file.
    for length in [1, 100_000] {
        let (head, _) = ask(&server, "PUT /taken", "", &"x".repeat(length));
        assert!(head.starts_with("HTTP/1.1 409 "), "{length}: {head}");
    }
    assert_eq!(place.names(), ["taken"]);
    assert!(place.uploads().join("taken").is_dir());
}
