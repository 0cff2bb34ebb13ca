//! The same sockets with TLS over them.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;

use rotor_core::net::{Listener, Net};
use rotor_tls::{TlsClient, TlsListener, TlsServer, TlsStream};

use super::script::Step;
use super::settling::Settling;
use super::world::{Place, play};
use crate::kit::Issuer;
use crate::loops::{OnLoop, local};

struct OverTls<N>(PhantomData<N>);

impl<N: Net> Net for OverTls<N> {
    type Stream = TlsStream<N::Stream>;
    type Listener = TlsListener<N::Listener>;
    type Datagram = N::Datagram;
}

/// Certificates are made once.
fn both_ends() -> &'static (TlsServer, TlsClient) {
    static BOTH_ENDS: OnceLock<(TlsServer, TlsClient)> = OnceLock::new();
    BOTH_ENDS.get_or_init(|| {
        let issuer = Issuer::new();
        (issuer.server(), issuer.client())
    })
}

pub(super) fn at_address_over_tls<L: OnLoop>(script: &[Step], settling: Settling) -> Vec<String> {
    let known = Cell::new(local());
    let (server, client) = both_ends();
    play::<L, OverTls<L::Net>>(script, settling, |listener| {
        if let Some(listener) = listener {
            known.set(listener.local_address().expect("it is bound"));
        }
        let target = client.to(known.get(), "localhost").expect("it is a name");
        Place { listen: server.at(known.get()), target }
    })
}
