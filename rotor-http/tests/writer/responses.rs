//! Responses: their framing, the effect of each status and method, and the order of their parts.

use rotor_http::h1::{
    DateCache, Ending, MessageError, ReplyTo, ResponseState, Sink, Status, Version,
};

use crate::{HEAD_REPLY, OLD_REPLY, Outcome, REPLY, Writer, status};

#[test]
fn a_response_with_a_length() {
    let mut writer = Writer::with_status(REPLY, 200);
    writer
        .accept(|state, out| state.add_header(out, "Content-Type", b"text/plain"))
        .accept(|state, out| state.add_length(out, 5))
        .accept(|state, out| {
            state.done_headers(out, Some(&DateCache::new(784_111_777)), Some("rotor"))
        })
        .accept(|state, out| state.write_body(out, b"he"))
        .accept(|state, out| state.write_body_with(out, 3, |out| out.put(b"llo")));
    assert_eq!(writer.state.ending(), Ending::Unfinished);
    writer.accept(|state, out| state.done(out));
    assert_eq!(
        writer.text(),
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nServer: rotor\r\n\
         Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nhello"
    );
    assert_eq!(writer.state.ending(), Ending::KeepAlive);
}

#[test]
fn rule_50_unknown_length_is_chunked_or_until_close() {
    let mut writer = Writer::with_status(REPLY, 200);
    writer.accept(|state, out| state.add_chunked(out)).headers_done();
    writer
        .accept(|state, out| state.write_body(out, b"0123456789abcdef"))
        .accept(|state, out| state.write_body(out, b""))
        .accept(|state, out| state.write_body_with(out, 2, |out| out.put(b"hi")))
        .accept(|state, out| state.done(out));
    assert_eq!(
        writer.text(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n2\r\nhi\r\n0\r\n\r\n"
    );
    let mut writer = Writer::with_status(OLD_REPLY, 200);
    writer.accept(|state, out| state.add_chunked(out)).headers_done();
    writer
        .accept(|state, out| state.write_body(out, b"hi"))
        .reject(
            |state, out| state.done_with_trailers(out, &[("X", b"\n")]),
            MessageError::FieldValue,
        )
        .accept(|state, out| state.done_with_trailers(out, &[("X", b"y")]));
    assert_eq!(writer.text(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi");
    assert_eq!(writer.state.ending(), Ending::Close);
}

#[test]
fn trailers_follow_the_chunks() {
    let mut writer = Writer::with_status(REPLY, 200);
    writer.accept(|state, out| state.add_chunked(out)).headers_done();
    writer
        .reject(
            |state, out| state.done_with_trailers(out, &[("X", b"y"), ("X", b"\n")]),
            MessageError::FieldValue,
        )
        .reject(
            |state, out| state.done_with_trailers(out, &[("Content-Length", b"1")]),
            MessageError::FieldReserved("it has no effect in a trailer, add it before the body"),
        )
        .accept(|state, out| state.done_with_trailers(out, &[("X", b"y")]));
    assert_eq!(writer.body(), "0\r\nX: y\r\n\r\n");
    let mut writer = Writer::with_status(REPLY, 200);
    writer.accept(|state, out| state.add_length(out, 0)).headers_done();
    writer
        .reject(|state, out| state.done_with_trailers(out, &[]), MessageError::TrailersNotChunked);
}

#[test]
fn in_frames_trailers_follow_a_body_of_known_length() {
    for is_head in [false, true] {
        let reply = ReplyTo { version: Version::Http2, is_head, ..REPLY };
        let mut writer = Writer::with_status(reply, 200);
        writer.accept(|state, out| state.add_length(out, 2)).headers_done();
        writer.accept(|state, out| state.write_body(out, b"h"));
        let end = |state: &mut ResponseState, out: &mut Vec<u8>| {
            state.done_with_trailers(out, &[("X", b"y")])
        };
        if !is_head {
            writer.reject(end, MessageError::BodyTooShort(1));
        }
        writer.accept(|state, out| state.write_body(out, b"i"));
        writer.accept(end);
        assert_eq!(writer.body(), if is_head { "" } else { "hiX: y\r\n" });
        assert_eq!(writer.state.ending(), Ending::KeepAlive);
    }
}

#[test]
fn rules_43_and_44_connection_tells_whether_it_persists() {
    let connection = |reply, close: bool| {
        let mut writer = Writer::with_status(reply, 200);
        if close {
            writer.state.close();
        }
        writer
            .accept(|state, out| state.add_length(out, 0))
            .headers_done()
            .accept(|state, out| state.done(out));
        let line = writer
            .text()
            .lines()
            .find(|line| line.starts_with("Connection"))
            .unwrap_or_default()
            .to_owned();
        assert!(writer.text().starts_with("HTTP/1.1 "));
        (line, writer.state.ending())
    };
    assert_eq!(connection(REPLY, false), (String::new(), Ending::KeepAlive));
    assert_eq!(connection(REPLY, true), ("Connection: close".into(), Ending::Close));
    assert_eq!(connection(OLD_REPLY, false), ("Connection: keep-alive".into(), Ending::KeepAlive));
    assert_eq!(connection(OLD_REPLY, true), ("Connection: close".into(), Ending::Close));
}

#[test]
fn rule_49_head_has_the_fields_and_no_body() {
    for chunked in [false, true] {
        let mut writer = Writer::with_status(HEAD_REPLY, 200);
        match chunked {
            true => writer.accept(|state, out| state.add_chunked(out)),
            false => writer.accept(|state, out| state.add_length(out, 5)),
        };
        writer.headers_done().accept(|state, out| state.write_body(out, b"hel"));
        assert!(!writer.state.sends_body());
        if !chunked {
            writer.reject(|state, out| state.write_body(out, b"lo!"), MessageError::BodyTooLong(2));
        }
        writer.accept(|state, out| state.done(out));
        assert_eq!(writer.body(), "");
        assert_eq!(writer.text().contains("Content-Length: 5\r\n"), !chunked);
        assert_eq!(writer.state.ending(), Ending::KeepAlive);
    }
}

#[test]
fn rule_49_statuses_without_a_body() {
    let no_content = MessageError::BodyForbidden(Status::NO_CONTENT);
    let mut writer = Writer::with_status(REPLY, 204);
    writer
        .reject(|state, out| state.add_length(out, 0), no_content)
        .reject(|state, out| state.add_chunked(out), no_content)
        .headers_done()
        .accept(|state, out| state.write_body(out, b""))
        .reject(|state, out| state.write_body(out, b"a"), no_content)
        .accept(|state, out| state.done(out));
    assert_eq!(writer.text(), "HTTP/1.1 204 No Content\r\n\r\n");

    let not_modified = MessageError::BodyForbidden(Status::NOT_MODIFIED);
    let mut writer = Writer::with_status(REPLY, 304);
    writer
        .reject(|state, out| state.add_chunked(out), not_modified)
        .accept(|state, out| state.add_length(out, 5))
        .headers_done()
        .reject(|state, out| state.write_body(out, b"hello"), not_modified)
        .accept(|state, out| state.done(out));
    assert_eq!(writer.text(), "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");

    let reset = MessageError::BodyForbidden(Status::RESET_CONTENT);
    let mut writer = Writer::with_status(REPLY, 205);
    writer
        .reject(|state, out| state.add_length(out, 1), reset)
        .reject(|state, out| state.add_chunked(out), reset)
        .headers_done()
        .reject(|state, out| state.write_body(out, b"a"), MessageError::BodyTooLong(0))
        .accept(|state, out| state.done(out));
    assert_eq!(writer.text(), "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n");

    let tunnel = ReplyTo { is_connect: true, ..REPLY };
    let mut writer = Writer::with_status(tunnel, 200);
    writer
        .reject(|state, out| state.add_length(out, 0), MessageError::BodyForbidden(Status::OK))
        .headers_done()
        .accept(|state, out| state.done(out));
    assert_eq!((writer.text(), writer.state.ending()), ("HTTP/1.1 200 OK\r\n\r\n", Ending::Switch));
    let mut writer = Writer::with_status(tunnel, 205);
    writer.headers_done().accept(|state, out| state.done(out));
    assert_eq!(
        (writer.text(), writer.state.ending()),
        ("HTTP/1.1 205 Reset Content\r\n\r\n", Ending::Switch)
    );
    let mut writer = Writer::with_status(tunnel, 405);
    writer
        .accept(|state, out| state.add_length(out, 0))
        .headers_done()
        .accept(|state, out| state.done(out));
    assert_eq!(writer.state.ending(), Ending::Close, "RFC 9931");
}

#[test]
fn rule_48_a_switch_is_sent_only_where_it_was_requested() {
    let switch = MessageError::InformationalStatus(Status::SWITCHING_PROTOCOLS);
    Writer::new(REPLY).reject(|state, out| state.status(out, Status::SWITCHING_PROTOCOLS), switch);
    let mut writer = Writer::with_status(ReplyTo { wants_upgrade: true, ..REPLY }, 101);
    writer
        .reject(
            |state, out| state.done_headers(out, None, None),
            MessageError::UpgradeMissing(Status::SWITCHING_PROTOCOLS),
        )
        .accept(|state, out| state.add_header(out, "Upgrade", b"echo"))
        .headers_done()
        .accept(|state, out| state.done(out));
    assert_eq!(
        writer.text(),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n"
    );
    assert_eq!(writer.state.ending(), Ending::Switch);
    Writer::with_status(REPLY, 426).accept(|state, out| state.add_length(out, 0)).reject(
        |state, out| state.done_headers(out, None, None),
        MessageError::UpgradeMissing(Status::UPGRADE_REQUIRED),
    );
}

#[test]
fn interim_responses_precede_the_status_and_need_http_1_1() {
    let mut writer = Writer::new(REPLY);
    writer
        .accept(|state, out| state.interim(out, Status::CONTINUE, &[]))
        .accept(|state, out| state.interim(out, Status::EARLY_HINTS, &[("Link", b"</a>")]))
        .reject(
            |state, out| state.interim(out, Status::OK, &[]),
            MessageError::NotInformational(Status::OK),
        )
        .reject(
            |state, out| state.interim(out, Status::SWITCHING_PROTOCOLS, &[]),
            MessageError::NotInformational(Status::SWITCHING_PROTOCOLS),
        )
        .reject(
            |state, out| state.interim(out, Status::EARLY_HINTS, &[("Content-Length", b"1")]),
            MessageError::FieldReserved("an interim response has no body and ends no connection"),
        );
    assert_eq!(
        writer.text(),
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    );
    assert_eq!(writer.state.ending(), Ending::Unstarted);
    let continue_late =
        |state: &mut ResponseState, out: &mut Vec<u8>| state.interim(out, Status::CONTINUE, &[]);
    writer
        .accept(|state, out| state.status(out, Status::OK))
        .reject(continue_late, MessageError::InterimNotAllowed);
    Writer::new(OLD_REPLY).reject(continue_late, MessageError::InterimNotAllowed);
}

#[test]
fn rule_52_malformed_lines_and_fields_are_refused() {
    let mut writer = Writer::with_status(REPLY, 200);
    for name in ["", "a b", "a:", "a\r\nb", "a\0", "\u{e9}", "a\t"] {
        writer.reject(|state, out| state.add_header(out, name, b"c"), MessageError::FieldName);
    }
    for value in ["\r\nb: c", "a\n", "\r", "\0", "\x7f", "\x1b"] {
        writer.reject(
            |state, out| state.add_header(out, "A", value.as_bytes()),
            MessageError::FieldValue,
        );
    }
    writer.accept(|state, out| state.add_header(out, "A", b"\x80\t\xff"));
    for name in
        ["Content-Length", "transfer-encoding", "Connection", "Keep-Alive", "Proxy-Connection"]
    {
        let refused = writer.state.add_header(&mut writer.out, name, b"1");
        assert!(matches!(refused, Err(MessageError::FieldReserved(_))), "{name}");
    }
    for reason in ["\r\nA: b", "a\0"] {
        Writer::new(REPLY).reject(
            |state, out| state.status_with_reason(out, Status::OK, reason),
            MessageError::StartLine,
        );
    }
    let server = |state: &mut ResponseState, out: &mut Vec<u8>| {
        state.done_headers(out, None, Some("a\r\nb: c"))
    };
    writer.accept(|state, out| state.add_length(out, 0)).reject(server, MessageError::FieldValue);
    let mut writer = Writer::new(REPLY);
    writer.accept(|state, out| state.status_with_reason(out, status(299), "Mostly fine"));
    assert_eq!(writer.text(), "HTTP/1.1 299 Mostly fine\r\n");
    assert_eq!(Writer::with_status(REPLY, 599).text(), "HTTP/1.1 599 \r\n");
}

#[test]
fn every_call_is_allowed_only_in_its_place() {
    use MessageError::*;
    type Call = fn(&mut ResponseState, &mut Vec<u8>) -> Outcome;
    let calls: [Call; 7] = [
        |state, out| state.status(out, Status::OK),
        |state, out| state.add_header(out, "A", b"b"),
        |state, out| state.add_length(out, 1),
        |state, out| state.add_chunked(out),
        |state, out| state.done_headers(out, None, None),
        |state, out| state.write_body(out, b"a"),
        |state, out| state.done(out),
    ];
    let refuse = |writer: &mut Writer, errors: [Option<MessageError>; 7]| {
        for (call, error) in calls.iter().zip(errors) {
            error.into_iter().for_each(|error| {
                writer.reject(call, error);
            });
        }
    };
    let missing = Some(StartLineMissing);
    let mut writer = Writer::new(REPLY);
    refuse(&mut writer, [None, missing, missing, missing, missing, missing, missing]);
    writer.accept(calls[0]);
    let not_done = Some(FieldsNotDone);
    refuse(
        &mut writer,
        [Some(StartLineTwice), None, None, None, Some(LengthMissing), not_done, not_done],
    );
    writer.reject(|state, out| state.status(out, Status::CONTINUE), StartLineTwice);
    writer.accept(calls[2]);
    refuse(&mut writer, [None, None, Some(LengthTwice), Some(LengthTwice), None, None, None]);
    writer.accept(calls[4]);
    let late = Some(FieldTooLate);
    refuse(
        &mut writer,
        [
            Some(StartLineTwice),
            late,
            late,
            late,
            Some(FieldsDoneTwice),
            None,
            Some(BodyTooShort(1)),
        ],
    );
    writer.reject(|state, out| state.write_body(out, b"ab"), BodyTooLong(1));
    writer.accept(calls[5]).reject(calls[5], BodyTooLong(0)).accept(calls[6]);
    refuse(&mut writer, [Some(AlreadyDone); 7]);
    assert_eq!(writer.text(), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
}

#[test]
fn the_handlers_date_and_server_replace_ours() {
    let mut writer = Writer::with_status(REPLY, 200);
    writer
        .accept(|state, out| state.add_header(out, "date", b"now"))
        .accept(|state, out| state.add_header(out, "SERVER", b"mine"))
        .accept(|state, out| state.add_length(out, 0))
        .accept(|state, out| state.done_headers(out, Some(&DateCache::new(0)), Some("rotor")));
    assert_eq!(
        writer.text(),
        "HTTP/1.1 200 OK\r\ndate: now\r\nSERVER: mine\r\nContent-Length: 0\r\n\r\n"
    );
}
