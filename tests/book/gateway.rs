//! Compares the table of gateway statuses in the chapter on the HTTP client with the code.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use rotor::http::client::{ClientError, Stage};
use rotor::http::{BodyError, HeadError, MessageError, ResponseHeadError};
use rotor::stream::{Fatal, ResolveError};

use crate::documents::read;

/// Each row: how its first cell begins, and the errors it covers.
fn rows() -> Vec<(&'static str, Vec<ClientError>)> {
    let broken = || io::Error::from(io::ErrorKind::ConnectionRefused);
    let why = || Arc::new(broken());
    let not_connected =
        |errors: Vec<Fatal>| errors.into_iter().map(ClientError::NotConnected).collect();
    let resolving =
        |errors: Vec<ResolveError>| not_connected(errors.into_iter().map(Fatal::Resolve).collect());
    let stages = [Stage::Waiting, Stage::Sending, Stage::Writing, Stage::Receiving, Stage::Taking];
    let bodies = [BodyError::Truncated, BodyError::TooLarge, BodyError::ChunkSize];
    vec![
        (
            "`NotConnected`: refused, unreachable, the handshake failed",
            not_connected(vec![Fatal::Connect(broken()), Fatal::Handshake(broken())]),
        ),
        (
            "`NotConnected`: connecting or the handshake took too long",
            not_connected(vec![Fatal::ConnectTimeout, Fatal::HandshakeTimeout]),
        ),
        (
            "`NotConnected`: there is no such host, or nobody could say",
            resolving(vec![ResolveError::NotFound(why()), ResolveError::Failed(why())]),
        ),
        (
            "`NotConnected`: what was asked for is no name of a host",
            resolving(vec![ResolveError::Name(why())]),
        ),
        (
            "`NotConnected`: the resolver has no room, is overloaded, or has ended",
            resolving(vec![ResolveError::NoRoom(why()), ResolveError::Busy, ResolveError::Gone]),
        ),
        (
            "`NotConnected`: this side has no descriptor, no memory or no port left for a socket",
            // EMFILE.
            not_connected(vec![Fatal::Connect(io::Error::from_raw_os_error(24))]),
        ),
        (
            "`Lost`: the connection broke",
            vec![
                ClientError::Lost(Fatal::Reset(broken())),
                ClientError::Lost(Fatal::Write(broken())),
            ],
        ),
        (
            "`Lost`: the server does not take the request",
            vec![ClientError::Lost(Fatal::FlushTimeout)],
        ),
        (
            "`Lost`: the connections hold as much memory as they may (`held_bytes_max`)",
            vec![ClientError::Lost(Fatal::NoRoom)],
        ),
        ("`Closed`", vec![ClientError::Closed]),
        ("`Head`", vec![ClientError::Head(ResponseHeadError::Head(HeadError::TooLarge))]),
        ("`Body`: malformed, cut short or too long", bodies.map(ClientError::Body).into()),
        ("`Body`: too slow", vec![ClientError::Body(BodyError::TooSlow)]),
        ("`TooManyInterim`", vec![ClientError::TooManyInterim]),
        ("`Protocol`, `Reset`: of HTTP/2", vec![ClientError::Protocol(""), ClientError::Reset(2)]),
        (
            "`FieldsTooLarge`: the server says that it takes no such head (HTTP/2)",
            vec![ClientError::FieldsTooLarge],
        ),
        ("`Refused`: the server does not look at the request (HTTP/2)", vec![ClientError::Refused]),
        ("`ResponseTimeout`", vec![ClientError::ResponseTimeout]),
        ("`Deadline`, at whatever stage", stages.map(ClientError::Deadline).into()),
        ("`Full`", vec![ClientError::Full]),
        ("`NoRoom`", vec![ClientError::NoRoom("no slot".into())]),
        ("`BodiesFull`", vec![ClientError::BodiesFull]),
        ("`NotStored`", vec![ClientError::NotStored(BodyError::DiskFull)]),
        ("`Request`", vec![ClientError::Request(MessageError::HostMissing)]),
        ("`Unfinished`", vec![ClientError::Unfinished(MessageError::BodyTooLong(0))]),
        ("`Panicked`", vec![ClientError::Panicked]),
        ("`Unhandled`", vec![ClientError::Unhandled]),
        (
            "`Unsent`, `NotRepeated`: as the error in it, here `Closed`",
            vec![
                ClientError::Unsent(ClientError::Closed.into()),
                ClientError::NotRepeated(ClientError::Closed.into()),
            ],
        ),
    ]
}

#[test]
fn the_table_of_gateway_statuses_matches_the_code() {
    let chapter = read("doc/guide/http-client.md");
    let table = chapter.lines().skip_while(|line| !line.starts_with("| `ClientError` | status |"));
    let table: Vec<&str> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
    let coded: Vec<String> = rows()
        .iter()
        .map(|(row, errors)| {
            let statuses: Vec<u16> =
                errors.iter().map(|error| error.gateway_status().code()).collect();
            assert!(statuses.windows(2).all(|pair| pair[0] == pair[1]), "{row}: {statuses:?}");
            format!("| {row} | {} |", statuses[0])
        })
        .collect();
    assert_eq!(table, coded, "left the chapter, right the code");
}

/// The name of the variant in the `Debug` output of a value.
fn variant(printed: &str) -> &str {
    printed.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default()
}

#[test]
fn every_error_of_the_client_is_in_the_table() {
    let errors = rows().into_iter().flat_map(|(_, errors)| errors);
    let listed: BTreeSet<String> =
        errors.map(|error| variant(&format!("{error:?}")).to_owned()).collect();
    let api = read("api/rotor-http.txt");
    let variants = api
        .lines()
        .filter_map(|line| line.strip_prefix("pub rotor_http::client::ClientError::").map(variant));
    let variants: BTreeSet<String> = variants.map(str::to_owned).collect();
    assert!(variants.len() > 10, "{variants:?}");
    assert_eq!(listed, variants, "left the chapter, right the code");
}
