//! `ListenerLayer`: what goes around a listener of any kind.

use super::either::Either;
use super::listener::Listener;

/// Something that goes around a listener of any kind and changes what its connections speak: TLS,
/// the PROXY protocol.
///
/// This is for code that opens listeners for other programs, on any kind of loop: it takes a layer
/// without knowing which, as `rotor::http::server::Serve::over` does. A program that opens its
/// listeners itself does not need this trait, because it can name the listener's type.
///
/// `TlsServer` of `rotor-tls` and `ProxyProtocol` of `rotor-proxy-protocol` are layers. A pair of
/// layers is one, the outermost first: `(tls, behind)` is TLS over the PROXY protocol. `()` is no
/// layer. An `Option` is for a program whose configuration decides whether there is one; each
/// operation of a socket then checks which it is.
///
/// # A layer of your own
///
/// A [`Listener`] around another one, with a type for its settings:
///
/// ```
/// # use rotor_core as rotor;
/// use std::net::IpAddr;
///
/// use rotor::net::{Listener, ListenerLayer};
///
/// /// Accepts connections of one host only; its docs are those of `Listener`.
/// struct OnlyFrom<L> {
///     host: IpAddr,
///     listener: L,
/// }
/// # use std::io;
/// # use std::net::SocketAddr;
/// # use rotor::net::ListenOptions;
/// # use rotor::{Scope, Source, rotor_forward_source};
/// # impl<L: Listener> Listener for OnlyFrom<L> {
/// #     type Address = (IpAddr, L::Address);
/// #     type Socket = L::Socket;
/// #     fn bind<C>(
/// #         (host, address): &(IpAddr, L::Address),
/// #         options: &ListenOptions,
/// #         scope: &Scope<'_, C>,
/// #     ) -> io::Result<OnlyFrom<L>> {
/// #         Ok(OnlyFrom { host: *host, listener: L::bind(address, options, scope)? })
/// #     }
/// #     fn accept(&mut self) -> io::Result<(L::Socket, Option<SocketAddr>)> {
/// #         let (socket, from) = self.listener.accept()?;
/// #         match from {
/// #             Some(from) if from.ip().to_canonical() == self.host => Ok((socket, Some(from))),
/// #             _ => Err(io::ErrorKind::ConnectionAborted.into()),
/// #         }
/// #     }
/// #     fn has_waiting(&self) -> bool {
/// #         self.listener.has_waiting()
/// #     }
/// #     fn local_address(&self) -> Option<SocketAddr> {
/// #         self.listener.local_address()
/// #     }
/// # }
/// # impl<L: Source> Source for OnlyFrom<L> {
/// #     rotor_forward_source!(listener);
/// # }
///
/// #[derive(Clone)]
/// struct OnlyHost(IpAddr);
///
/// impl ListenerLayer for OnlyHost {
///     type Over<L: Listener> = OnlyFrom<L>;
///
///     fn over<L: Listener>(&self, listener: L) -> OnlyFrom<L> {
///         OnlyFrom { host: self.0, listener }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer around listeners",
    note = "`TlsServer` is one, which `TlsServer::new(config)?` makes, and so is `ProxyProtocol`; several are a pair, the \
            outermost first: `(tls, behind)`"
)]
pub trait ListenerLayer: Clone + Send + 'static {
    /// The listener `L` with this layer around it.
    type Over<L: Listener>: Listener;

    /// Puts this layer around an open listener. It may be called for several listeners, also on
    /// different threads, on clones: for example once for each loop.
    fn over<L: Listener>(&self, listener: L) -> Self::Over<L>;

    /// Returns whether the connections are encrypted by this layer, as
    /// [`StreamSocket::is_secure`](super::StreamSocket::is_secure) says of each of them later.
    /// Default: no.
    #[doc(alias = "https")]
    fn is_secure(&self) -> bool {
        false
    }

    /// Returns the names of the protocols on which a connection may agree with its peer in its
    /// handshake, as [`StreamSocket::negotiated`](super::StreamSocket::negotiated) says of each of
    /// them later. So code that serves other protocols can report the mistake when it starts.
    /// Default: none.
    #[doc(alias = "ALPN")]
    fn protocols(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }
}

/// No layer: the listener itself.
impl ListenerLayer for () {
    type Over<L: Listener> = L;

    fn over<L: Listener>(&self, listener: L) -> L {
        listener
    }
}

/// The first layer around the second one.
impl<A: ListenerLayer, B: ListenerLayer> ListenerLayer for (A, B) {
    type Over<L: Listener> = A::Over<B::Over<L>>;

    fn over<L: Listener>(&self, listener: L) -> Self::Over<L> {
        let (outer, inner) = self;
        outer.over(inner.over(listener))
    }

    fn is_secure(&self) -> bool {
        let (outer, inner) = self;
        outer.is_secure() || inner.is_secure()
    }

    fn protocols(&self) -> Vec<Vec<u8>> {
        let (outer, inner) = self;
        let of_outer = outer.protocols();
        if of_outer.is_empty() { inner.protocols() } else { of_outer }
    }
}

/// The layer, or none.
impl<W: ListenerLayer> ListenerLayer for Option<W> {
    type Over<L: Listener> = Either<W::Over<L>, L>;

    fn over<L: Listener>(&self, listener: L) -> Self::Over<L> {
        match self {
            Some(layer) => Either::A(layer.over(listener)),
            None => Either::B(listener),
        }
    }

    fn is_secure(&self) -> bool {
        self.as_ref().is_some_and(W::is_secure)
    }

    fn protocols(&self) -> Vec<Vec<u8>> {
        self.as_ref().map_or_else(Vec::new, W::protocols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Layer {
        is_secure: bool,
        protocols: &'static [&'static str],
    }

    impl ListenerLayer for Layer {
        type Over<L: Listener> = L;

        fn over<L: Listener>(&self, listener: L) -> L {
            listener
        }

        fn is_secure(&self) -> bool {
            self.is_secure
        }

        fn protocols(&self) -> Vec<Vec<u8>> {
            self.protocols.iter().map(|name| name.as_bytes().to_vec()).collect()
        }
    }

    const SECURE: Layer = Layer { is_secure: true, protocols: &["a", "b"] };
    const OTHER: Layer = Layer { is_secure: true, protocols: &["c"] };
    const SILENT: Layer = Layer { is_secure: false, protocols: &[] };

    fn described(layer: &impl ListenerLayer) -> (bool, String) {
        (layer.is_secure(), String::from_utf8(layer.protocols().concat()).expect("text"))
    }

    #[test]
    fn a_pair_has_the_protocols_of_its_outermost_layer_that_has_any() {
        assert_eq!(described(&()), (false, String::new()));
        assert_eq!(described(&(SILENT, SILENT)), (false, String::new()));
        assert_eq!(described(&(SECURE, SILENT)), (true, "ab".into()));
        assert_eq!(described(&(SILENT, SECURE)), (true, "ab".into()));
        assert_eq!(described(&(SECURE, OTHER)), (true, "ab".into()));
        assert_eq!(described(&((SILENT, ()), (OTHER, SECURE))), (true, "c".into()));
    }

    #[test]
    fn an_absent_layer_is_none() {
        assert_eq!(described(&Some(SECURE)), (true, "ab".into()));
        assert_eq!(described(&None::<Layer>), (false, String::new()));
        assert_eq!(described(&(None::<Layer>, OTHER)), (true, "c".into()));
    }
}
