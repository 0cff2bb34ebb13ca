use rotor_core::net::Listener;

use super::running::check_protocols;
use super::*;
use crate::h1::Status;

fn hello(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    response.reply(Status::OK, "text/plain", b"hello\n")
}

/// What `main` prints when it returns the error of serving at this address.
fn refusal(address: &str, threads: usize) -> String {
    let error = Serve::new(address)
        .threads(threads)
        .run_fn(hello, || ())
        .expect_err("it cannot be served there");
    format!("{error:?}")
}

#[test]
fn an_invalid_address_is_reported_with_an_example() {
    for wrong in [
        "nonsense",
        "127.0.0.1",
        "127.0.0.1:70000",
        "",
        // Addresses in the syntax of other programs.
        ":3000",
        "*:3000",
        "http://127.0.0.1:3000",
        "http://127.0.0.1:3000/",
        " 127.0.0.1:3000",
    ] {
        for threads in [1, 2] {
            let message = refusal(wrong, threads);
            assert_eq!(
                message,
                format!("cannot serve at {wrong:?}: it should be like 127.0.0.1:3000")
            );
        }
    }
}

#[test]
fn drain_time_max_keeps_the_other_phases_of_a_drain() {
    let phases = Drain::new(Duration::from_secs(60)).announce(Duration::from_secs(5));
    let server = Serve::new("127.0.0.1:0").drain(phases);
    assert_eq!(server.settings.drain.time(), Duration::from_secs(60), "also after a hand-over");
    let shorter = server.drain_time_max(Duration::from_secs(20)).settings.drain;
    assert_eq!(shorter.time(), Duration::from_secs(20));
    assert_eq!(shorter.in_all(), Duration::from_secs(25));
}

#[test]
fn an_address_in_use_is_named_in_the_error() {
    #[expect(clippy::disallowed_methods, reason = "the other one is no machine")]
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = other.local_addr().expect("it is bound").to_string();
    for threads in [1, 2] {
        let message = refusal(&address, threads);
        let expected = format!("cannot serve at {address:?}: cannot listen on {address}: ");
        assert!(message.starts_with(&expected) && message.contains("in use"), "{message}");
    }
}

#[test]
fn a_listener_opened_elsewhere_cannot_be_handed_over() {
    #[expect(clippy::disallowed_methods, reason = "it is opened elsewhere")]
    let given = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Serve::on(given).hand_over("nobody-is-here");
    let error = server.run_fn(hello, || ()).expect_err("one or the other");
    assert!(format!("{error:?}").contains("is not handed over"), "{error:?}");
}

#[test]
fn a_protocol_that_is_not_spoken_is_named_before_the_address_is_opened() {
    /// What TLS would offer.
    #[derive(Clone)]
    struct Offers(&'static str);

    impl ListenerLayer for Offers {
        type Over<L: Listener> = L;

        fn over<L: Listener>(&self, listener: L) -> L {
            listener
        }

        fn protocols(&self) -> Vec<Vec<u8>> {
            vec![b"http/1.1".to_vec(), self.0.into()]
        }
    }

    for threads in [1, 2] {
        let server = Serve::new("127.0.0.1:0").over(Offers("http/2")).threads(threads);
        let error = server.run_fn(hello, || ()).expect_err("that is a misspelled h2");
        let message = format!("{error:?}");
        assert!(message.contains("may agree on http/2 (ALPN), which is not spoken"), "{message}");
    }
}

#[test]
fn a_server_without_http2_refuses_to_offer_it() {
    let offers = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
    for (names, with_http2, without) in [
        (&[][..], true, true),
        (&["http/1.1"], true, true),
        (&["http/1.1", "http/1.0"], true, true),
        (&["h2", "http/1.1"], true, false),
        (&["h2"], true, false),
        (&["H2"], false, false),
        (&["http/1.1", "spdy/3"], false, false),
    ] {
        let offers: Vec<Vec<u8>> = offers(names);
        assert_eq!(check_protocols(&offers, true).is_ok(), with_http2, "{names:?}");
        assert_eq!(check_protocols(&offers, false).is_ok(), without, "{names:?}");
    }
    let error = check_protocols(&[b"h2".to_vec()], false).expect_err("there is none");
    assert!(error.to_string().ends_with("which needs the feature `http2`"), "{error}");
}
