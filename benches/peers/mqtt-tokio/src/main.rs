//! An MQTT broker on tokio's current-thread runtime. Packets, topics, sessions and limits are those
//! of the example `mqtt_broker`, file by file; connections, timers, TLS and unsolicited output are
//! tokio's. So the two differ only in the loop.
//!
//! `mqtt-tokio ADDRESS:PORT`; over TLS if `TLS_CERTIFICATE` and `TLS_KEY` name PEM files.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the example's files have what this does not need")]

// The example's files use `rotor::stream` and `rotor::Notifier`; here these are this crate's own.
extern crate self as rotor;

#[path = "../../../../examples/mqtt_broker/answer.rs"]
mod answer;
#[path = "../../../../examples/mqtt_broker/broker.rs"]
mod broker;
mod connection;
#[path = "../../../../examples/mqtt_broker/limits.rs"]
mod limits;
#[path = "../../../../examples/mqtt_broker/packet.rs"]
mod packet;
#[path = "../../../../examples/mqtt_broker/reader.rs"]
mod reader;
#[path = "../../../../examples/mqtt_broker/retained.rs"]
mod retained;
#[path = "../../../../examples/mqtt_broker/session.rs"]
mod session;
mod stream;
#[path = "../../../../examples/mqtt_broker/topic.rs"]
mod topic;
#[path = "../../../../examples/mqtt_broker/tree.rs"]
mod tree;

use std::cell::RefCell;
use std::env;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use broker::Broker;
use limits::Limits;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Identifies a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token(u64);

/// Wakes the task of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Notifier {
    token: Token,
    notify: Rc<Notify>,
}

impl Notifier {
    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn wakeup(&self) {
        self.notify.notify_one();
    }
}

fn main() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve())
}

async fn serve() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:1883".to_owned());
    let acceptor = tls()?;
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let broker = Rc::new(RefCell::new(Broker::new(Limits::default())));
    let mut terminated = signal(SignalKind::terminate())?;
    for number in 0.. {
        let (socket, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = terminated.recv() => break,
        };
        socket.set_nodelay(true)?;
        let notifier = Notifier { token: Token(number), notify: Rc::default() };
        let (broker, acceptor) = (broker.clone(), acceptor.clone());
        spawn_local(async move {
            // An error ends only this connection.
            match acceptor {
                None => {
                    let (reader, writer) = socket.into_split();
                    connection::talk(reader, writer, broker, notifier).await
                }
                Some(acceptor) => {
                    let (reader, writer) = tokio::io::split(acceptor.accept(socket).await?);
                    connection::talk(reader, writer, broker, notifier).await
                }
            }
        });
    }
    println!("at the end: {}", broker.borrow().counts);
    Ok(())
}

fn tls() -> io::Result<Option<TlsAcceptor>> {
    let (Some(chain), Some(key)) = (env::var_os("TLS_CERTIFICATE"), env::var_os("TLS_KEY")) else {
        return Ok(None);
    };
    let chain = CertificateDer::pem_file_iter(chain).map_err(io::Error::other)?;
    let chain = chain.collect::<Result<_, _>>().map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(io::Error::other)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config =
        builder.with_no_client_auth().with_single_cert(chain, key).map_err(io::Error::other)?;
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}
