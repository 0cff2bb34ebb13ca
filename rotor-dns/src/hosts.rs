//! `Hosts`: addresses that are known without a query, as in `/etc/hosts` (hosts(5)).

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::name::Name;

/// The addresses of a hosts file, by name.
///
/// ```
/// # mod rotor { pub use rotor_dns as dns; }
/// use rotor::dns::Hosts;
///
/// let hosts = Hosts::parse("127.0.0.1 localhost  # this machine\n::1 localhost\n");
/// let name = "localhost".parse()?;
/// assert_eq!(hosts.addresses(&name).len(), 2);
/// # Ok::<(), rotor::dns::NameError>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Hosts {
    addresses: BTreeMap<Name, Vec<IpAddr>>,
}

impl Hosts {
    /// Parses a text: each line has an address, then names; `#` begins a comment. Malformed lines
    /// and names are ignored, as in other resolvers.
    pub fn parse(text: &str) -> Hosts {
        let mut hosts = Hosts::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else { continue };
            for name in words.filter_map(|word| word.parse::<Name>().ok()) {
                let known = hosts.addresses.entry(name).or_default();
                // Files to which several programs write have duplicate lines; a client would try
                // the address twice.
                if !known.contains(&address) {
                    known.push(address);
                }
            }
        }
        hosts
    }

    /// Returns the addresses of a name, in the order of the file; empty if it is not in the file.
    pub fn addresses(&self, name: &Name) -> &[IpAddr] {
        self.addresses.get(name).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_all_their_addresses_in_order() {
        let text = "# comment\n10.0.0.1 one ONE.example. uno#dos\n\t10.0.0.2\tone\n::1 one # six\n10.0.0.1 one\n\
                    not.an.address two\n10.0.0.3\n10.0.0.4 bad..name good\r\n256.0.0.1 two\n";
        let hosts = Hosts::parse(text);
        let cases: [(&str, &[&str]); 6] = [
            ("one", &["10.0.0.1", "10.0.0.2", "::1"]),
            ("one.example", &["10.0.0.1"]),
            ("uno", &["10.0.0.1"]),
            ("dos", &[]),
            ("two", &[]),
            ("good", &["10.0.0.4"]),
        ];
        for (name, expected) in cases {
            let expected: Vec<IpAddr> =
                expected.iter().map(|a| a.parse().expect("an address")).collect();
            assert_eq!(hosts.addresses(&name.parse().expect("a name")), expected, "{name}");
        }
    }
}
