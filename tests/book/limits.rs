//! Compares `doc/limits.md` with the defaults of the code, in both directions.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use rotor::body::SpoolConfig;
use rotor::dns::{
    ADDRESSES_MAX, ANSWER_BYTES_MAX, CACHED_BYTES_MAX, CHAIN_MAX, ResolvConf, ResolverConfig,
};
use rotor::hand_over::{ANSWER_TIME, PATH_BYTES_MAX, READY_WITHIN};
use rotor::http::Limits;
use rotor::http::client::{self, ClientConfig, PoolConfig};
use rotor::http::files::FilesConfig;
use rotor::http::server::{AccessLogConfig, Http2Config, ServerConfig};
use rotor::net::ListenOptions;
use rotor::proxy_protocol::{LINE_BYTES_MAX, ProxyProtocolConfig};
use rotor::stream::{AcceptConfig, OutboxConfig, PersistentConfig, StreamConfig};
use rotor::tls::{
    EMPTY_BYTES_MAX, HELLO_BYTES_MAX, Identity, Roots, TICKET_KEYS_MAX, TlsClientConfig,
    TlsServerConfig,
};
use rotor::websocket::{Deflate, RoomConfig, WebSocketConfig};
use rotor::{Blocking, Config, Drain, EVENTS_LIMIT, Grace, MACHINES_LIMIT, OffloadPool, TICK};
use rotor_service::MultipartConfig;
use rotor_smoltcp::StackConfig;
use rotor_uring::UringConfig;

use crate::documents::{files, read};

/// Settings that are choices, not limits.
const CHOICES: &[&str] = &[
    // Config
    "exit",
    "on_panic",
    "seed",
    "time_handlers",
    "observer",
    "observes_calls",
    "observes_all_calls",
    "sample_mask",
    "keep_ages",
    "offload",
    "blocking",
    // AccessLogConfig
    "path",
    "format",
    // StreamConfig
    "nodelay",
    "keepalive",
    "send_buffer",
    "receive_buffer",
    "unsent_max",
    "on_abort",
    "counts",
    "held",
    // AcceptConfig
    "per_peer",
    // ProxyProtocolConfig
    "trusted",
    "trusts_unix",
    "untrusted",
    // OutboxConfig
    "when_full",
    "counters",
    // ListenOptions
    "reuse_port",
    "unix_mode",
    // FilesConfig
    "root",
    "index",
    "fallback",
    "hidden",
    "follow_links",
    "mount",
    "cache_control",
    "charset",
    "precompressed",
    "tag_key",
    // ResolverConfig
    "conf",
    "hosts",
    "mixed_case",
    // ResolvConf
    "search",
    "rotate",
    "edns0",
    "tcp_only",
    // Http2Config
    "prior_knowledge",
    "connect_protocol",
    "floods",
    // SpoolConfig
    "directory",
    "mode",
    "sync",
    "pool",
    // WebSocketConfig
    "deflate",
    "subprotocols",
    "origins",
    // Deflate
    "has_takeover",
    // RoomConfig
    "slow",
    // AccessLogConfig
    "path",
    "format",
    // ResolvConf and ResolverConfig: which servers to query
    "servers",
    // TlsServerConfig
    "identities",
    "protocols",
    "client_certificates",
    "versions",
    "tickets",
    "unknown",
    "key_log",
    // TlsClientConfig
    "trust",
    "identity",
    // StackConfig
    "addresses",
    "routes",
    "hardware_address",
    "congestion",
    "verify_checksums",
];

/// Limits by name; the value is a count, or nanoseconds.
type Limit = BTreeMap<String, u128>;

/// The rows of the first table after a line that begins with `heading`.
fn documented(page: &str, heading: &str) -> Limit {
    let lines = page.lines().skip_while(|line| !line.starts_with(heading));
    let rows =
        lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let rows = rows.skip(2).map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, default, unit, reason] = cells[..] else { panic!("four cells, not {row:?}") };
        assert!(!unit.is_empty() && !reason.is_empty(), "{name} has no unit or no reason");
        (name.trim_matches('`').to_string(), amount(default, unit))
    });
    let rows: Vec<(String, u128)> = rows.collect();
    assert!(!rows.is_empty(), "no table after {heading:?}");
    let limits: Limit = rows.iter().cloned().collect();
    assert_eq!(limits.len(), rows.len(), "a limit is there twice after {heading:?}: {rows:?}");
    limits
}

fn amount(default: &str, unit: &str) -> u128 {
    if default == "unlimited" {
        return u128::from(u64::MAX);
    }
    let number: u128 =
        default.replace(',', "").parse().unwrap_or_else(|_| panic!("{default:?} is no number"));
    match unit {
        "s" => number * 1_000_000_000,
        "ms" => number * 1_000_000,
        "µs" => number * 1_000,
        _ => number,
    }
}

