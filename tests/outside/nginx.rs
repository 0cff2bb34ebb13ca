//! nginx with a configuration of the test.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::daemon::Daemon;

/// Starts nginx. `blocks` is put into the `http` block; `PORT` in it is replaced by the port to
/// listen on.
pub(crate) fn start_nginx(program: &Path, blocks: &str) -> Daemon {
    Daemon::start(|directory, port| {
        let file = directory.join("nginx.conf");
        fs::write(&file, configuration(directory, port, blocks)).expect("a temporary file");
        let mut command = Command::new(program);
        command.arg("-p").arg(directory).arg("-c").arg(&file);
        command
    })
}

fn configuration(directory: &Path, port: u16, blocks: &str) -> String {
    let directory = directory.display();
    format!(
        "daemon off;
         master_process off;
         pid {directory}/pid;
         error_log stderr;
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
