//! nginx with a configuration of the test.
#![expect(clippy::disallowed_methods, reason = "a test that waits for the port of another program")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rotor_test_kit::Directory;

use crate::support::PATIENCE;

/// How many ports are tried.
const PORTS_TRIED: usize = 5;

/// nginx in the foreground, with a configuration of the test; killed on drop.
pub(crate) struct Nginx {
    directory: Directory,
    process: Child,
    pub(crate) port: u16,
}

impl Nginx {
    /// `blocks` is put into the `http` block; `PORT` in it is replaced by the port to listen on.
    pub(crate) fn start(program: &Path, blocks: &str) -> Nginx {
        // nginx exits if another process has taken the port meanwhile.
        let mut why = String::new();
        for _ in 0..PORTS_TRIED {
            match Nginx::start_once(program, blocks) {
                Ok(nginx) => return nginx,
                Err(ended) => why = ended,
            }
        }
        panic!("nginx ended: {why}");
    }

    fn start_once(program: &Path, blocks: &str) -> Result<Nginx, String> {
        let directory = Directory::create();
        // nginx cannot report the port it was given, so it gets a port that was free a moment ago.
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let file = directory.join("nginx.conf");
        fs::write(&file, configuration(&directory, port, blocks)).expect("a temporary file");
        let process = Command::new(program)
            .arg("-p")
            .arg(&*directory)
            .arg("-c")
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx starts");
        let mut nginx = Nginx { directory, process, port };
        nginx.wait_until_it_listens()?;
        Ok(nginx)
    }

    fn wait_until_it_listens(&mut self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end, "nginx does not listen");
            if let Some(status) = self.process.try_wait().expect("it is our child") {
                let log = fs::read_to_string(self.directory.join("error.log")).unwrap_or_default();
                return Err(format!("{status}\n{log}"));
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(directory: &Path, port: u16, blocks: &str) -> String {
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
           {}
         }}",
        blocks.replace("PORT", &port.to_string())
    )
}
