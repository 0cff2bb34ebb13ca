//! What a resolver logs.

use std::cell::RefCell;

use log::{LevelFilter, Log, Metadata, Record};
use rotor_dns::ResolvConf;

use crate::{SECOND, Stage, right_answer, serve, silent};

thread_local! {
    /// The lines of this thread's test: a process has only one logger.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Lines;

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("rotor_dns")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            LINES.with_borrow_mut(|lines| lines.push(record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

fn start_logging() {
    // Only the first test of the process sets it.
    let _is_set_already = log::set_logger(&Lines);
    log::set_max_level(LevelFilter::Debug);
}

#[test]
fn the_log_names_each_ignored_server_of_the_file() {
    start_logging();
    let conf = "nameserver fe80::1%eth0\nnameserver dns.example\nnameserver\n\
                nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver ::3\nnameserver ::4";
    assert_eq!(ResolvConf::parse(conf).servers.len(), 3);
    let lines = LINES.take();
    let expected = ["fe80::1%eth0", "dns.example"];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, server) in lines.iter().zip(expected) {
        assert!(line.starts_with(&format!("the name server {server} in resolv.conf is ignored")));
    }
}

#[test]
fn the_log_names_the_silent_server() {
    start_logging();
    let conf = ResolvConf::parse("options timeout:1 attempts:1");
    let mut stage = Stage::new(vec![silent(), serve(right_answer)], conf, |config| config);
    let reply = stage.start_lookup("www.example");
    stage.run_for(2 * SECOND);
    drop(reply);
    let first = stage.sim.address(stage.hosts[0]);
    let lines = LINES.take();
    let about = lines.iter().filter(|line| line.starts_with("asking ")).collect::<Vec<_>>();
    assert_eq!(about.len(), 1, "{lines:?}");
    assert!(about[0].starts_with(&format!("asking {first}:53 for ")), "{lines:?}");
}
