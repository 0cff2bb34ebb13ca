//! `Network`: addresses with a common prefix.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use quick_error::quick_error;

/// Addresses with a common prefix, such as `10.0.0.0/8` or `2001:db8::/32`, or a single one such as
/// `127.0.0.1`.
///
/// ```
/// # mod rotor { pub use rotor_proxy_protocol as proxy_protocol; }
/// use rotor::proxy_protocol::Network;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network: Network = "10.0.0.0/8".parse()?;
/// assert!(network.contains("10.1.2.3".parse()?));
/// // The way in which an IPv6 listener sees an IPv4 peer.
/// assert!(network.contains("::ffff:10.1.2.3".parse()?));
/// assert!(!network.contains("11.0.0.1".parse()?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "CIDR")]
#[doc(alias = "subnet")]
pub struct Network(IpNet);

quick_error! {
    /// Why a text is not a network. The caller's mistake.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum NetworkError {
        /// The text is neither an address nor a network.
        Invalid(text: String) {
            display("{text:?} is neither an address nor a network, such as 10.0.0.0/8")
        }
    }
}

impl Network {
    /// Returns whether the network contains an address. An IPv4 address that is written as an IPv6
    /// one (`::ffff:10.0.0.1`) counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// The network of this address alone.
impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Network {
        Network(IpNet::from(address.to_canonical()))
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Network::from(address));
        }
        let network: IpNet = text.parse().map_err(|_| NetworkError::Invalid(text.into()))?;
        Ok(Network(canonical(network)))
    }
}

/// Converts an IPv4 network that is written as an IPv6 one (`::ffff:10.0.0.0/104`). Since addresses
/// are converted as well, such a network would otherwise contain none.
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(network) = network else { return network };
    let mapped = network.addr().to_ipv4_mapped().zip(network.prefix_len().checked_sub(96));
    let mapped = mapped.and_then(|(address, bits)| Ipv4Net::new(address, bits).ok());
    mapped.map_or(IpNet::V6(network), IpNet::V4)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_only_its_addresses() {
        for (network, address, is_of) in [
            ("10.0.0.0/8", "10.255.255.255", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.1.2.3/8", "10.9.9.9", true),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("10.0.0.0/8", "::10.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("::ffff:127.0.0.1", "127.0.0.1", true),
            ("::ffff:10.0.0.0/104", "10.9.9.9", true),
            ("::ffff:10.0.0.0/104", "::ffff:10.9.9.9", true),
            ("::ffff:10.0.0.0/104", "11.0.0.0", false),
            ("::ffff:0:0/96", "1.2.3.4", true),
            ("::ffff:0:0/96", "::1", false),
            ("::ffff:10.0.0.1/128", "10.0.0.1", true),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("::1", "::1", true),
        ] {
            let network: Network = network.parse().expect("it is one");
            assert_eq!(network.contains(address.parse().expect("it is one")), is_of, "{network}");
        }
    }

    #[test]
    fn an_invalid_network_is_an_error_with_its_text() {
        for text in ["", "/8", "10.0.0.0/33", "::/129", "10.0.0/8", "localhost", "10.0.0.0/8 "] {
            let error = text.parse::<Network>().expect_err("it is none");
            assert_eq!(error, NetworkError::Invalid(text.into()));
            assert!(error.to_string().contains("10.0.0.0/8"), "{error}");
        }
    }
}
