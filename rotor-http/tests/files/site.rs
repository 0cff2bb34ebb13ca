//! A directory with files of each kind, a server for it, and a client.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop, LoopHandle, LoopKind, MioKind, Response as Answer};
use rotor_http::files::{FilesConfig, StaticFiles};
use rotor_http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor_test_kit::Directory;

use crate::clock::Ahead;

/// Longer than any step of these tests takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

pub(crate) const TEXT: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A temporary directory of its own.
pub(crate) struct Tree(Directory);

impl Tree {
    pub(crate) fn new() -> Tree {
        let tree = Tree(Directory::create());
        fs::create_dir_all(tree.root().join("sub/no-index")).expect("a directory");
        fs::create_dir_all(tree.root().join("odd/index.html")).expect("a directory");
        for (name, content) in [
            ("secret", &b"secret"[..]),
            ("root/text.txt", TEXT),
            ("root/empty", b""),
            ("root/index.html", b"the index"),
            ("root/sub/index.html", b"the sub index"),
            ("root/sub/a b%.css", b"escaped"),
            ("root/.hidden", b"hidden"),
        ] {
            tree.write(name, content);
        }
        symlink("text.txt", tree.root().join("link")).expect("a link");
        symlink("../secret", tree.root().join("escape")).expect("a link");
        let made = Command::new("mkfifo").arg(tree.root().join("fifo")).status();
        assert!(made.expect("mkfifo is there").success());
        tree
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    /// Writes a file and sets its date one day back, as programs do that unpack or copy.
    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a file");
        self.make_old(&path);
    }

    pub(crate) fn make_old(&self, path: &Path) {
        let yesterday = SystemTime::now() - Duration::from_secs(86_400);
        File::options()
            .write(true)
            .open(path)
            .and_then(|file| file.set_modified(yesterday))
            .expect("it is ours");
    }
}

/// A server on its own thread.
pub(crate) struct Site {
    address: SocketAddr,
    handle: LoopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    pub(crate) fn of(tree: &Tree) -> Site {
        Site::start(FilesConfig::new(tree.root()), Config::new())
    }

    /// By the clock of this server all files are old, so that their tags are strong.
    pub(crate) fn start(files: FilesConfig, config: Config) -> Site {
        Site::start_ahead(files, config, Duration::from_secs(86_400))
    }

    /// The wall clock of this server is ahead of the one by which the files are written.
    pub(crate) fn start_ahead(files: FilesConfig, config: Config, by: Duration) -> Site {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let files = files.open().expect("a directory");
            let backend = Ahead { inner: MioKind.open(&config).expect("a backend"), by };
            let mut creator =
                Loop::<HttpAccept<StaticFiles<()>, TcpListener>, _>::with_backend(backend, &config)
                    .expect("a loop");
            let mut address = None;
            creator
                .add_machine_with(|scope| {
                    Answer::attempt(|| {
                        let any = "127.0.0.1:0".parse()?;
                        let listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
                        address = listener.local_address();
                        Ok(server::listen(
                            listener,
                            HttpSeed::new(files, ServerConfig::new()),
                            scope,
                        ))
                    })
                })
                .expect("a listener");
            sender.send((address.expect("it is bound"), creator.handle())).expect("the test waits");
            creator.instantiate(()).run().expect("it runs");
        });
        let (address, handle) = receiver.recv_timeout(PATIENCE).expect("it starts");
        Site { address, handle, thread: Some(thread) }
    }

    pub(crate) fn connect(&self) -> Client {
        let client = Client::connect(self.address).expect("it listens");
        client.set_read_timeout(Some(PATIENCE)).expect("not zero");
        client
    }

    pub(crate) fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let mut client = self.connect();
        send(&mut client, method, target, fields);
        receive(&mut client, method == "HEAD")
    }

    pub(crate) fn get(&self, target: &str, fields: &str) -> Reply {
        self.ask("GET", target, fields)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn send(client: &mut Client, method: &str, target: &str, fields: &str) {
    write!(client, "{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
        .expect("the server takes it");
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn length(&self) -> usize {
        self.field("Content-Length").map_or(0, |length| length.parse().expect("a number"))
    }
}

pub(crate) fn receive_head(client: &mut Client) -> Reply {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client
            .read_exact(&mut byte)
            .unwrap_or_else(|e| panic!("{e} after {:?}", String::from_utf8_lossy(&head)));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Reply { status, head, body: Vec::new() }
}

/// Reads one answer, exactly as long as it announces.
pub(crate) fn receive(client: &mut Client, is_head: bool) -> Reply {
    let mut reply = receive_head(client);
    let has_body = !is_head && !matches!(reply.status, 204 | 304);
    reply.body = vec![0; if has_body { reply.length() } else { 0 }];
    client.read_exact(&mut reply.body).expect("the whole body");
    reply
}
