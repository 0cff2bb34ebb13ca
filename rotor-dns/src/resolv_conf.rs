//! `ResolvConf`: the servers, options and search list of `/etc/resolv.conf` (resolv.conf(5)).

use std::net::IpAddr;
use std::time::Duration;

use crate::name::Name;

/// How many servers `parse` accepts: MAXNS of resolv.conf(5).
const SERVERS_MAX: usize = 3;
/// How many domains of a search list are used: each costs a query for a name that does not exist.
const SEARCH_MAX: usize = 32;
/// The highest values that resolv.conf(5) allows.
const NDOTS_MAX: u64 = 15;
pub(crate) const TIMEOUT_MAX: Duration = Duration::from_secs(30);
pub(crate) const ATTEMPTS_MAX: usize = 5;

/// The content of a `resolv.conf`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ResolvConf {
    /// The servers, in the order in which they are asked. [`parse`](ResolvConf::parse) takes the
    /// first 3. Default: only 127.0.0.1.
    pub servers: Vec<IpAddr>,
    /// The domains that are appended to a name. [`parse`](ResolvConf::parse) takes the first 32.
    /// Default: none (the host's own domain is not determined).
    #[doc(alias = "search list")]
    pub search: Vec<Name>,
    /// How many dots a name must have to be tried as it is before the search list. Default 1;
    /// [`parse`](ResolvConf::parse) allows at most 15.
    pub ndots: usize,
    /// How long a server has for an answer. If the question must be repeated over TCP or without
    /// EDNS, the time starts again. Default 5 s, at most 30 s: more counts as that.
    pub timeout: Duration,
    /// How often each server is asked. Default 2, at least 1, at most 5: less or more counts as
    /// that.
    pub attempts: usize,
    /// Whether each query begins with the next server. The two queries for the addresses of a host
    /// begin with the same one. Default: no.
    pub rotate: bool,
    /// Whether servers are told that answers of up to 1,232 bytes fit into a datagram (`edns0`,
    /// RFC 6891). Default: no; answers of more than 512 bytes then come over TCP. A server that
    /// does not support this extension responds with a format error (§7) or "not implemented", and
    /// is asked again without it. If it answers then, it is asked without EDNS for 15 minutes
    /// (§6.2.2). A server that does not respond at all is treated like any other that is silent.
    #[doc(alias = "EDNS")]
    pub edns0: bool,
    /// Whether TCP is used from the start (`use-vc`). Default: no.
    #[doc(alias = "use-vc")]
    pub tcp_only: bool,
}

impl Default for ResolvConf {
    fn default() -> ResolvConf {
        ResolvConf {
            servers: vec![IpAddr::from([127, 0, 0, 1])],
            search: Vec::new(),
            ndots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
            rotate: false,
            edns0: false,
            tcp_only: false,
        }
    }
}

impl ResolvConf {
    /// Parses a text. Unknown or malformed parts are ignored, as in other resolvers. Values out of
    /// range are clamped. If there are several search lists, the last one is used. The environment
    /// variables `RES_OPTIONS` and `LOCALDOMAIN` are ignored. So are servers with a zone
    /// (`fe80::1%eth0`), and the log says so: pass them to
    /// [`ResolverConfig::servers`](crate::ResolverConfig::servers), with the number of the interface.
    pub fn parse(text: &str) -> ResolvConf {
        let mut conf = ResolvConf { servers: Vec::new(), ..ResolvConf::default() };
        for line in text.lines() {
            // In the first column only (resolv.conf(5)).
            if line.starts_with(['#', ';']) {
                continue;
            }
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => match words.next().map(|word| (word, word.parse())) {
                    Some((_, Ok(address))) if conf.servers.len() < SERVERS_MAX => {
                        conf.servers.push(address)
                    }
                    // Without it, another server is asked, and that one's failures say nothing
                    // about this line.
                    Some((word, Err(_))) => log::warn!(
                        "the name server {word} in resolv.conf is ignored: it is not an address, or \
                         has a zone (then pass its scope id to ResolverConfig::servers)"
                    ),
                    Some((_, Ok(_))) | None => {}
                },
                // Of these two, the last one in the file is used (resolv.conf(5)).
                Some("domain") => conf.search = parse_names(words.take(1)),
                Some("search") => conf.search = parse_names(words),
                Some("options") => words.for_each(|option| conf.apply_option(option)),
                _ => {}
            }
        }
        // Without a server, the one on this machine is asked (resolv.conf(5)).
        if conf.servers.is_empty() {
            conf.servers = ResolvConf::default().servers;
        }
        conf
    }

    fn apply_option(&mut self, option: &str) {
        let (name, value) = option.split_once(':').unwrap_or((option, ""));
        let value = value.parse::<u64>().ok();
        match (name, value) {
            ("ndots", Some(value)) => self.ndots = value.min(NDOTS_MAX) as usize,
            ("timeout", Some(value)) => {
                self.timeout = Duration::from_secs(value.max(1)).min(TIMEOUT_MAX)
            }
            ("attempts", Some(value)) => {
                self.attempts = value.clamp(1, ATTEMPTS_MAX as u64) as usize
            }
            ("rotate", _) => self.rotate = true,
            ("edns0", _) => self.edns0 = true,
            ("use-vc", _) => self.tcp_only = true,
            _ => {}
        }
    }

    /// Returns the names to try for `text`, in order. A text that ends with a dot is tried only as
    /// it is. A name with at least `ndots` dots is tried as it is first, then with each domain of
    /// the search list appended; other names are tried with the search list first. Candidates that
    /// would be too long are left out.
    ///
    /// # Errors
    ///
    /// The text is not a name.
    pub(crate) fn candidates(&self, text: &str) -> Result<Vec<Name>, crate::name::NameError> {
        let name: Name = text.parse()?;
        // It is fully qualified: a search list is for names that people abbreviate.
        if text.ends_with('.') {
            return Ok(vec![name]);
        }
        let searched =
            self.search.iter().filter_map(|domain| format!("{name}.{domain}").parse().ok());
        let is_first = name.dots() >= self.ndots;
        let mut candidates: Vec<Name> = searched.collect();
        candidates.insert(if is_first { 0 } else { candidates.len() }, name);
        Ok(candidates)
    }
}

