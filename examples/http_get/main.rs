//! Downloads a URL: a small curl.
//!
//! ```text
//! # without a URL: http://127.0.0.1:8080/
//! cargo run --release -p rotor-examples --example http_get [URL [FILE]]
//! cargo run --release -p rotor-examples --example http_get http://127.0.0.1:8080/big.iso big.iso
//! HTTP/1.1 200 OK
//! Content-Length: 734003200
//!
//! 8388622 of 734003200 bytes
//! 200 OK, 734003200 bytes
//! ```
//!
//! It uses HTTP/2 with `https://` servers that support it, and with `h2c://HOST:PORT/`. The latter
//! is not an official scheme; it says that the server is known to speak HTTP/2 without TLS.
//!
//! The head of the response is written to standard error, its body to standard output or to FILE;
//! then standard error shows the progress. The old content of FILE is kept until there is a
//! response. The host may be a name: /etc/hosts and the name servers in /etc/resolv.conf are used.
//! An `https://` server must have a certificate for that name, from an issuer that the system
//! trusts, or that is in the file named by the environment variable `SSL_CERT_FILE`. If
//! `HTTPS_PROXY=http://HOST:PORT` is set, that proxy makes a tunnel to the server, whose name it
//! looks up. The exit code is 0 for a complete response with a status below 400; otherwise the
//! reason is shown. Redirects are shown, not followed.
#![forbid(unsafe_code)]

mod machine;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::process::ExitCode;
use std::sync::Arc;

use machine::{Download, DownloadSink, Get, Once};
use rotor::dns::{Dns, Resolver, ResolverConfig};
use rotor::http::Status;
use rotor::http::client::{self, ClientError, ConnectionSeed, Head, TunnelStream, TunnelTarget};
use rotor::net::{Either, IpNet};
use rotor::stream::{AddressService, Connect, HasResolver, Host};
use rotor::tls::{MaybeTls, MaybeTlsTarget};
use rotor::{Backend, BoxError, Config, Loop, rotor_compose};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::url::Url;
use rotor_uring::OnAnyLoop;

/// A socket with TLS or without, through a proxy or not.
type Socket<S> = MaybeTls<Either<TunnelStream<S>, S>>;
/// Where it connects to.
type Server = MaybeTlsTarget<Either<TunnelTarget<Host>, Host>>;

rotor_compose! {
    /// The machine that makes the request, and the resolver that looks up its host.
    enum Machines <N: IpNet> <Console> {
        Get(Get<Console, Socket<N::Stream>, Server>),
        Resolver(Resolver<N, Console>),
    }
}

/// The context: where the response goes.
struct Console {
    dns: Dns,
    output: Output,
    status: Option<Status>,
    length: Option<u64>,
    received: u64,
    outcome: Option<Result<(), ClientError>>,
}

/// Where the body goes.
enum Output {
    Screen,
    File(File),
}

impl Output {
    /// Truncates a file that is about to be written; devices are not truncated.
    fn begin(&mut self) -> io::Result<()> {
        match self {
            Output::File(file) if file.metadata()?.is_file() => file.set_len(0),
            _ => Ok(()),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Output::Screen => io::stdout().write_all(bytes),
            Output::File(file) => file.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Screen => io::stdout().flush(),
            Output::File(_) => Ok(()),
        }
    }

    fn shows_progress(&self) -> bool {
        matches!(self, Output::File(_))
    }
}

/// Progress is shown after each step of this many bytes.
const PROGRESS_STEP: u64 = 8 << 20;

impl Console {
    fn show_progress(&self) -> io::Result<()> {
        match self.length {
            Some(length) => writeln!(io::stderr(), "{} of {length} bytes", self.received),
            None => writeln!(io::stderr(), "{} bytes", self.received),
        }
    }

    /// Prints how the download ended.
    fn show_outcome(mut self) -> Result<(), BoxError> {
        self.output.flush()?;
        self.outcome.ok_or("the connection ended without an outcome")??;
        let status = self.status.ok_or("there was no answer")?;
        if self.output.shows_progress() {
            program::print(&[format!("{status}, {} bytes", self.received)])?;
        }
        if status.code() >= 400 {
            return Err(format!("the server answered {status}").into());
        }
        Ok(())
    }
}

impl HasResolver for Console {
    fn addresses(&self) -> &AddressService {
        self.dns.addresses()
    }
}

impl DownloadSink for Console {
    fn head(&mut self, head: &Head<'_>) -> io::Result<()> {
        self.output.begin()?;
        (self.status, self.length) = (Some(head.status()), head.body_length());
        let mut stderr = io::stderr().lock();
        writeln!(stderr, "{} {} {}", head.version(), head.status().code(), head.reason())?;
        for field in head.fields().iter() {
            writeln!(stderr, "{}: {}", field.name, field.value.escape_ascii())?;
        }
        writeln!(stderr)?;
        Ok(())
    }

    fn piece(&mut self, piece: &[u8]) -> io::Result<()> {
        self.output.write_all(piece)?;
        let before = self.received / PROGRESS_STEP;
        self.received += piece.len() as u64;
        if self.output.shows_progress() && self.received / PROGRESS_STEP > before {
            self.show_progress()?;
        }
        Ok(())
    }

    fn ended(&mut self, outcome: Result<(), ClientError>) {
        self.outcome.get_or_insert(outcome);
    }
}

fn main() -> ExitCode {
    program::run(http_get)
}

fn http_get() -> Result<(), BoxError> {
    let url = program::argument(1, Url::local())?;
    let file = std::env::args_os().nth(2);
    let server = url.http2_server_at(way_to(&url)?)?;
    let output = match &file {
        Some(name) => {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(name);
            Output::File(file.map_err(|error| format!("cannot write {}: {error}", name.display()))?)
        }
        None => Output::Screen,
    };
    on_chosen_loop(Fetch { url, server, output })
}

/// Returns the server itself, or the proxy that leads there.
fn way_to(url: &Url) -> Result<Either<TunnelTarget<Host>, Host>, BoxError> {
    match std::env::var("HTTPS_PROXY") {
        Ok(proxy) if url.is_https() && !proxy.is_empty() => {
            let proxy: client::Url =
                proxy.parse().map_err(|error| format!("HTTPS_PROXY is {proxy}: {error}"))?;
            if proxy.is_https() {
                return Err("HTTPS_PROXY begins with https://: only http:// is supported".into());
            }
            Ok(Either::A(TunnelTarget::new(proxy.host(), &url.host())?))
        }
        _ => Ok(Either::B(url.host())),
    }
}

/// What is downloaded, and where to.
struct Fetch {
    url: Url,
    server: Server,
    output: Output,
}

impl OnAnyLoop for Fetch {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Fetch { url, server, output } = self;
        let config = url.client_config();
        let (authority, target) = (url.authority().to_owned(), url.target().to_owned());
        let download = Download { authority, target, context: PhantomData };
        let source = Once { download: Some(download), under_way: None };
        let mut creator = Loop::<Machines<N>, B>::with_backend(backend, &Config::new())?;
        let dns = creator.add_part(Machines::Resolver, |scope| {
            Ok(Resolver::new(ResolverConfig::system(), scope))
        })?;
        let console =
            Console { dns, output, status: None, length: None, received: 0, outcome: None };
        let mut instance = creator.instantiate(console);
        instance.add_machine_with(|scope| {
            let seed = ConnectionSeed::new(source, Arc::new(config));
            Connect::new(&server, seed, scope).wrap(Machines::Get)
        })?;
        instance.run()?;
        instance.into_context().show_outcome()
    }
}
