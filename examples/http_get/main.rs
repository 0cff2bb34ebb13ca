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
//! trusts, or that is in the file named by the environment variable `SSL_CERT_FILE`.
//!
//! Proxies are used as by curl. `https_proxy=http://[USER:PASSWORD@]HOST:PORT`, or `HTTPS_PROXY`,
//! names a proxy that makes a tunnel to an `https://` server, and `http_proxy` one that fetches
//! `http://` URLs. The proxy looks up the server's name. `no_proxy` or `NO_PROXY` lists the servers
//! that are asked directly.
//!
//! The exit code is 0 for a complete response with a status below 400; otherwise the reason is
//! shown. Redirects are shown, not followed.
#![forbid(unsafe_code)]

mod machine;
mod proxy;

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::marker::PhantomData;
use std::process::ExitCode;
use std::sync::Arc;

use machine::{Download, DownloadSink, Get, Once};
use proxy::Proxy;
use rotor::dns::{Dns, Resolver, ResolverConfig};
use rotor::http::Status;
use rotor::http::client::{ClientConfig, ConnectionSeed, Head, TunnelStream, TunnelTarget};
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
    outcome: Option<Result<(), BoxError>>,
}

/// Where the body goes.
enum Output {
    /// A person sees each piece as it arrives.
    Terminal(io::Stdout),
    /// A pipe, or a file of the shell's. Pieces are collected, because a piece may be only a few
    /// bytes long: that of a chunk.
    Stdout(BufWriter<io::Stdout>),
    File(BufWriter<File>),
}

/// How many bytes are collected.
const BATCH_BYTES: usize = 64 << 10;

impl Output {
    fn stdout() -> Output {
        let stdout = io::stdout();
        match stdout.is_terminal() {
            true => Output::Terminal(stdout),
            false => Output::Stdout(BufWriter::with_capacity(BATCH_BYTES, stdout)),
        }
    }

    fn file(file: File) -> Output {
        Output::File(BufWriter::with_capacity(BATCH_BYTES, file))
    }

    /// Truncates a file that is about to be written; devices are not truncated.
    fn begin(&mut self) -> io::Result<()> {
        match self {
            Output::File(file) if file.get_ref().metadata()?.is_file() => file.get_ref().set_len(0),
            _ => Ok(()),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Output::Terminal(stdout) => stdout,
            Output::Stdout(stdout) => stdout,
            Output::File(file) => file,
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
        let flushed = self.output.writer().flush();
        self.outcome.ok_or("the connection ended without an outcome")??;
        flushed.map_err(|error| format!("cannot write the body: {error}"))?;
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
        self.output.writer().write_all(piece)?;
        let before = self.received / PROGRESS_STEP;
        self.received += piece.len() as u64;
        if self.output.shows_progress() && self.received / PROGRESS_STEP > before {
            self.show_progress()?;
        }
        Ok(())
    }

    fn ended(&mut self, outcome: Result<(), BoxError>) {
        self.outcome.get_or_insert(outcome);
    }
}

fn main() -> ExitCode {
    program::run(http_get)
}

fn http_get() -> Result<(), BoxError> {
    let url = program::argument(1, Url::local())?;
    let file = env::args_os().nth(2);
    let proxy = match url.is_h2c() {
        // The request would need another form, which HTTP/2 does not have.
        true => None,
        false => Proxy::for_url(url.as_http(), |name| env::var(name).ok())?,
    };
    let mut download = Download {
        authority: url.authority().to_owned(),
        target: url.target().to_owned(),
        proxy_authorization: None,
        context: PhantomData,
    };
    let way = match proxy {
        None => Either::B(url.host()),
        Some(Proxy { host, authorization }) if url.is_https() => {
            let tunnel = TunnelTarget::new(host, &url.host())?;
            Either::A(match authorization {
                Some(credentials) => tunnel.header("Proxy-Authorization", credentials)?,
                None => tunnel,
            })
        }
        Some(Proxy { host, authorization }) => {
            // RFC 9112 §3.2.2.
            download.target = url.to_string();
            download.proxy_authorization = authorization;
            Either::B(host)
        }
    };
    let server = url.http2_server_at(way)?;
    let output = match &file {
        Some(name) => {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(name);
            Output::file(file.map_err(|error| format!("cannot write {}: {error}", name.display()))?)
        }
        None => Output::stdout(),
    };
    on_chosen_loop(Fetch { config: url.client_config(), download, server, output })
}

/// What is downloaded, and where to.
struct Fetch {
    config: ClientConfig,
    download: Download<Console>,
    server: Server,
    output: Output,
}

impl OnAnyLoop for Fetch {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Fetch { config, download, server, output } = self;
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
