//! What a resolver is told: servers, names, limits.

use std::net::SocketAddr;
use std::time::Duration;

use crate::hosts::Hosts;
use crate::resolv_conf::ResolvConf;

/// The port of name servers (RFC 1035 §4.2).
const PORT: u16 = 53;

/// How a [`Resolver`](crate::Resolver) works.
#[derive(Clone, Debug)]
#[must_use]
pub struct ResolverConfig {
    pub(crate) conf: ResolvConf,
    pub(crate) servers: Vec<SocketAddr>,
    pub(crate) hosts: Hosts,
    pub(crate) lookup_timeout: Duration,
    pub(crate) lookups_max: usize,
    pub(crate) queries_max: usize,
    pub(crate) cache_bytes_max: usize,
    pub(crate) mixed_case: bool,
}

impl ResolverConfig {
    /// What a `resolv.conf` says, with the defaults for the rest, and no hosts file.
    pub fn new(conf: ResolvConf) -> ResolverConfig {
        ResolverConfig {
            servers: conf.servers.iter().map(|ip| SocketAddr::new(*ip, PORT)).collect(),
            conf,
            hosts: Hosts::default(),
            lookup_timeout: Duration::from_secs(20),
            lookups_max: 1024,
            queries_max: 128,
            cache_bytes_max: 4 << 20,
            mixed_case: true,
        }
    }

    /// What this machine's `/etc/resolv.conf` and `/etc/hosts` say now; a file that cannot be read
    /// counts as empty. It is read while the loop is set up; later changes of the files are not
    /// seen.
    pub fn system() -> ResolverConfig {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let conf = ResolvConf::parse(&read("/etc/resolv.conf"));
        ResolverConfig::new(conf).hosts(Hosts::parse(&read("/etc/hosts")))
    }

    /// The servers, with their ports, in place of those of the `resolv.conf`, which are asked at
    /// port 53.
    pub fn servers(mut self, servers: Vec<SocketAddr>) -> ResolverConfig {
        self.servers = servers;
        self
    }

    /// Names whose addresses are known. Default: none, save that `localhost` and what ends in it is
    /// this machine (RFC 6761 §6.3), and that `invalid` and what ends in it does not exist (§6.4),
    /// whatever servers say.
    pub fn hosts(mut self, hosts: Hosts) -> ResolverConfig {
        self.hosts = hosts;
        self
    }

    /// How long a lookup may take, waiting for its turn and all servers and candidates included;
    /// then it is answered with [`Timeout`](crate::LookupError::Timeout). Default 20 s: two
    /// servers, asked twice for 5 s each.
    pub fn lookup_timeout(mut self, time: Duration) -> ResolverConfig {
        self.lookup_timeout = time;
        self
    }

    /// How many lookups may be under way, and how many more may wait in the service; asking beyond
    /// that is answered with [`Full`](rotor_core::SendError::Full). Default 1,024 of each, at a few
    /// hundred bytes; one whose host has as many addresses as there may be takes 9 KiB while it
    /// waits for the other family.
    pub fn lookups_max(mut self, lookups: usize) -> ResolverConfig {
        self.lookups_max = lookups.max(1);
        self
    }

    /// How many questions may be asked of servers at a time; further questions wait for their turn.
    /// Each takes a slot of the loop, a socket and, over TCP, up to 64 KiB. Default 128.
    #[doc(alias = "exchanges_max")]
    pub fn queries_max(mut self, queries: usize) -> ResolverConfig {
        self.queries_max = queries.max(1);
        self
    }

    /// How many bytes of memory the replies take that are remembered, all that belongs to them
    /// included; what would expire first makes room. Default 4 MiB: some 7,000 ordinary replies,
    /// more names than most programs ever ask for; 0: none are.
    ///
    /// A reply that takes more than [`CACHED_BYTES_MAX`](crate::CACHED_BYTES_MAX) is not
    /// remembered.
    #[doc(alias = "cache_max")]
    #[doc(alias = "negative caching")]
    #[doc(alias = "TTL")]
    pub fn cache_bytes_max(mut self, bytes: usize) -> ResolverConfig {
        self.cache_bytes_max = bytes;
        self
    }

    /// Whether the letters of a question are capitals at random and must come back as they were
    /// (0x20), which makes an answer harder to forge. Default: yes. A server that changes them is
    /// asked over TCP, where it does not matter.
    #[doc(alias = "0x20")]
    pub fn mixed_case(mut self, yes: bool) -> ResolverConfig {
        self.mixed_case = yes;
        self
    }
}
