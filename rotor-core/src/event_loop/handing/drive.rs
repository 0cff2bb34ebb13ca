//! Running a loop on whichever thread has it.

use std::cell::Cell;
use std::sync::Arc;

use super::hand::Hand;
use super::worker::Worker;
use super::{Baton, Relay, Rest};
use crate::backend::Backend;
use crate::blocking::Seat;
use crate::event::{Event, InPlace};
use crate::event_loop::core::Next;
use crate::event_loop::dispatch::{Answered, Call};
use crate::event_loop::slots::Lifted;
use crate::guard::{Panicked, guard};
use crate::machine::Machine;
use crate::response::{Answer, Response};
use crate::scope::{Lent, Scope};

/// The loop, while this thread has it: not while a handler on its stack blocks.
pub(super) struct Held<M: Machine, B: Backend> {
    pub(super) rest: Cell<Option<Box<Rest<M, B>>>>,
    pub(super) context: Option<Box<M::Context>>,
}

impl<M: Machine, B: Backend> Held<M, B> {
    fn take(&mut self) -> Option<Baton<M, B>> {
        match (self.rest.take(), self.context.take()) {
            (Some(rest), Some(context)) => Some(Baton { rest, context }),
            _ => None,
        }
    }

    fn hold(&mut self, Baton { rest, context }: Baton<M, B>) {
        self.rest.set(Some(rest));
        self.context = Some(context);
    }
}

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    pub(super) fn drive(self: &Arc<Self>, baton: Baton<M, B>) {
        self.drive_on(baton, &Worker::new(Seat::new()));
    }

    /// Runs the loop until it has ended, is given to somebody else, or is gone.
    pub(super) fn drive_on(self: &Arc<Self>, baton: Baton<M, B>, worker: &Worker<Baton<M, B>>) {
        self.runs_here(worker);
        let mut held = Held { rest: Cell::new(None), context: None };
        held.hold(baton);
        // One guard for all handlers, as in a turn that calls them itself. After a panic the loop is
        // in its place again, unless it is gone.
        loop {
            match guard(|| self.make_calls(&mut held, worker)) {
                Ok(()) => return,
                Err(panicked) => {
                    if !self.handler_panicked(&mut held, &panicked) {
                        return;
                    }
                }
            }
        }
    }

    fn handler_panicked(&self, held: &mut Held<M, B>, panicked: &Panicked) -> bool {
        let Some(rest) = held.rest.get_mut() else { return false };
        rest.core.handler_panicked(&*self.environment, &mut rest.progress, panicked);
        true
    }

    fn make_calls(self: &Arc<Self>, held: &mut Held<M, B>, worker: &Worker<Baton<M, B>>) {
        let lifted = &mut Lifted::nothing();
        loop {
            if self.control.is_wanted() {
                let Some(baton) = held.take() else { return };
                match self.line.give(baton) {
                    Ok(()) => return,
                    Err(baton) => held.hold(baton),
                }
            }
            let (Some(rest), Some(context)) = (held.rest.get_mut(), held.context.as_deref_mut())
            else {
                return;
            };
            let Rest { core, repeated, progress, .. } = &mut **rest;
            let environment = &*self.environment;
            let control = &self.control;
            match core.next(lifted, progress, context, environment, repeated, control) {
                Ok(Next::Call(call)) => self.call(held, worker, lifted, call),
                Ok(Next::Turn) => {}
                Ok(Next::Ended(exit)) => return self.end_with(held, Ok(exit)),
                Err(error) => return self.end_with(held, Err(error)),
            }
        }
    }

    fn end_with(
        &self,
        held: &mut Held<M, B>,
        ended: std::io::Result<crate::event_loop::handle::Exit>,
    ) {
        if let Some(baton) = held.take() {
            self.end(baton, ended);
        }
    }

    /// Makes a call, and those by which the machine hears of what it spawned.
    fn call(
        self: &Arc<Self>,
        held: &mut Held<M, B>,
        worker: &Worker<Baton<M, B>>,
        lifted: &mut Lifted<M>,
        mut call: Call<M>,
    ) {
        loop {
            let Call { terms, event } = call;
            let answered = {
                let hand = Hand::new(self, worker, &held.rest, &terms);
                let lent = Lent::handed(&mut held.context, &hand);
                let environment = &*self.environment;
                let token = terms.callee.token;
                let scope = &mut Scope::lent(lent, environment, token, terms.woken());
                hand_event(lifted, event, scope)
            };
            let Some(answered) = answered else { return };
            let (Some(rest), Some(context)) = (held.rest.get_mut(), held.context.as_deref_mut())
            else {
                return;
            };
            match rest.core.answered(lifted, context, &*self.environment, terms, answered) {
                Some(next) => call = next,
                None => return,
            }
        }
    }
}

/// Calls the handler. `None` only for what is no machine.
#[inline(always)]
pub(super) fn hand_event<M: Machine>(
    lifted: &mut Lifted<M>,
    event: Event<M::Seed>,
    scope: &mut Scope<'_, M::Context>,
) -> Option<Answered<M>> {
    let mut in_hand = lifted.in_hand();
    let response = in_hand.machine().map(|machine| machine.handle_in_place(event, scope));
    in_hand.let_go();
    let response = match response? {
        InPlace::Handled(Response { answer: Answer::Continue(()), deadline }) => {
            return Some(Answered::InPlace(deadline));
        }
        response => response,
    };
    let machine = lifted.take().into_machine()?;
    Some(Answered::Whole(match response {
        InPlace::Handled(response) => response.map(|()| machine, |seed| seed),
        InPlace::Declined(event) => machine.handle(event, scope),
    }))
}
