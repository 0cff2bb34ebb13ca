//! A wrapper around another socket that uses every default method.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net as unix;

use rotor_core::net::StreamSocket;
use rotor_core::{Interest, Scope, Source};

use super::with_scope;
use crate::loops::{Adopt, OnKernel, UnixStreamOn, on_kernel_loops};

/// A wrapper that uses every default method.
pub(super) struct Wrapper<S>(pub(super) S);

impl<S: StreamSocket> Read for Wrapper<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<S: StreamSocket> Write for Wrapper<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<S: StreamSocket> Source for Wrapper<S> {
    rotor_core::rotor_forward_source!(0);
}

impl<S: StreamSocket> StreamSocket for Wrapper<S> {
    type Target = S::Target;
    fn connect<C>(target: &S::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
        S::connect(target, scope).map(Wrapper)
    }
    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }
    fn peer_address(&self) -> Option<SocketAddr> {
        self.0.peer_address()
    }
    fn local_address(&self) -> Option<SocketAddr> {
        self.0.local_address()
    }
}

on_kernel_loops!(a_wrapper_has_safe_defaults, "they are those of a trait, whatever is wrapped");
fn a_wrapper_has_safe_defaults<L: OnKernel>() {
    with_scope::<L, _>(|scope| {
        let (one, _two) = unix::UnixStream::pair().expect("there are descriptors");
        let mut wrapped =
            Wrapper(UnixStreamOn::<L>::adopt(one, scope).expect("it is of this backend"));
        assert!(wrapped.holds_input() && !wrapped.short_read_drains());
        assert!(!wrapped.wants_read() && !wrapped.wants_write() && !wrapped.is_connected());
        assert!(!wrapped.is_secure() && wrapped.session().is_none());
        assert!(!wrapped.cancel_handshake(), "nobody is to be told anything");
        assert!(wrapped.take_error().expect("nothing to ask").is_none());
        wrapped
            .set_nodelay(true)
            .and_then(|()| wrapped.set_keepalive(None))
            .expect("they are ignored");
        wrapped
            .set_send_buffer(1)
            .and_then(|()| wrapped.set_receive_buffer(1))
            .expect("they are ignored");
        wrapped.set_unsent_max(1).expect("it is ignored");
        scope.register(&mut wrapped, Interest::Both).expect("it is of this backend");
        scope.deregister(&mut wrapped).expect("it is registered");
    });
}
