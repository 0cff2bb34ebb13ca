//! Bodies larger than any buffer, and endless responses, with curl.

use std::fs;

use rotor_test_kit::Directory;

use crate::support::{curl, program, start_example, start_example_in, text, url};

#[test]
fn curl_uploads_a_body_larger_than_any_buffer() {
    let Some(program) = program("curl") else { return };
    let server = start_example("upload");
    let directory = Directory::create();
    let body: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let file = directory.file("source", &body);
    let checksum = body.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let expected = format!("20000000 bytes, FNV-1a {checksum:016x}\n");
    let path = file.display().to_string();
    for how in [&[][..], &["-H", "Transfer-Encoding: chunked"], &["-H", "Expect:"], &["--http1.0"]]
    {
        let output = curl(&program, &[how, &["-T", &path, &url(&server, "/")]].concat());
        assert_eq!(text(&output), expected, "{how:?}");
    }
}

#[test]
fn an_upload_by_curl_becomes_a_file() {
    let Some(program) = program("curl") else { return };
    let place = Directory::create();
    let server = start_example_in("upload_to_disk", &place);
    let body: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(place.join("source"), &body).expect("a temporary file");
    let source = place.join("source").display().to_string();
    for how in [&[][..], &["-H", "Transfer-Encoding: chunked"], &["-H", "Expect:"], &["--http1.0"]]
    {
        let output = curl(&program, &[how, &["-T", &source, &url(&server, "/name")]].concat());
        assert_eq!(text(&output), "20000000 bytes\n", "{how:?}");
        let kept = fs::read(place.join("uploads/name")).expect("it is there");
        assert!(kept == body, "{how:?}");
        fs::remove_file(place.join("uploads/name")).expect("it is there");
    }
}

#[test]
fn curl_downloads_a_body_generated_on_the_fly() {
    let Some(program) = program("curl") else { return };
    let server = start_example("streaming");
    for (version, size) in [("--http1.1", "30000000"), ("--http1.0", "3000000")] {
        let written = ["-o", "/dev/null", "-w", "%{http_code} %{size_download}", version];
        let output =
            curl(&program, &[&written[..], &[&url(&server, &format!("/big?{size}"))]].concat());
        assert_eq!(text(&output), format!("200 {size}"));
    }
}

#[test]
fn curl_speaks_json_with_the_todo_list() {
    let Some(program) = program("curl") else { return };
    let server = start_example("todo_backend");
    let json = ["-H", "Content-Type: application/json"];
    let made = curl(
        &program,
        &[&json[..], &["-d", r#"{"title":"walk the dog"}"#, &url(&server, "/todos")]].concat(),
    );
    assert!(text(&made).contains("walk the dog"), "{}", text(&made));
    let list = curl(&program, &[&url(&server, "/todos")]);
    assert!(text(&list).contains("walk the dog"), "{}", text(&list));
}
