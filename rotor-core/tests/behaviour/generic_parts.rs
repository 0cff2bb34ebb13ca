//! Library machines that are generic over the context: composed, and added together with what they
//! need.

use rotor_core::{Config, EventSet, Infallible, Machine, Response, Scope};

use crate::composing::{CallRecorder, Log};
use crate::manual::{Manual, settle};

/// A library's machine: generic over the context, which must implement a trait.
pub(crate) struct Library<C>(std::marker::PhantomData<C>);

impl<C: CallRecorder> Machine for Library<C> {
    type Context = C;
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        scope.record("library".into());
        Response::done()
    }
}

/// Another library's machine, which requires a different trait.
pub(crate) struct Numbers<C>(std::marker::PhantomData<C>);

pub(crate) trait HasNumber {
    fn number(&self) -> u32;
}

impl HasNumber for Log {
    fn number(&self) -> u32 {
        42
    }
}

impl<C: HasNumber + CallRecorder> Machine for Numbers<C> {
    type Context = C;
    type Seed = u32;

    fn create(seed: u32, scope: &mut Scope<'_, C>) -> Response<Self> {
        let sum = seed + scope.number();
        scope.record(format!("number {sum}"));
        Response::ok(Numbers(std::marker::PhantomData))
    }

    fn ready(self, _: EventSet, _: &mut Scope<'_, C>) -> Response<Self, u32> {
        Response::spawn(self, 1)
    }
}

mod inner {
    rotor_core::rotor_compose! {
        /// Generic over the context, and visible outside its module.
        pub(super) enum Generic / GenericSeed <C> where [C: super::CallRecorder + super::HasNumber] {
            Library(super::Library<C>),
            Numbers(super::Numbers<C>),
        }
    }
}

#[test]
fn a_composed_machine_may_have_a_generic_context() {
    let manual = Manual::new();
    let mut instance = manual.start::<inner::Generic<Log>>(&Config::new(), Log::default(), |_| {
        Response::ok(inner::Generic::Library(Library(std::marker::PhantomData)))
    });
    let token = instance.machines().iter().next().expect("there is one").0;
    let number = instance.spawn(inner::GenericSeed::Numbers(8)).expect("there is room");
    manual.feed(token, EventSet::READABLE);
    manual.feed(number, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(instance.context().0, ["number 50", "library", "number 43"]);
    assert_eq!(instance.machines().len(), 2);
}

mod seedless_inner {
    rotor_core::rotor_compose! {
        /// Generic over the context, without a name for its seed type, and visible outside its
        /// module.
        pub(super) enum Generic <C> where [C: super::CallRecorder + super::HasNumber] {
            Library(super::Library<C>),
            Numbers(super::Numbers<C>),
        }
    }
}

#[test]
fn add_part_returns_its_closures_value_before_and_after_instantiation() {
    let manual = Manual::new();
    let mut creator = manual.creator::<seedless_inner::Generic<Log>>(&Config::new());
    let library = || Response::ok(Library(std::marker::PhantomData));
    let early =
        creator.add_part(seedless_inner::Generic::Library, |scope| Ok((scope.token(), library())));
    let mut instance = creator.instantiate(Log::default());
    let later = instance.add_part(seedless_inner::Generic::Library, |scope| {
        scope.record("later".into());
        Ok((scope.token(), library()))
    });
    for token in [early, later] {
        manual.feed(token.expect("there is room"), EventSet::READABLE);
    }
    settle(&mut instance);
    assert_eq!(instance.context().0, ["later", "library", "library"]);
}