/// The limits among the fields of a configuration, read from its `Debug` output.
fn coded(config: &impl Debug) -> Limit {
    let printed = format!("{config:#?}");
    let fields = printed.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
    let fields = fields.filter(|(name, _)| !name.starts_with(' ') && !CHOICES.contains(name));
    let fields =
        fields.map(|(name, value)| (name.to_string(), printed_amount(value.trim_end_matches(','))));
    fields.collect()
}

/// A number or a duration, parsed from its `Debug` output.
fn printed_amount(value: &str) -> u128 {
    if value == format!("{:?}", Duration::MAX) {
        return u128::from(u64::MAX);
    }
    let digits = value.trim_end_matches(char::is_alphabetic);
    let number: u128 = digits.parse().unwrap_or_else(|_| {
        panic!("{value:?} is no whole number: a limit without one, or one of CHOICES?")
    });
    match &value[digits.len()..] {
        "" => number,
        "s" => number * 1_000_000_000,
        "ms" => number * 1_000_000,
        "µs" => number * 1_000,
        unit => panic!("{value:?}: what is {unit:?}?"),
    }
}

#[test]
fn the_limits_page_matches_the_code() {
    let page = read("doc/limits.md");
    let files = FilesConfig::new("/");
    let configs: [(&str, Limit); 25] = [
        ("`rotor::Config`", coded(&Config::new())),
        ("`rotor::Blocking`", coded(&Blocking::new())),
        ("`rotor::stream::AcceptConfig`", coded(&AcceptConfig::new())),
        ("`rotor::net::ListenOptions`", coded(&ListenOptions::new())),
        ("`rotor::stream::StreamConfig`", coded(&StreamConfig::new())),
        ("`rotor::stream::OutboxConfig`", coded(&OutboxConfig::new())),
        ("`rotor::tls::TlsServerConfig`", coded(&tls_server())),
        ("`rotor::tls::TlsClientConfig`", coded(&TlsClientConfig::new(Roots::none()))),
        ("`rotor::proxy_protocol::ProxyProtocolConfig`", coded(&ProxyProtocolConfig::new([]))),
        ("`rotor::stream::PersistentConfig`", coded(&PersistentConfig::new())),
        ("`rotor::http::Limits`", coded(&Limits::new())),
        ("`rotor::http::server::Http2Config`", coded(&Http2Config::new())),
        ("`rotor::http::client::Http2Config`", coded(&client::Http2Config::new())),
        ("`rotor::http::server::AccessLogConfig`", coded(&AccessLogConfig::file("access.log"))),
        ("`rotor::http::client::PoolConfig`", coded(&PoolConfig::new())),
        ("`rotor::http::files::FilesConfig`", coded(&files)),
        ("`rotor::body::SpoolConfig`", coded(&SpoolConfig::new("/"))),
        ("`rotor::websocket::WebSocketConfig`", coded(&WebSocketConfig::new())),
        ("`rotor::websocket::Deflate`", coded(&Deflate::new())),
        ("`rotor::websocket::RoomConfig`", coded(&RoomConfig::new())),
        ("`rotor::dns::ResolverConfig`", coded(&ResolverConfig::new(ResolvConf::default()))),
        ("`rotor::dns::ResolvConf`", coded(&ResolvConf::default())),
        ("`rotor_uring::UringConfig`", coded(&UringConfig::new())),
        ("`rotor_service::MultipartConfig`", coded(&MultipartConfig::new())),
        ("`rotor_smoltcp::StackConfig`", coded(&StackConfig::new())),
    ];
    for (heading, coded) in configs {
        assert_eq!(documented(&page, heading), coded, "{heading}: left the page, right the code");
    }
}

