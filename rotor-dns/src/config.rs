//! `ResolverConfig`: the servers, names and limits of a resolver.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::hosts::Hosts;
use crate::resolv_conf::ResolvConf;

/// The port of name servers (RFC 1035 §4.2).
const DNS_PORT: u16 = 53;

/// The settings of a [`Resolver`](crate::Resolver).
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
    /// Creates a configuration with these servers, names and options, the defaults for the rest,
    /// and no hosts file.
    pub fn new(conf: ResolvConf) -> ResolverConfig {
        let servers = conf.servers.iter().map(|ip| SocketAddr::new(*ip, DNS_PORT)).collect();
        let config = ResolverConfig {
            servers: Vec::new(),
            conf,
            hosts: Hosts::default(),
            lookup_timeout: Duration::from_secs(20),
            lookups_max: 1024,
            queries_max: 128,
            cache_bytes_max: 4 << 20,
            mixed_case: true,
        };
        config.servers(servers)
    }

    /// Reads this machine's `/etc/resolv.conf` and `/etc/hosts`. A file that cannot be read counts
    /// as empty. A word that is not UTF-8, for example in a comment, is ignored. Call this while
    /// the loop is set up, since it reads files. Later changes of the files have no effect.
    pub fn system() -> ResolverConfig {
        ResolverConfig::from_files(Path::new("/etc/resolv.conf"), Path::new("/etc/hosts"))
    }

    fn from_files(conf: &Path, hosts: &Path) -> ResolverConfig {
        // Not `read_to_string`: a single letter in another encoding would make it fail for the
        // whole file.
        let read = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let conf = ResolvConf::parse(&read(conf));
        ResolverConfig::new(conf).hosts(Hosts::parse(&read(hosts)))
    }

    /// Sets the servers, with their ports. They replace those of the `resolv.conf`, which are asked
    /// at port 53. `0.0.0.0` and `::` mean this machine, as in a `resolv.conf`. A link-local IPv6
    /// address needs its scope id, the number of the interface; that of others is ignored.
    pub fn servers(mut self, servers: Vec<SocketAddr>) -> ResolverConfig {
        self.servers = servers.into_iter().map(source_of_answers).collect();
        self
    }

    /// Sets hosts whose addresses are known. Default: none.
    ///
    /// Some names have a fixed meaning unless they are among these hosts. No server is asked about
    /// them, even if an alias or the search list leads to them. `localhost` and names that end in
    /// it are this machine, and have no records but those of its addresses (RFC 6761 §6.3).
    /// `invalid` and `onion` and names that end in them do not exist (§6.4, RFC 7686 §2).
    pub fn hosts(mut self, hosts: Hosts) -> ResolverConfig {
        self.hosts = hosts;
        self
    }

    /// Sets how long a lookup may take from when it is started, including its wait for a query, and
    /// all servers and candidates. After that the result is
    /// [`Timeout`](crate::LookupError::Timeout), or the addresses of one family if those are known.
    /// Default 20 s: two servers, asked twice for 5 s each.
    ///
    /// A lookup is not started while it waits in the service because
    /// [`lookups_max`](ResolverConfig::lookups_max) lookups are in progress. If servers do not
    /// answer, it may take this time once more for each `lookups_max` lookups that wait before it.
    pub fn lookup_timeout(mut self, time: Duration) -> ResolverConfig {
        self.lookup_timeout = time;
        self
    }

    /// Sets how many lookups may be in progress, and how many more may wait in the service. Beyond
    /// that, asking returns [`Full`](rotor_core::SendError::Full). At least 1; default 1,024 of
    /// each, at a few hundred bytes. A lookup whose host has the maximum number of addresses takes
    /// 9 KiB while it waits for the other family.
    pub fn lookups_max(mut self, lookups: usize) -> ResolverConfig {
        self.lookups_max = lookups.max(1);
        self
    }

    /// Sets how many questions may be asked of servers at a time; further questions wait for their
    /// turn. A question that no lookup waits for any more is asked of no further server, and if
    /// another one needs its place, the server has one second for its answer. Each question under
    /// way takes a slot of the loop, a socket and, over TCP, up to 64 KiB. At least 1; default 128.
    #[doc(alias = "exchanges_max")]
    pub fn queries_max(mut self, queries: usize) -> ResolverConfig {
        self.queries_max = queries.max(1);
        self
    }

    /// Sets how many bytes of memory the cached replies may take, with everything that belongs to
    /// them. If there is no room, the replies that would expire first are dropped. Default 4 MiB:
    /// some 7,000 ordinary replies, more names than most programs ever look up. 0: nothing is
    /// cached, not even failures of servers ([`Server`](crate::LookupError::Server)).
    ///
    /// A reply that takes more than [`CACHED_BYTES_MAX`](crate::CACHED_BYTES_MAX) is not cached.
    #[doc(alias = "cache_max")]
    #[doc(alias = "negative caching")]
    #[doc(alias = "TTL")]
    pub fn cache_bytes_max(mut self, bytes: usize) -> ResolverConfig {
        self.cache_bytes_max = bytes;
        self
    }

    /// Sets whether the letters of a question are capitalized at random and must come back
    /// unchanged (0x20), which makes an answer harder to forge. Default: yes. A server that changes
    /// them is asked over TCP, where they do not matter. If it does not answer over TCP, as many
    /// routers do not, it is asked in small letters in the next round
    /// ([`attempts`](crate::ResolvConf::attempts)). With such a server each question takes the time
    /// of one failed try, so set this to `false`.
    #[doc(alias = "0x20")]
    pub fn mixed_case(mut self, yes: bool) -> ResolverConfig {
        self.mixed_case = yes;
        self
    }
}

