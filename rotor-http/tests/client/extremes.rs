//! Each field of a client's configuration at its extremes, with small real exchanges: each request
//! that is begun has an outcome, and a limit that restricts nothing makes none fail.

use crate::limit_extremes::limits;
use crate::probe::{BodyPlan, Probe};
use crate::script::{connection, outcome};

fn chunked_response() -> Vec<u8> {
    let head = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    format!("{head}4;a=b\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n").into_bytes()
}

fn large_response() -> Vec<u8> {
    const LEN: usize = 200_000;
    format!("HTTP/1.1 200 OK\r\nContent-Length: {LEN}\r\n\r\n{}", "x".repeat(LEN)).into_bytes()
}

/// What it is about, a request, and the response that it gets.
type Exchange = (&'static str, fn() -> Probe, Vec<u8>);

fn exchanges() -> Vec<Exchange> {
    let small = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec();
    vec![
        ("a request", || Probe::get("/"), small.clone()),
        ("a body", || Probe::post(BodyPlan::Whole("some body")), small.clone()),
        ("chunks", || Probe::post(BodyPlan::Chunked("some body")), small.clone()),
        ("a large body", || Probe::post(BodyPlan::Much(200_000)), small.clone()),
        ("a body that waits", || Probe::post(BodyPlan::Expected("some body")), small),
        ("a chunked response", || Probe::get("/"), chunked_response()),
        ("a chunked response in pieces", || Probe::get("/").progressive(), chunked_response()),
        ("a large response", || Probe::get("/"), large_response()),
        ("a large response in pieces", || Probe::get("/").progressive(), large_response()),
    ]
}

#[test]
fn with_any_limit_at_its_extremes_each_request_that_was_begun_has_an_outcome() {
    for (limit, limits, is_greatest) in limits() {
        for (exchange, make, response) in exchanges() {
            for piece in [response.len(), response.len().div_ceil(40)] {
                let case = format!("{limit}, {exchange} in pieces of {piece}");
                let mut driver = connection(limits.clone(), [make(), make()]);
                for at in 0..2 {
                    let is_begun = driver.context().futures.len() == 1;
                    if !is_begun {
                        assert!(!is_greatest && at == 1, "{case}: not begun");
                        assert!(driver.is_dropped() || driver.is_ended(), "{case}: it waits");
                        continue;
                    }
                    if exchange == "a body that waits" {
                        driver.send(b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                    response.chunks(piece).for_each(|piece| driver.send(piece));
                    let Some(got) = outcome(&mut driver) else {
                        // It was never sent: a pool makes it again.
                        assert_eq!(driver.context().returned_jobs.len(), 1, "{case}: it waits");
                        continue;
                    };
                    let is_served = got.starts_with("200 ");
                    assert!(is_served || !is_greatest, "{case}: {got}");
                }
                assert_eq!(driver.failures(), [""; 0], "{case}");
            }
        }
    }
}
