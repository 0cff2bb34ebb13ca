//! The parameters on which both ends agree (RFC 7692 §7): offers and answers.

use super::config::Deflate;

const NAME: &str = "permessage-deflate";

/// The largest window, which is the default.
const WINDOW_BITS_MAX: u8 = 15;

/// The smallest window that the codec supports; a peer may ask for 8.
const WINDOW_BITS_MIN: u8 = 9;

/// The agreed parameters: how this end compresses, and how the other end does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AgreedParams {
    /// The window with which this end compresses. `None` if the peer asked for a smaller one than
    /// the codec supports: then nothing is compressed, which is always allowed.
    pub(crate) send_bits: Option<u8>,
    pub(crate) sends_takeover: bool,
    pub(crate) receives_takeover: bool,
}

/// The parameters of one offer or answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Params {
    server_no_takeover: bool,
    client_no_takeover: bool,
    server_bits: Option<u8>,
    /// The parameter, and its value if it has one.
    client_bits: Option<Option<u8>>,
}

impl Params {
    /// Reads one element of the field; `None` if it is another extension, or malformed.
    fn parse(element: &[u8]) -> Option<Params> {
        let text = std::str::from_utf8(element).ok()?;
        let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']));
        if !parts.next()?.eq_ignore_ascii_case(NAME) {
            return None;
        }
        let mut params = Params::default();
        for part in parts {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
                None => (part, None),
            };
            let is_first = match (name.to_ascii_lowercase().as_str(), value) {
                ("server_no_context_takeover", None) => {
                    !std::mem::replace(&mut params.server_no_takeover, true)
                }
                ("client_no_context_takeover", None) => {
                    !std::mem::replace(&mut params.client_no_takeover, true)
                }
                ("server_max_window_bits", Some(value)) => {
                    params.server_bits.replace(parse_window_bits(value)?).is_none()
                }
                ("client_max_window_bits", None) => params.client_bits.replace(None).is_none(),
                ("client_max_window_bits", Some(value)) => {
                    params.client_bits.replace(Some(parse_window_bits(value)?)).is_none()
                }
                _ => return None,
            };
            // A repeated parameter makes the offer invalid (RFC 7692 §7.1).
            if !is_first {
                return None;
            }
        }
        Some(params)
    }
}

/// Reads the value of a window parameter: 8 to 15, without leading zeros, perhaps in quotes.
fn parse_window_bits(value: &str) -> Option<u8> {
    let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    match value {
        "8" => Some(8),
        "9" => Some(9),
        "10" => Some(10),
        "11" => Some(11),
        "12" => Some(12),
        "13" => Some(13),
        "14" => Some(14),
        "15" => Some(15),
        _ => None,
    }
}

/// Chooses among a client's offers, as a server. Returns the agreed parameters, and the answer for
/// the client. Takes the first offer that can be met; `None` if none can.
pub(crate) fn choose<'a>(
    offers: impl Iterator<Item = &'a [u8]>,
    config: &Deflate,
) -> Option<(AgreedParams, String)> {
    offers.filter_map(Params::parse).find_map(|params| answer_offer(params, config))
}

fn answer_offer(offer: Params, config: &Deflate) -> Option<(AgreedParams, String)> {
    let sends_takeover = config.has_takeover && !offer.server_no_takeover;
    let receives_takeover = config.has_takeover && !offer.client_no_takeover;
    let send_bits = config.window_bits.min(offer.server_bits.unwrap_or(WINDOW_BITS_MAX));
    if send_bits < WINDOW_BITS_MIN {
        return None;
    }
    let mut answer = NAME.to_string();
    if !sends_takeover {
        answer += "; server_no_context_takeover";
    }
    if !receives_takeover {
        answer += "; client_no_context_takeover";
    }
    if offer.server_bits.is_some() || send_bits < WINDOW_BITS_MAX {
        answer += &format!("; server_max_window_bits={send_bits}");
    }
    // Allowed only if the client has sent the parameter (RFC 7692 §7.1.2.2).
    if let Some(most) = offer.client_bits {
        let bits = config.window_bits.min(most.unwrap_or(WINDOW_BITS_MAX));
        if bits < WINDOW_BITS_MAX {
            answer += &format!("; client_max_window_bits={bits}");
        }
    }
    let agreed = AgreedParams { send_bits: Some(send_bits), sends_takeover, receives_takeover };
    Some((agreed, answer))
}

/// Returns the offer of a client.
pub(crate) fn offer(config: &Deflate) -> String {
    let mut offer = NAME.to_string();
    if !config.has_takeover {
        offer += "; server_no_context_takeover; client_no_context_takeover";
    }
    if config.window_bits < WINDOW_BITS_MAX {
        offer += &format!("; server_max_window_bits={}", config.window_bits);
    }
    offer + "; client_max_window_bits"
}