/// Returns the address from which the answers of a server come. The system takes the unspecified
/// address as this machine, whose answers come from another address. It reports a scope id only
/// with link-local addresses, and no flow label.
fn source_of_answers(mut server: SocketAddr) -> SocketAddr {
    match &mut server {
        SocketAddr::V4(server) if server.ip().is_unspecified() => {
            server.set_ip(Ipv4Addr::LOCALHOST);
        }
        SocketAddr::V4(_) => {}
        SocketAddr::V6(server) => {
            if server.ip().is_unspecified() {
                server.set_ip(Ipv6Addr::LOCALHOST);
            }
            if !server.ip().is_unicast_link_local() {
                server.set_scope_id(0);
            }
            server.set_flowinfo(0);
        }
    }
    server
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddrV6};

    use rotor_test_kit::Directory;

    use super::*;

    #[test]
    fn only_the_word_with_a_foreign_encoding_is_skipped() {
        let directory = Directory::create();
        let (conf, hosts) = (directory.join("resolv.conf"), directory.join("hosts"));
        // `ü` in ISO 8859-1.
        fs::write(&conf, b"# f\xFCr alle\nnameserver 192.0.2.53\n").expect("it can be written");
        fs::write(&hosts, b"10.0.0.1 one k\xFCche two # K\xFCche\n").expect("it can be written");
        let config = ResolverConfig::from_files(&conf, &hosts);
        assert_eq!(config.servers, [SocketAddr::from(([192, 0, 2, 53], DNS_PORT))]);
        for (name, count) in [("one", 1), ("two", 1), ("kche", 0)] {
            let known = config.hosts.addresses(&name.parse().expect("a name"));
            assert_eq!(known.len(), count, "{name}");
        }
    }

    #[test]
    fn missing_files_count_as_empty() {
        let directory = Directory::create();
        let nothing = directory.join("nothing");
        let config = ResolverConfig::from_files(&nothing, &nothing);
        assert_eq!(config.servers, [SocketAddr::from(([127, 0, 0, 1], DNS_PORT))]);
    }

    #[test]
    fn an_unspecified_server_address_is_replaced_by_loopback() {
        for (said, asked) in [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("192.0.2.53", "192.0.2.53")]
        {
            let conf = ResolvConf::parse(&format!("nameserver {said}"));
            let asked: IpAddr = asked.parse().expect("an address");
            assert_eq!(ResolverConfig::new(conf).servers, [SocketAddr::new(asked, DNS_PORT)]);
        }
    }

    /// Otherwise none of its answers would seem to come from it.
    #[test]
    fn a_server_address_keeps_only_the_parts_that_its_answers_have() {
        let address = |text: &str, flow_label, scope_id| {
            let ip: Ipv6Addr = text.parse().expect("an address");
            SocketAddr::V6(SocketAddrV6::new(ip, DNS_PORT, flow_label, scope_id))
        };
        for (text, scope_id) in [("2001:db8::53", 0), ("::1", 0), ("fd00::53", 0), ("fe80::53", 3)]
        {
            let servers = vec![address(text, 7, 3)];
            let config = ResolverConfig::new(ResolvConf::default()).servers(servers);
            assert_eq!(config.servers, [address(text, 0, scope_id)]);
        }
    }
}
