//! nginx as a reverse proxy in front of `http_echo`, with connections that it keeps.
#![expect(clippy::disallowed_methods, reason = "a test that waits for the port of another program")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, curl, program, start_example, text};

/// nginx, running in the foreground with a configuration of its own; killed when it is dropped.
struct Nginx {
    directory: PathBuf,
    process: Child,
    port: u16,
}

impl Nginx {
    fn start(program: &Path, upstream: &str) -> Nginx {
        let directory = std::env::temp_dir().join(format!("rotor-nginx-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a temporary directory");
        // nginx cannot tell which port it was given, so it gets one that was free a moment ago.
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let file = directory.join("nginx.conf");
        fs::write(&file, configuration(&directory, port, upstream)).expect("a temporary file");
        let process = Command::new(program)
            .arg("-p")
            .arg(&directory)
            .arg("-c")
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx starts");
        let mut nginx = Nginx { directory, process, port };
        nginx.wait_until_it_listens();
        nginx
    }

    fn wait_until_it_listens(&mut self) {
        let end = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end, "nginx does not listen");
            if let Some(status) = self.process.try_wait().expect("it is our child") {
                let log = fs::read_to_string(self.directory.join("error.log")).unwrap_or_default();
                panic!("nginx ended: {status}\n{log}");
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Should it be gone already, that is what was wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn configuration(directory: &Path, port: u16, upstream: &str) -> String {
    let directory = directory.display();
    format!(
        "daemon off;
         master_process off;
         pid {directory}/pid;
         error_log {directory}/error.log;
         events {{ worker_connections 256; }}
         http {{
           access_log off;
           client_body_temp_path {directory}/body;
           proxy_temp_path {directory}/proxy;
           fastcgi_temp_path {directory}/fastcgi;
           uwsgi_temp_path {directory}/uwsgi;
           scgi_temp_path {directory}/scgi;
           upstream echo {{ server {upstream}; keepalive 8; }}
           server {{
             listen 127.0.0.1:{port};
             location / {{
               proxy_pass http://echo;
               proxy_http_version 1.1;
               proxy_set_header Connection \"\";
             }}
           }}
         }}"
    )
}

#[test]
fn nginx_passes_requests_on_and_keeps_its_connections() {
    let (Some(nginx), Some(program)) = (program("nginx"), program("curl")) else { return };
    let server = start_example("http_echo");
    let front = Nginx::start(&nginx, &server.address().to_string());
    let url = format!("http://127.0.0.1:{}/", front.port);
    for number in 0..50 {
        let body = format!("body {number}").repeat(1 + 300 * (number % 3));
        let chunked = if number % 2 == 0 { "Transfer-Encoding: chunked" } else { "A: b" };
        let echoed = curl(&program, &["-H", chunked, "-H", "Expect:", "--data-binary", &body, &url]);
        assert_eq!(text(&echoed), body);
    }
    let head = text(&curl(&program, &["-I", &url]));
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let fields = text(&curl(&program, &[&format!("{url}echo")]));
    // It says so in HTTP/1.1 by saying nothing.
    assert!(!fields.to_lowercase().contains("connection: close"), "{fields}");
}
