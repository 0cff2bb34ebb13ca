//! Shared parts of the models: a backend that only waits to be woken, a machine that reacts only to
//! wake-ups.
#![allow(dead_code, reason = "each model uses a part of it")]

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use loom::sync::{Condvar, Mutex};
use rotor_core::backend::{JobOrder, OffloadJob};
use rotor_core::{
    Backend, BackendHandle, Config, EventSet, Infallible, Loop, Machine, OffloadPool, Response,
    Scope, Time, Token, Wake,
};

/// A model of an eventfd: a waker sets it, the waiting thread takes it.
#[derive(Default)]
pub struct Event {
    is_set: Mutex<bool>,
    set: Condvar,
}

impl Event {
    pub fn wait(&self) {
        let mut is_set = self.is_set.lock().unwrap();
        while !*is_set {
            is_set = self.set.wait(is_set).unwrap();
        }
        *is_set = false;
    }
}

impl Wake for Event {
    fn wake(&self) -> io::Result<()> {
        *self.is_set.lock().unwrap() = true;
        self.set.notify_one();
        Ok(())
    }
}

/// A loop on this backend sleeps forever unless it is woken; loom reports that as a deadlock.
#[derive(Default)]
pub struct WakeOnlyBackend {
    pub event: Arc<Event>,
    pub pool: Option<OffloadPool>,
}

/// Time stands still, and nothing is random: a model runs the same way each time.
pub struct Handle {
    pool: Option<OffloadPool>,
}

impl Backend for WakeOnlyBackend {
    type Handle = Handle;

    fn handle(&self) -> io::Result<Handle> {
        Ok(Handle { pool: self.pool.clone() })
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(self.event.clone())
    }

    fn wait(&mut self, until: Option<Time>, _: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        match until {
            None => self.event.wait(),
            Some(_) => *self.event.is_set.lock().unwrap() = false,
        }
        Ok(())
    }
}

impl BackendHandle for Handle {
    fn name(&self) -> &str {
        "waiting"
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn wall_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn entropy(&self, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }

    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.offload_job(&JobOrder::default(), make)
    }

    fn offload_job(&self, order: &JobOrder<'_>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        order.offer(self.pool.as_ref(), make)
    }
}

/// A machine that checks its condition whenever it is woken, and ends when it holds.
pub struct WaitUntil(Box<Condition>);

type Condition = dyn FnMut(&mut Scope<'_, ()>) -> bool;

impl WaitUntil {
    pub fn new(sees: impl FnMut(&mut Scope<'_, ()>) -> bool + 'static) -> Response<WaitUntil> {
        Response::ok(WaitUntil(Box::new(sees)))
    }
}

impl Machine for WaitUntil {
    type Context = ();
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        match (self.0)(scope) {
            true => Response::done(),
            false => Response::keep(self),
        }
    }

    fn draining(self, _: Time, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        Response::done()
    }
}

/// A loop for at most this many machines.
pub fn small_loop(machines: usize) -> Loop<WaitUntil, WakeOnlyBackend> {
    loop_on(WakeOnlyBackend::default(), machines)
}

pub fn loop_on(backend: WakeOnlyBackend, machines: usize) -> Loop<WaitUntil, WakeOnlyBackend> {
    Loop::with_backend(backend, &Config::new().machines_max(machines)).unwrap()
}

/// Runs `model` in every order with at most this many preemptions: switches away from a thread that
/// could continue.
pub fn model(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 20_000;
    builder.check(model);
}
