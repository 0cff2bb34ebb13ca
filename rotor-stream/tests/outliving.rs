//! A protocol that has something left to do without its connection.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use rotor_core::{Scope, with_causes};
use rotor_stream::testing::Driver;
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, StreamConfig, Transport};

type Log = Vec<String>;

/// Waits for input, and holds it once the connection is gone, until it is woken.
struct Outliving {
    outlives: bool,
    ends: bool,
}

impl Protocol for Outliving {
    type Context = Log;
    type Seed = (bool, bool);

    fn config(_: &(bool, bool)) -> Arc<StreamConfig> {
        Arc::new(StreamConfig::new().flush_timeout(Duration::from_secs(10)))
    }

    fn create(
        (outlives, ends): (bool, bool),
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        transport.output.write_all(b"output").expect("open");
        Intent::of(Outliving { outlives, ends }).bytes(1).no_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(format!("read {:?}", String::from_utf8_lossy(transport.input)));
        transport.input.clear();
        Intent::of(self).bytes(1).no_deadline()
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Log>,
    ) -> Intent<Self> {
        scope.push(format!("exception: {}", with_causes(&exception)));
        if !matches!(exception, Exception::Lost(_)) {
            return Intent::of(self).sleep().no_deadline();
        }
        transport.output.write_all(b"more").expect("open");
        Intent::of(self).hold().or_flush(0).no_deadline()
    }

    fn bytes_flushed(self, _: &mut Transport<'_>, scope: &mut Scope<'_, Log>) -> Intent<Self> {
        scope.push("flushed".to_owned());
        Intent::of(self).hold().no_deadline()
    }

    fn wakeup(self, _: &mut Transport<'_>, scope: &mut Scope<'_, Log>) -> Intent<Self> {
        scope.push("wakeup".to_owned());
        if self.ends { Intent::done() } else { Intent::of(self).bytes(1).no_deadline() }
    }

    fn outlives_connection(&self) -> bool {
        self.outlives
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Log>) {
        scope.push(format!("fatal: {}", with_causes(&error)));
    }
}

type Loss = fn(&mut Driver<Outliving>);

/// How a connection is lost, and how that is reported.
const LOSSES: [(Loss, &str); 3] = [
    (
        |driver| {
            driver.make_room(100);
            driver.reset();
        },
        "the connection broke: connection reset",
    ),
    (
        |driver| {
            driver.fail_writes(ErrorKind::BrokenPipe);
            driver.make_room(100);
        },
        "writing has failed: broken pipe",
    ),
    (|driver| driver.advance(Duration::from_secs(11)), "the peer does not read what is sent to it"),
];

fn lose(outlives: bool, ends: bool, loss: Loss) -> Driver<Outliving> {
    let mut driver = Driver::with((outlives, ends), Log::new(), |peer| peer.limit_room(0));
    driver.send(b"one");
    loss(&mut driver);
    driver
}

#[test]
fn a_protocol_that_outlives_its_connection_is_told_of_the_loss_and_goes_on() {
    for (loss, error) in LOSSES {
        for ends in [false, true] {
            let mut driver = lose(true, ends, loss);
            driver.advance(Duration::from_secs(1_000));
            let exception = format!("exception: the connection is gone: {error}");
            let mut expected = vec!["read \"one\"", exception.as_str(), "flushed"];
            assert_eq!(*driver.context(), expected);
            assert!(driver.is_alive() && !driver.is_dropped());
            driver.wakeup();
            let fatal = format!("fatal: {error}");
            expected.push("wakeup");
            expected.extend((!ends).then_some(fatal.as_str()));
            assert_eq!(*driver.context(), expected);
            assert!(!driver.is_alive() && driver.is_dropped() && driver.failures().is_empty());
        }
    }
}

#[test]
fn any_other_protocol_ends_with_its_connection() {
    for (loss, error) in LOSSES {
        let mut driver = lose(false, false, loss);
        assert_eq!(*driver.context(), ["read \"one\"", &format!("fatal: {error}")]);
        assert!(!driver.is_alive() && driver.is_dropped());
    }
}

#[test]
fn a_protocol_is_told_of_the_loss_of_its_connection_after_the_end_of_its_input() {
    for (loss, error) in LOSSES {
        let mut driver = Driver::with((true, false), Log::new(), |peer| peer.limit_room(0));
        driver.end();
        assert_eq!(*driver.context(), ["exception: the peer has ended the stream"]);
        loss(&mut driver);
        let log = driver.context();
        assert!(
            log.len() == 3 && log[1].starts_with("exception: the connection is gone: "),
            "{log:?}"
        );
        assert_eq!(log[2], "flushed");
        driver.wakeup();
        assert_eq!(driver.context().last(), Some(&format!("fatal: {error}")));
        assert!(!driver.is_alive() && driver.is_dropped());
    }
}
