//! The macros name everything that they use by its whole path, so they work in a crate without the
//! prelude, with names of its own for what is in it, and under strict lints.
#![no_implicit_prelude]
#![deny(
    elided_lifetimes_in_paths,
    missing_debug_implementations,
    missing_docs,
    trivial_casts,
    unreachable_pub,
    unused_qualifications,
    unused_results
)]

use ::core::fmt::Debug;
use ::core::marker::Send;
use ::rotor_core as net;
use net::net::{StreamSocket, TcpStream};
use net::{Config, Loop, Machine, Response, Scope, Source, rotor_compose};

#[derive(Debug)]
struct Number(u32);

impl Machine for Number {
    type Context = u32;
    type Seed = u32;

    fn create(seed: u32, scope: &mut Scope<'_, u32>) -> Response<Self> {
        **scope += seed;
        Response::ok(Number(seed))
    }
}

rotor_compose! {
    /// Its parts are named as the variants of `Option` are.
    #[derive(Debug)]
    enum Both / BothSeed <u32> {
        Some(Number),
        None(Number),
    }
}

rotor_compose! {
    enum One <u32> { Ok(Number) }
}

/// A machine with a name that the macro could use itself.
#[derive(Debug)]
struct Seed;

impl Machine for Seed {
    type Context = u32;
    type Seed = Number;
}

rotor_compose! {
    enum Sown <u32> { Seed(Seed), Number(Number) }
}

#[derive(Debug)]
struct Wrapper<S>(S);

impl<S: Source> Source for Wrapper<S> {
    net::rotor_forward_source!(0);
}

#[derive(Debug)]
struct Named<S> {
    inner: S,
}

impl<S: Source> Source for Named<S> {
    net::rotor_forward_source!(inner);
}

impl<S: StreamSocket> ::std::io::Read for Named<S> {
    fn read(&mut self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl<S: StreamSocket> ::std::io::Write for Named<S> {
    fn write(&mut self, bytes: &[u8]) -> ::std::io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> ::std::io::Result<()> {
        self.inner.flush()
    }
}

impl<S: StreamSocket> StreamSocket for Named<S> {
    type Target = S::Target;

    fn connect<C>(target: &S::Target, scope: &Scope<'_, C>) -> ::std::io::Result<Self> {
        S::connect(target, scope).map(|inner| Named { inner })
    }

    net::rotor_forward_socket!(inner);

    fn shutdown(&mut self, how: ::std::net::Shutdown) -> ::std::io::Result<()> {
        self.inner.shutdown(how)
    }

    fn peer_address(&self) -> ::core::option::Option<::std::net::SocketAddr> {
        self.inner.peer_address()
    }

    fn local_address(&self) -> ::core::option::Option<::std::net::SocketAddr> {
        self.inner.local_address()
    }
}

fn is_socket<S: StreamSocket + Debug>() {}
fn is_source<S: Source + Send>() {}

#[test]
fn a_crate_without_the_prelude_uses_the_macros() {
    is_socket::<Named<TcpStream>>();
    is_source::<Wrapper<TcpStream>>();
    let creator = Loop::<Both>::new(&Config::new()).expect("a loop can be made");
    let mut instance = creator.instantiate(0);
    let first = instance.spawn(BothSeed::Some(3)).expect("there is room");
    let second = instance.spawn(BothSeed::None(4)).expect("there is room");
    ::std::assert_eq!(*instance.context(), 7);
    for (token, value) in [(first, 3), (second, 4)] {
        let (Both::Some(Number(number)) | Both::None(Number(number))) =
            instance.machines().get(token).expect("it is there");
        ::std::assert_eq!(*number, value);
    }
    let sown = [Sown::Seed(Seed), Sown::Number(Number(1))].map(|machine| machine.type_name());
    let names = [::core::any::type_name::<Seed>(), ::core::any::type_name::<Number>()];
    ::std::assert_eq!(sown, names);
    let one = One::Ok(Number(1));
    ::std::assert_eq!(one.type_name(), ::core::any::type_name::<Number>());
}
