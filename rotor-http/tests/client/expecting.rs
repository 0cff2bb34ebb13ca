//! Requests that wait for 100 (Continue) before their body is sent, and other interim responses.

use std::time::Duration;

use rotor_http::Limits;

use crate::exchanges::{OK, connection_with, events, sent};
use crate::probe::{BodyPlan, OnWakeup, Probe, seconds};
use crate::script::{connection, is_reusable, outcome};

#[test]
fn an_expect_continue_body_waits_for_100_or_for_its_timeout() {
    let limits = || Limits::new().continue_timeout(seconds(1));
    let mut driver = connection(limits(), [Probe::post(BodyPlan::Expected("body"))]);
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(sent(&driver), head);
    driver.send(b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(sent(&driver), "body");
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(is_reusable(&mut driver));

    let mut driver = connection(limits(), [Probe::post(BodyPlan::Expected("body"))]);
    driver.advance(Duration::from_millis(999));
    assert_eq!(sent(&driver), head);
    driver.advance(Duration::from_millis(2));
    assert_eq!(sent(&driver), "body", "a server that does not know it says nothing");
    driver.send(b"HTTP/1.1 100 Continue\r\n\r\n");
    driver.send(OK);
    assert_eq!(
        events(&driver)[2..4],
        ["/ interim 100", "/ head 200 Some(2)"],
        "a late one is an interim answer"
    );
    assert!(is_reusable(&mut driver));
}

#[test]
fn an_empty_body_is_wanted_at_once_and_the_server_is_not_asked() {
    let mut driver = connection(Limits::new(), [Probe::post(BodyPlan::Expected(""))]);
    assert_eq!(sent(&driver), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(events(&driver), ["/ prepare", "/ wanted"]);
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(is_reusable(&mut driver));
}

#[test]
fn an_expect_continue_body_of_a_deferred_request_waits_for_100_too() {
    let deferred = || {
        let plan = Probe { defers_write: true, ..Probe::post(BodyPlan::Expected("body")) };
        let mut driver = connection(Limits::new().continue_timeout(seconds(1)), [plan]);
        driver.advance(seconds(5));
        driver.context_mut().on_wakeup = Some(OnWakeup::Write);
        driver.wakeup();
        assert!(sent(&driver).ends_with("Expect: 100-continue\r\n\r\n"), "only the head");
        driver
    };
    let mut driver = deferred();
    driver.send(b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(events(&driver), ["/ prepare", "/ wanted"]);
    assert_eq!(sent(&driver), "body");
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(is_reusable(&mut driver));
    // The time begins with the head.
    let mut driver = deferred();
    driver.advance(Duration::from_millis(999));
    assert_eq!(sent(&driver), "");
    driver.advance(Duration::from_millis(2));
    assert_eq!(sent(&driver), "body");
    driver.context_mut().on_wakeup = None;
    driver.wakeup();
    driver.advance(seconds(2));
    assert_eq!(events(&driver), ["/ prepare", "/ wanted"]);
}

#[test]
fn the_body_of_a_complete_request_is_not_asked_for() {
    for answer in [&b"HTTP/1.1 100 Continue\r\n\r\n"[..], b""] {
        let mut driver = connection_with(Probe::post(BodyPlan::Expected("body")));
        driver.context_mut().on_wakeup = Some(OnWakeup::WriteRest);
        driver.wakeup();
        assert!(sent(&driver).ends_with("body"), "the handler does not wait for 100");
        driver.send(answer);
        driver.advance(seconds(2));
        driver.send(OK);
        assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
        assert!(is_reusable(&mut driver));
    }
}

#[test]
fn a_final_response_instead_of_100_withholds_the_body() {
    let mut driver = connection_with(Probe::post(BodyPlan::Expected("body")));
    let _head = driver.take_received();
    driver.send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n");
    driver.advance(seconds(2));
    assert_eq!(sent(&driver), "");
    driver.send(b"no");
    assert_eq!(outcome(&mut driver).as_deref(), Some("401 no"));
    assert!(!is_reusable(&mut driver), "the server still waits for the body, or not");
    assert_eq!(sent(&driver), "");
}

#[test]
fn interim_responses_are_reported_to_the_handler() {
    let mut driver = connection_with(Probe::get("/"));
    driver.send(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n");
    driver.send(OK);
    assert_eq!(events(&driver)[1..3], ["/ interim 103", "/ interim 102"]);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
}