fn parse_names<'a>(words: impl Iterator<Item = &'a str>) -> Vec<Name> {
    words.filter_map(|word| word.parse().ok()).take(SEARCH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_applied_or_ignored() {
        let text = "# comment\n; comment\nnameserver 192.0.2.1\nnameserver nonsense\nnameserver 2001:db8::1\n\
                    nameserver fe80::1%eth0\ndomain old.example\nsearch a.example  b.example.\tbad..name\n\
                    options ndots:3 timeout:7 attempts:4 rotate edns0 use-vc unknown:9\nsortlist 1.2.3.4\nnameserver\n";
        let conf = ResolvConf::parse(text);
        let servers: Vec<IpAddr> =
            ["192.0.2.1", "2001:db8::1"].iter().map(|a| a.parse().expect("an address")).collect();
        assert_eq!(conf.servers, servers);
        assert_eq!(
            conf.search.iter().map(Name::as_str).collect::<Vec<_>>(),
            ["a.example", "b.example"]
        );
        assert_eq!((conf.ndots, conf.timeout, conf.attempts), (3, Duration::from_secs(7), 4));
        assert!(conf.rotate && conf.edns0 && conf.tcp_only);
    }

    #[test]
    fn missing_options_keep_their_defaults() {
        for text in ["", "garbage\n", "options ndots: timeout:x\n", "nameserver\n"] {
            assert_eq!(ResolvConf::parse(text), ResolvConf::default(), "{text:?}");
        }
    }

    #[test]
    fn out_of_range_numbers_are_clamped() {
        let cases = [
            ("ndots:15", 15, 5, 2),
            ("ndots:16", 15, 5, 2),
            ("timeout:0", 1, 1, 2),
            ("timeout:30", 1, 30, 2),
            ("timeout:31", 1, 30, 2),
            ("attempts:0", 1, 5, 1),
            ("attempts:5", 1, 5, 5),
            ("attempts:6", 1, 5, 5),
        ];
        for (option, ndots, timeout, attempts) in cases {
            let conf = ResolvConf::parse(&format!("options {option}"));
            assert_eq!(
                (conf.ndots, conf.timeout.as_secs(), conf.attempts),
                (ndots, timeout, attempts),
                "{option}"
            );
        }
        let four = "nameserver 10.0.0.1\n".repeat(4);
        assert_eq!(ResolvConf::parse(&four).servers.len(), 3);
        let search = format!("search {}", "d.example ".repeat(33));
        assert_eq!(ResolvConf::parse(&search).search.len(), 32);
    }

    #[test]
    fn the_number_of_dots_decides_which_candidate_is_first() {
        let conf = ResolvConf::parse("search a.example b.example\noptions ndots:2");
        let cases: [(&str, &[&str]); 5] = [
            ("host", &["host.a.example", "host.b.example", "host"]),
            ("host.x", &["host.x.a.example", "host.x.b.example", "host.x"]),
            ("host.x.y", &["host.x.y", "host.x.y.a.example", "host.x.y.b.example"]),
            ("host.", &["host"]),
            ("HOST.X.Y.", &["host.x.y"]),
        ];
        for (text, expected) in cases {
            let candidates = conf.candidates(text).expect("a name");
            assert_eq!(candidates.iter().map(Name::as_str).collect::<Vec<_>>(), expected, "{text}");
        }
        assert!(conf.candidates("a..b").is_err());
        let long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(55));
        assert_eq!(conf.candidates(&long).expect("a name").len(), 1);
    }
}