#[test]
fn the_pool_the_totals_and_the_constants_match_the_page() {
    let page = read("doc/limits.md");
    let totals = documented(&page, "`rotor::http::server::ServerConfig`");
    for bodies in [ServerConfig::new().bodies_held(), ClientConfig::new().bodies_held()] {
        assert_eq!(totals["bodies_bytes_max"], bodies.bytes_max() as u128);
    }
    for held in [ServerConfig::new().held(), ClientConfig::new().held()] {
        assert_eq!(totals["held_bytes_max"], held.bytes_max() as u128);
    }
    assert_eq!(totals.len(), 2, "{totals:?}");
    let pool = documented(&page, "`rotor::OffloadPool`");
    let printed = format!("OffloadPool({} threads, {} jobs)", pool["threads"], pool["jobs"]);
    assert_eq!(format!("{:?}", OffloadPool::default()), printed);
    let constants = documented(&page, "Constants of `rotor`");
    let coded = [
        ("MACHINES_LIMIT", MACHINES_LIMIT as u128),
        ("EVENTS_LIMIT", EVENTS_LIMIT as u128),
        ("TICK", TICK.as_nanos()),
    ];
    assert_eq!(constants, coded.map(|(name, value)| (name.to_string(), value)).into());
    let constants = documented(&page, "Constants of `rotor::hand_over`");
    let coded = [
        ("PATH_BYTES_MAX", PATH_BYTES_MAX as u128),
        ("ANSWER_TIME", ANSWER_TIME.as_nanos()),
        ("READY_WITHIN", READY_WITHIN.as_nanos()),
    ];
    assert_eq!(constants, coded.map(|(name, value)| (name.to_string(), value)).into());
    let drain = documented(&page, "`rotor::Drain`");
    let time = |name| Duration::from_nanos(u64::try_from(drain[name]).expect("it is short"));
    let coded = Drain::new(Duration::ZERO);
    assert_eq!(coded, coded.announce(time("announce")).grace(Grace::For(time("grace"))));
    assert_eq!(drain.len(), 2, "{drain:?}");
    let constants = documented(&page, "Constants of `rotor::tls`");
    let coded = [
        ("HELLO_BYTES_MAX", HELLO_BYTES_MAX),
        ("EMPTY_BYTES_MAX", EMPTY_BYTES_MAX),
        ("TICKET_KEYS_MAX", TICKET_KEYS_MAX),
    ];
    assert_eq!(constants, coded.map(|(name, value)| (name.to_string(), value as u128)).into());
    let constants = documented(&page, "Constants of `rotor::proxy_protocol`");
    let coded = [("LINE_BYTES_MAX".to_string(), LINE_BYTES_MAX as u128)];
    assert_eq!(constants, coded.into());
    let constants = documented(&page, "Constants of `rotor::dns`");
    let coded = [
        ("CHAIN_MAX", CHAIN_MAX),
        ("ANSWER_BYTES_MAX", ANSWER_BYTES_MAX),
        ("CACHED_BYTES_MAX", CACHED_BYTES_MAX),
        ("ADDRESSES_MAX", ADDRESSES_MAX),
    ];
    assert_eq!(constants, coded.map(|(name, value)| (name.to_string(), value as u128)).into());
}

#[test]
fn the_constants_of_the_service_crates_match_the_page() {
    let page = read("doc/limits.md");
    let tower =
        [("HELD_BYTES_MAX", rotor_tower::HELD_BYTES_MAX), ("FRAMES_MAX", rotor_tower::FRAMES_MAX)];
    let service = [
        ("PAIRS_MAX", rotor_service::PAIRS_MAX),
        ("COOKIES_MAX", rotor_service::COOKIES_MAX),
        ("REASON_CHARS_MAX", rotor_service::REASON_CHARS_MAX),
        ("COMPRESSED_BYTES_MIN", rotor_service::COMPRESSED_BYTES_MIN),
        ("WHOLE_BYTES_MAX", rotor_service::WHOLE_BYTES_MAX),
        ("ENCODER_BYTES_MAX", rotor_service::ENCODER_BYTES_MAX),
        ("ROUTE_BODY_BYTES_MAX", rotor_service::ROUTE_BODY_BYTES_MAX),
    ];
    for (heading, coded, times) in [
        (
            "Constants of `rotor_tower`",
            &tower[..],
            &[("HALF_CLOSE_TIMEOUT", rotor_tower::HALF_CLOSE_TIMEOUT)][..],
        ),
        ("Constants of `rotor_service`", &service, &[]),
    ] {
        let coded = coded.iter().map(|(name, value)| (name.to_string(), *value as u128));
        let times = times.iter().map(|(name, value)| (name.to_string(), value.as_nanos()));
        assert_eq!(documented(&page, heading), coded.chain(times).collect::<Limit>(), "{heading}");
    }
}

/// These bounds are private constants, so they are read from the source.
#[test]
fn the_bounds_of_the_blocking_detector_match_the_page() {
    let directory = "rotor-core/src/blocking";
    let mut coded = Limit::new();
    for path in files(directory, ".rs") {
        let file = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let text = read(&path);
        let constants =
            text.lines().filter_map(|line| line.strip_prefix("const ")?.split_once(": "));
        // Those of the configuration are defaults, which its `Debug` output shows.
        for (name, rest) in constants.filter(|(name, _)| name.ends_with("_MAX") && file != "config")
        {
            let (_, value) = rest.split_once(" = ").expect("it has a value");
            let value = value.trim_end_matches(';').replace('_', ",");
            coded.insert(format!("{file}::{name}"), amount(&value, "types"));
        }
    }
    assert_eq!(documented(&read("doc/limits.md"), "Constants of `rotor-core/src/blocking`"), coded);
}

/// The defaults, with a certificate, which is required.
fn tls_server() -> TlsServerConfig {
    let key = KeyPair::generate().expect("there is randomness");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("it is a name");
    let chain = vec![params.self_signed(&key).expect("it signs").der().to_vec()];
    TlsServerConfig::new(Identity::from_der(chain, key.serialize_der()).expect("they are right"))
}

#[test]
fn printed_configurations_and_amounts_are_parsed() {
    let printed =
        coded(&StreamConfig::new().flush_timeout(Duration::from_millis(1_000)).input_max(7));
    assert_eq!((printed["flush_timeout"], printed["input_max"]), (1_000_000_000, 7));
    assert_eq!(printed["linger_bytes"], amount("unlimited", "bytes"));
    assert_eq!(amount("1,024", "bytes"), 1_024);
    assert_eq!(amount("100", "ms"), 100_000_000);
}
