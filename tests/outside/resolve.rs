//! The example `resolve` against dnsmasq.

use std::process::{Command, Stdio};

use crate::daemon::Daemon;
use crate::support::{example, program, run, text};

/// A name server on a port of its own.
struct Dnsmasq(Daemon);

impl Dnsmasq {
    fn start() -> Option<Dnsmasq> {
        let program = program("dnsmasq")?;
        let long = format!("--txt-record=long.example,{}", "t".repeat(240));
        Some(Dnsmasq(Daemon::start(|_, port| {
            let mut command = Command::new(&program);
            command
                .args([
                    "--keep-in-foreground",
                    "--no-resolv",
                    "--no-hosts",
                    "--conf-file=/dev/null",
                ])
                .args(["--bind-interfaces", "--listen-address=127.0.0.1", "--pid-file"])
                .args(["--local=/example/", "--auth-ttl=60", "--local-ttl=60", "--user=root"])
                .arg(format!("--port={port}"))
                .args([
                    "--host-record=www.example,192.0.2.1,2001:db8::1",
                    "--cname=alias.example,www.example",
                    "--mx-host=example,www.example,10",
                    "--srv-host=_sip._udp.example,www.example,5060,1,2",
                    "--txt-record=text.example,one,two",
                ])
                .args([&long; 8])
                .stdout(Stdio::null());
            command
        })))
    }

    fn resolve(&self, arguments: &[&str]) -> Command {
        let mut command = example("resolve");
        command.args(arguments).arg(format!("127.0.0.1:{}", self.0.port));
        command
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