/// Reads a server's answer, as a client; `None` if it does not match the offer.
pub(crate) fn check_answer(answer: &[u8], config: &Deflate) -> Option<AgreedParams> {
    let params = Params::parse(answer)?;
    // A server that was asked to keep no context must confirm that (RFC 7692 §7.1.1.1), and must
    // not exceed the requested window.
    if !config.has_takeover && !params.server_no_takeover {
        return None;
    }
    if params.server_bits.unwrap_or(WINDOW_BITS_MAX) > config.window_bits {
        return None;
    }
    let bits = match params.client_bits {
        None => WINDOW_BITS_MAX,
        // In an answer, this parameter has a value.
        Some(value) => value?,
    };
    let send_bits = config.window_bits.min(bits);
    Some(AgreedParams {
        send_bits: (send_bits >= WINDOW_BITS_MIN).then_some(send_bits),
        sends_takeover: config.has_takeover && !params.client_no_takeover,
        receives_takeover: config.has_takeover && !params.server_no_takeover,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "; server_no_context_takeover; client_no_context_takeover";

    fn chosen(offers: &str, config: Deflate) -> Option<String> {
        let (_, answer) = choose(offers.as_bytes().split(|byte| *byte == b','), &config)?;
        Some(answer.strip_prefix(NAME).expect("the name").to_string())
    }

    #[test]
    fn a_server_takes_the_first_offer_that_it_can_meet() {
        let plain = || Some(PLAIN.to_string());
        let bits = |bits: &str| Some(format!("{PLAIN}; {bits}"));
        for (offers, answer) in [
            ("permessage-deflate", plain()),
            ("Permessage-Deflate", plain()),
            ("permessage-deflate; client_max_window_bits", plain()),
            ("permessage-deflate; server_no_context_takeover", plain()),
            ("permessage-deflate ; server_max_window_bits = 10", bits("server_max_window_bits=10")),
            ("permessage-deflate;server_max_window_bits=\"9\"", bits("server_max_window_bits=9")),
            ("permessage-deflate; client_max_window_bits=9", bits("client_max_window_bits=9")),
            ("permessage-deflate; server_max_window_bits=8", None),
            ("permessage-deflate; server_max_window_bits=8, permessage-deflate", plain()),
            ("permessage-deflate; server_max_window_bits", None),
            ("permessage-deflate; server_max_window_bits=09", None),
            ("permessage-deflate; server_max_window_bits=16", None),
            ("permessage-deflate; server_no_context_takeover=1", None),
            ("permessage-deflate; client_max_window_bits; client_max_window_bits", None),
            ("permessage-deflate; unknown", None),
            ("x-webkit-deflate-frame", None),
            ("other, permessage-deflate", plain()),
            ("", None),
        ] {
            assert_eq!(chosen(offers, Deflate::new()), answer, "{offers}");
        }
        let narrow = Deflate::new().window_bits(11);
        let both = "; server_max_window_bits=11; client_max_window_bits=11";
        assert_eq!(
            chosen("permessage-deflate; client_max_window_bits", narrow),
            Some(format!("{PLAIN}{both}"))
        );
        let has_takeover = Deflate::new().context_takeover(true);
        assert_eq!(chosen("permessage-deflate", has_takeover), Some(String::new()));
        // Either side may give up its context takeover, whatever the other one does.
        for (side, sends, receives) in [("server", false, true), ("client", true, false)] {
            let parameter = format!("; {side}_no_context_takeover");
            let offer = format!("{NAME}{parameter}");
            let (agreed, answer) =
                choose([offer.as_bytes()].into_iter(), &has_takeover).expect("met");
            assert_eq!(answer, offer);
            assert_eq!((agreed.sends_takeover, agreed.receives_takeover), (sends, receives));
            let agreed = super::check_answer(answer.as_bytes(), &has_takeover).expect("agreed");
            assert_eq!((agreed.sends_takeover, agreed.receives_takeover), (receives, sends));
        }
    }

    #[test]
    fn a_client_checks_the_answer_against_its_offer() {
        let all =
            AgreedParams { send_bits: Some(15), sends_takeover: false, receives_takeover: false };
        let plain = Deflate::new();
        let over = plain.context_takeover(true);
        for (answer, config, expected) in [
            (format!("{NAME}{PLAIN}"), plain, Some(all)),
            (format!("{NAME}; server_no_context_takeover"), plain, Some(all)),
            (NAME.to_string(), plain, None),
            (
                NAME.to_string(),
                over,
                Some(AgreedParams { sends_takeover: true, receives_takeover: true, ..all }),
            ),
            (
                format!("{NAME}{PLAIN}; client_max_window_bits=10"),
                plain,
                Some(AgreedParams { send_bits: Some(10), ..all }),
            ),
            (
                format!("{NAME}{PLAIN}; client_max_window_bits=8"),
                plain,
                Some(AgreedParams { send_bits: None, ..all }),
            ),
            (format!("{NAME}{PLAIN}; client_max_window_bits"), plain, None),
            (format!("{NAME}{PLAIN}; server_max_window_bits=12"), plain.window_bits(11), None),
            (format!("{NAME}{PLAIN}; other"), plain, None),
        ] {
            assert_eq!(check_answer(answer.as_bytes(), &config), expected, "{answer}");
        }
    }

    #[test]
    fn our_server_accepts_every_offer_of_our_client() {
        for config in [
            Deflate::new(),
            Deflate::new().window_bits(9),
            Deflate::new().context_takeover(true),
            Deflate::new().context_takeover(true).window_bits(12),
        ] {
            let offer = offer(&config);
            let (server, answer) = choose([offer.as_bytes()].into_iter(), &config).expect("met");
            let client = check_answer(answer.as_bytes(), &config).expect("agreed");
            assert_eq!(server, client, "{offer} / {answer}");
        }
    }
}
