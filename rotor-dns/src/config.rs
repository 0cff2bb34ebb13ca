//! The settings of a resolver: servers, names, limits.

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
    /// Takes these servers, names and options, with the defaults for the rest, and no hosts file.
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

    /// Reads this machine's `/etc/resolv.conf` and `/etc/hosts`; a file that cannot be read counts
    /// as empty. Call it while the loop is set up, since it reads files. Later changes of the files
    /// have no effect.
    pub fn system() -> ResolverConfig {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let conf = ResolvConf::parse(&read("/etc/resolv.conf"));
        ResolverConfig::new(conf).hosts(Hosts::parse(&read("/etc/hosts")))
    }

    /// Sets the servers, with their ports. They replace those of the `resolv.conf`, which are asked
    /// at port 53.
    pub fn servers(mut self, servers: Vec<SocketAddr>) -> ResolverConfig {
        self.servers = servers;
        self
    }

    /// Sets names whose addresses are known. Default: none. Independent of this, and whatever
    /// servers say, `localhost` and names that end in it are this machine (RFC 6761 §6.3), and
    /// `invalid` and names that end in it do not exist (§6.4).
    pub fn hosts(mut self, hosts: Hosts) -> ResolverConfig {
        self.hosts = hosts;
        self
    }

    /// Sets how long a lookup may take, with its wait in the queue and all servers and candidates.
    /// After that the answer is [`Timeout`](crate::LookupError::Timeout). Default 20 s: two
    /// servers, asked twice for 5 s each.
    pub fn lookup_timeout(mut self, time: Duration) -> ResolverConfig {
        self.lookup_timeout = time;
        self
    }

    /// Sets how many lookups may be under way, and how many more may wait in the service. Beyond
    /// that, asking returns [`Full`](rotor_core::SendError::Full). Default 1,024 of each, at a few
    /// hundred bytes. A lookup whose host has the maximum number of addresses takes 9 KiB while it
    /// waits for the other family.
    pub fn lookups_max(mut self, lookups: usize) -> ResolverConfig {
        self.lookups_max = lookups.max(1);
        self
    }

    /// Sets how many questions may be asked of servers at a time; further questions wait for their
    /// turn. Each takes a slot of the loop, a socket and, over TCP, up to 64 KiB. Default 128.
    #[doc(alias = "exchanges_max")]
    pub fn queries_max(mut self, queries: usize) -> ResolverConfig {
        self.queries_max = queries.max(1);
        self
    }

    /// Sets how many bytes of memory the remembered replies may take, with all that belongs to
    /// them. The replies that would expire first make room. Default 4 MiB: some 7,000 ordinary
    /// replies, more names than most programs ever ask for. 0: none are remembered.
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

    /// Sets whether the letters of a question are capitalized at random and must come back
    /// unchanged (0x20), which makes an answer harder to forge. Default: yes. A server that changes
    /// them is asked over TCP, where it does not matter.
    #[doc(alias = "0x20")]
    pub fn mixed_case(mut self, yes: bool) -> ResolverConfig {
        self.mixed_case = yes;
        self
    }
}
