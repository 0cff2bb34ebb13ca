//! nginx, set up as its documentation recommends for many connections and for files. It cannot
//! choose a free port: it is handed a socket that listens already, in the way in which it hands its
//! own sockets to a new version of itself.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};

use super::BoxError;
use super::site::Site;
use crate::answer::BODY;
use crate::program;
use crate::server::Server;

/// `return` answers from memory, but a text of 64 KiB is longer than its configuration allows. So
/// these bodies are files, kept open and sent by `sendfile`, as its documentation recommends for
/// files that are requested often.
const TEMPLATE: &str = r#"
daemon off;
worker_processes {threads};
worker_rlimit_nofile {descriptors};
pid nginx-{port}.pid;
error_log error.log;
events {
    worker_connections {descriptors};
}
http {
    access_log off;
    default_type text/plain;
    sendfile on;
    tcp_nopush on;
    open_file_cache max=16 inactive=1h;
    open_file_cache_valid 1h;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen 127.0.0.1:{port} backlog=4096;
        root {directory};
        location = / {
            return 200 "{hello}";
        }
    }
}
"#;

/// More than any scenario opens.
const DESCRIPTORS: &str = "20000";

/// Returns the program, which is not in every user's `PATH`.
pub(super) fn find() -> Option<PathBuf> {
    program::find("nginx")
        .or_else(|| Some(PathBuf::from("/usr/sbin/nginx")).filter(|file| file.exists()))
}

/// Starts it on the cores of the calling thread, with this many worker processes.
pub(super) fn start(nginx: &Path, site: &Site, threads: usize) -> Result<Server, BoxError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let configuration = site.directory().join(format!("nginx-{}.conf", address.port()));
    fs::write(&configuration, configure(site, address, threads))?;

    let mut command = Command::new(nginx);
    command
        .arg("-p")
        .arg(site.directory())
        .arg("-e")
        .arg("error.log")
        .arg("-c")
        .arg(&configuration);
    command.env("NGINX", format!("{};", listener.as_raw_fd()));
    // From here to its drop at the end of this function, every child inherits it. Nothing else is
    // started meanwhile.
    fcntl_setfd(&listener, FdFlags::empty())?;
    Ok(Server::start_on(command, address)?)
}

fn configure(site: &Site, address: SocketAddr, threads: usize) -> String {
    TEMPLATE
        .replace("{threads}", &threads.to_string())
        .replace("{descriptors}", DESCRIPTORS)
        .replace("{port}", &address.port().to_string())
        .replace("{directory}", &site.directory().display().to_string())
        .replace("{hello}", &String::from_utf8_lossy(BODY))
}
