//! Input that arrives whole, byte by byte, or cut at every point, when read and when written: the
//! transcript is the same.

mod probe;

use std::io::Write;

use probe::{Event, Log, Probe, echo_lines, seed};
use rotor_core::Scope;
use rotor_stream::testing::{Driver, assert_cuts_agree};
use rotor_stream::{Expectation, FrameLength, Intent, StreamConfig, Transport};

fn output_however_cut(
    config: StreamConfig,
    handler: fn(Probe, &Event, &mut Transport<'_>, &mut Scope<'_, Log>) -> Intent<Probe>,
    input: &[u8],
) -> Vec<u8> {
    let transcript = assert_cuts_agree(
        || Driver::<Probe>::new(seed(config.clone(), handler), Log::new()),
        input,
    );
    assert!(transcript.has_ended);
    assert_eq!(transcript.failures, Vec::<String>::new());
    transcript.output
}

/// Puts each line in brackets, so the output shows where each line ended.
fn echo_lines_in_brackets(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    scope: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    let Event::Read(line) = event else { return echo_lines(me, event, transport, scope) };
    let text = String::from_utf8_lossy(line.content(transport.input)).into_owned();
    line.consume(transport.input);
    write!(transport.output, "[{text}]").expect("open");
    Intent::of(me).keep().keep_deadline()
}

#[test]
fn lines_are_read_the_same_however_the_input_is_cut() {
    let input = b"one\n\ntwo\nthree and more\nhalf";
    assert_eq!(
        output_however_cut(StreamConfig::new(), echo_lines_in_brackets, input),
        b"[one][][two][three and more]"
    );
}

#[test]
fn lines_are_read_the_same_with_tiny_limits_and_budgets() {
    let config = StreamConfig::new()
        .input_max(16)
        .output_high_water(3)
        .read_budget(1)
        .write_budget(1)
        .calls_budget(1);
    let input = b"one\n\ntwo\nthree and more\nhalf";
    assert_eq!(
        output_however_cut(config, echo_lines_in_brackets, input),
        b"[one][][two][three and more]"
    );
}

/// Messages with a length prefix, answered with only their length; 0 ends.
fn lengths(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    _: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    match event {
        Event::Read(matched) if matched.len() == 1 => {
            let len = usize::from(transport.input[0]);
            if len == 0 {
                matched.consume(transport.input);
                return Intent::done();
            }
            Intent::of(me).bytes(1 + len).no_deadline()
        }
        Event::Read(matched) => {
            write!(transport.output, "{};", matched.len() - 1).expect("open");
            matched.consume(transport.input);
            Intent::of(me).bytes(1).no_deadline()
        }
        Event::Exception(_) => Intent::done(),
        _ => Intent::of(me).bytes(1).no_deadline(),
    }
}

#[test]
fn length_prefixed_messages_are_read_the_same_however_cut() {
    let input = b"\x03abc\x01x\x0afull of it\x00what comes after the end";
    assert_eq!(output_however_cut(StreamConfig::new(), lengths, input), b"3;1;10;");
}

/// Searches for a delimiter of several bytes after a header of four; answers with the content
/// between them, as a block and as bytes.
fn boundaries(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    _: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    match event {
        Event::Read(matched) => {
            let content = matched.content(transport.input)[4..].to_vec();
            matched.consume(transport.input);
            transport.output.push_block(content.repeat(200)).expect("open");
            transport.output.write_all(b"|").expect("open");
        }
        Event::Exception(_) => return Intent::done(),
        _ => {}
    }
    Intent::of(me)
        .expect(Expectation::Delimiter { offset: 4, bytes: b"--==", max: 100 })
        .no_deadline()
}

#[test]
fn boundaries_after_an_offset_are_found_however_the_input_is_cut() {
    let output = output_however_cut(StreamConfig::new(), boundaries, b"--==abc--==head--=--==rest");
    assert_eq!(output, [&b"abc".repeat(200)[..], b"|", &b"--=".repeat(200)[..], b"|"].concat());
}

/// Full duplex: accepts any bytes as they come, and writes a letter whenever the output is empty,
/// five times.
fn both_ways(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    scope: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    match event {
        Event::Read(_) => transport.input.clear(),
        Event::Exception(_) => return Intent::done(),
        _ => {}
    }
    let written = scope.iter().filter(|call| *call == "wrote").count();
    if written < 5 && transport.output.is_empty() {
        scope.push("wrote".to_string());
        transport.output.write_all(b"w").expect("open");
    }
    if written < 5 {
        return Intent::of(me).bytes(1).or_flush(0).no_deadline();
    }
    Intent::of(me).bytes(1).no_deadline()
}

#[test]
fn input_and_output_can_be_awaited_together() {
    assert_eq!(output_however_cut(StreamConfig::new(), both_ways, b"anything"), b"wwwww");
}

/// Frames that start with one byte for the length of the rest, and a byte that starts no frame.
/// Sends the content back, and the exception that ended the stream.
fn frames(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    _: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    match event {
        Event::Read(frame) => {
            let content = frame.content(transport.input)[1..].to_vec();
            frame.consume(transport.input);
            transport.output.write_pieces(&[&content, b"|"]).expect("open");
        }
        Event::Exception(exception) => {
            write!(transport.output, "{exception}").expect("open");
            return Intent::done();
        }
        _ => {}
    }
    let length = |input: &[u8]| match input {
        [b'!', ..] => FrameLength::Malformed,
        [count, ..] => FrameLength::Bytes(1 + usize::from(*count)),
        [] => FrameLength::Unknown,
    };
    Intent::of(me).frame(length, 101).no_deadline()
}

#[test]
fn frames_are_delimited_by_their_own_length() {
    let long = [&[100][..], &[b'x'; 100]].concat();
    let cases: [(&[u8], &str); 5] = [
        (b"\x03one\x03two\x00", "one|two||the peer has ended the stream"),
        (b"\x03one\x04two", "one|the peer has ended the stream"),
        (b"\x03one!bang", "one|the input is not the beginning of a frame"),
        (b"\x03one\x65", "one|the expected input is longer than 101 bytes"),
        (&long, &format!("{}|the peer has ended the stream", "x".repeat(100))),
    ];
    for (input, expected) in cases {
        let output = output_however_cut(StreamConfig::new(), frames, input);
        assert_eq!(String::from_utf8_lossy(&output), expected);
    }
}

/// Answers whatever arrives at once with its length, as if the stream had messages.
fn lengths_of_reads(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    _: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    match event {
        Event::Read(_) => {
            let len = transport.input.len();
            transport.input.clear();
            writeln!(transport.output, "{len}").expect("open");
        }
        Event::Exception(_) => return Intent::done(),
        _ => {}
    }
    Intent::of(me).bytes(1).no_deadline()
}

#[test]
#[should_panic(expected = r#"byte by byte, to a peer that reads all at once:
  Transcript { output: "1\n1\n", failures: [], has_ended: true }
whole:
  Transcript { output: "2\n", failures: [], has_ended: true }"#)]
fn a_difference_is_shown_with_its_cut_and_as_text() {
    output_however_cut(StreamConfig::new(), lengths_of_reads, b"ab");
}

#[test]
#[should_panic(expected = r#"the protocol has failed: ["panicked: a bug"]"#)]
fn a_panic_is_no_result_however_the_input_is_cut() {
    let make = || {
        let seed = seed(StreamConfig::new(), |me, event, _, _| match event {
            Event::Read(_) => panic!("a bug"),
            _ => Intent::of(me).bytes(1).no_deadline(),
        });
        Driver::<Probe>::new(seed, Log::new())
    };
    assert_cuts_agree(make, b"ab");
}
