//! tinyproxy makes tunnels for `http_get`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::certificates::Certificates;
use crate::daemon::Daemon;
use crate::support::{example, program, run, start, text};

/// Starts tinyproxy, which makes tunnels only to this port.
fn start_tinyproxy(program: &Path, to_port: u16) -> Daemon {
    Daemon::start(|directory, port| {
        let file = directory.join("tinyproxy.conf");
        let lines =
            format!("Listen 127.0.0.1\nPort {port}\nAllow 127.0.0.1\nConnectPort {to_port}\n");
        fs::write(&file, lines).expect("a temporary file");
        let mut command = Command::new(program);
        command.arg("-d").arg("-c").arg(&file).stdout(std::process::Stdio::null());
        command
    })
}

#[test]
fn tinyproxy_makes_a_tunnel_or_refuses_it() {
    let Some(tinyproxy) = program("tinyproxy") else { return };
    let ours = Certificates::for_names(&["localhost"]);
    let mut server = example("https_server");
    server.args([ours.path("site.crt"), ours.path("site.key")]);
    let server = start("https_server", server);
    let port = server.address().port();
    let proxy = start_tinyproxy(&tinyproxy, port);
    let get = |port: u16| {
        let mut get = ours.trusted_by(example("http_get"));
        get.arg(format!("https://localhost:{port}/"));
        get.env("HTTPS_PROXY", format!("http://127.0.0.1:{}", proxy.port));
        get
    };
    for _ in 0..3 {
        assert_eq!(run(&mut get(port)).stdout, b"Hello, World!");
    }
    let refused = get(1).output().expect("it starts");
    let message = text(&refused);
    assert!(message.contains("the proxy has refused the tunnel: 403 Forbidden"), "{message}");
}
