//! The example `resolve` against dnsmasq.
#![expect(clippy::disallowed_methods, reason = "a port is looked for outside of any loop")]

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::support::{PATIENCE, example, program, run, text};

/// A name server on a port of its own; killed on drop.
struct Dnsmasq {
    child: Child,
    port: u16,
}

impl Dnsmasq {
    fn start() -> Option<Dnsmasq> {
        let program = program("dnsmasq")?;
        // Another process may take the port before it is bound again. Then this tries again.
        for _ in 0..20 {
            let port =
                UdpSocket::bind("127.0.0.1:0").and_then(|s| s.local_addr()).expect("a port").port();
            let long = "t".repeat(240);
            let child = Command::new(&program)
                .args([
                    "--keep-in-foreground",
                    "--no-resolv",
                    "--no-hosts",
                    "--conf-file=/dev/null",
                ])
                .args([
                    "--bind-interfaces",
                    "--listen-address=127.0.0.1",
                    "--pid-file",
                    "--local=/example/",
                ])
                .args(["--auth-ttl=60", "--local-ttl=60", "--user=root"])
                .arg(format!("--port={port}"))
                .args([
                    "--host-record=www.example,192.0.2.1,2001:db8::1",
                    "--cname=alias.example,www.example",
                ])
                .arg("--mx-host=example,www.example,10")
                .arg("--srv-host=_sip._udp.example,www.example,5060,1,2")
                .args((0..8).map(|_| format!("--txt-record=long.example,{long}")))
                .arg("--txt-record=text.example,one,two")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it was found");
            let mut server = Dnsmasq { child, port };
            if server.is_up() {
                return Some(server);
            }
        }
        panic!("dnsmasq does not start");
    }

    /// Waits until it answers. Returns false if it exits before.
    fn is_up(&mut self) -> bool {
        let begun = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none())
            && begun.elapsed() < PATIENCE
        {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            thread::yield_now();
        }
        false
    }

    fn resolve(&self, arguments: &[&str]) -> Command {
        let mut command = example("resolve");
        command.args(arguments).arg(format!("127.0.0.1:{}", self.port));
        command
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_real_server_answers_every_record_type() {
    let Some(server) = Dnsmasq::start() else { return };
    let cases: [(&[&str], &str); 9] = [
        (&["www.example", "a"], "192.0.2.1\n"),
        (&["www.example", "aaaa"], "2001:db8::1\n"),
        (&["alias.example", "any"], "2001:db8::1\n192.0.2.1\n"),
        (&["alias.example", "cname"], "www.example\n"),
        (&["_sip._udp.example", "srv"], "1 2 5060 www.example\n"),
        (&["text.example", "txt"], "\"one\" \"two\"\n"),
        (&["example", "mx"], "10 www.example\n"),
        (&["192.0.2.1", "ptr"], "www.example\n"),
        (&["2001:db8::1", "ptr"], "www.example\n"),
    ];
    for (arguments, expected) in cases {
        let output = run(&mut server.resolve(arguments));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{arguments:?}");
    }
}

#[test]
fn an_answer_too_long_for_a_datagram_comes_over_tcp() {
    let Some(server) = Dnsmasq::start() else { return };
    let output = run(&mut server.resolve(&["long.example", "txt"]));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 8);
}

#[test]
fn a_nonexistent_name_is_reported() {
    let Some(server) = Dnsmasq::start() else { return };
    for (arguments, expected) in [
        (["none.example", "a"], "the name none.example does not exist"),
        (["text.example", "a"], "text.example has no records of this kind"),
        (["elsewhere.test", "a"], "failed: it answered with response code 5"),
    ] {
        let output = server.resolve(&arguments).output().expect("it was built");
        assert!(
            !output.status.success() && text(&output).contains(expected),
            "{arguments:?}: {}",
            text(&output)
        );
    }
}
