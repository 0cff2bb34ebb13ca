//! Random operations on the sockets of some connections, on every loop: what they return is equal,
//! and whoever has found nothing to read is told of the next change. A failure names its seed;
//! `ROTOR_LOOPS_SEEDS` sets the number of seeds (20 by default).
//!
//! Left out is where loops may differ: how much fits into buffers, whether a write to a peer that is
//! gone fails at once or a moment later, and what came first in one step.
//!
//! All of this is done once with the sockets themselves, and once with TLS over them. Datagram
//! sockets have operations of their own (`datagrams`).

mod datagrams;
mod over_tls;
mod script;
mod settling;
mod world;

use std::cell::Cell;
use std::path::PathBuf;

use rotor_core::net::Listener;
use rotor_sim::net::SimUnix;
use rotor_test_kit::Directory;

use self::over_tls::at_address_over_tls;
use self::script::{Step, script};
use self::settling::Settling;
use self::world::{Place, play};
use crate::loops::{Mio, OnKernel, OnLoop, OnSmoltcp, Simulated, local};

/// How often a script is played before a difference counts. A loaded machine may take its time to
/// deliver what was sent, so each time there are four times as many turns.
const ATTEMPTS: u32 = 3;

fn seeds() -> u64 {
    std::env::var("ROTOR_LOOPS_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

/// Plays a script on a loop, and returns what has happened.
type Play<S> = fn(&[S], Settling) -> Vec<String>;

/// Plays the scripts of all seeds on mio and on another loop.
fn compare<S>(
    script: impl Fn(u64) -> Vec<S>,
    on_mio: Play<S>,
    on_other: Play<S>,
    settling: Settling,
) {
    for seed in 0..seeds() {
        let script = script(seed);
        let mut difference = None;
        for attempt in 0..ATTEMPTS {
            let factor = 4_usize.pow(attempt);
            let mio = on_mio(&script, Settling::ON_KERNEL.times(factor));
            let other = on_other(&script, settling.times(factor));
            let first = (0..mio.len().max(other.len())).find(|at| mio.get(*at) != other.get(*at));
            difference = first.map(|at| (at, mio, other));
            if difference.is_none() {
                break;
            }
        }
        if let Some((at, mio, other)) = difference {
            let before = mio[..at.min(mio.len())].join("\n");
            panic!("seed {seed}\n{before}\nmio: {:?}\nhere: {:?}", mio.get(at), other.get(at));
        }
    }
}

fn at_address<L: OnLoop>(script: &[Step], settling: Settling) -> Vec<String> {
    let known = Cell::new(local());
    play::<L, L::Net>(script, settling, |listener| {
        if let Some(listener) = listener {
            known.set(listener.local_address().expect("it is bound"));
        }
        Place { listen: known.get(), target: known.get() }
    })
}

fn at_path<L: OnKernel>(script: &[Step], settling: Settling) -> Vec<String> {
    let directory = Directory::create();
    let path = directory.join("listener");
    play::<L, L::Unix>(script, settling, |listener| {
        if listener.is_none() {
            // A listener leaves its file behind, if there was one.
            let _removed = std::fs::remove_file(&path);
        }
        Place { listen: path.clone(), target: path.clone() }
    })
}

fn at_simulated_path(script: &[Step], settling: Settling) -> Vec<String> {
    let path = PathBuf::from("/run/listener");
    play::<Simulated, SimUnix>(script, settling, |_| Place {
        listen: path.clone(),
        target: path.clone(),
    })
}

#[cfg(target_os = "linux")]
#[test]
fn random_operations_return_the_same_on_io_uring_as_on_mio() {
    use crate::loops::OnUring;
    match <OnUring as OnLoop>::refusal() {
        Some(refusal) => eprintln!("skipped: {refusal}"),
        None => {
            compare(script, at_address::<Mio>, at_address::<OnUring>, Settling::ON_KERNEL);
            compare(script, at_path::<Mio>, at_path::<OnUring>, Settling::ON_KERNEL);
            let on_uring = at_address_over_tls::<OnUring>;
            compare(script, at_address_over_tls::<Mio>, on_uring, Settling::ON_KERNEL);
        }
    }
}

#[test]
fn random_operations_return_the_same_on_smoltcp_as_on_mio() {
    compare(script, at_address::<Mio>, at_address::<OnSmoltcp>, Settling::IN_VIRTUAL_TIME);
    let on_smoltcp = at_address_over_tls::<OnSmoltcp>;
    compare(script, at_address_over_tls::<Mio>, on_smoltcp, Settling::IN_VIRTUAL_TIME);
}

#[test]
fn random_operations_return_the_same_in_the_simulator_as_on_mio() {
    compare(script, at_address::<Mio>, at_address::<Simulated>, Settling::IN_VIRTUAL_TIME);
    compare(script, at_path::<Mio>, at_simulated_path, Settling::IN_VIRTUAL_TIME);
    let simulated = at_address_over_tls::<Simulated>;
    compare(script, at_address_over_tls::<Mio>, simulated, Settling::IN_VIRTUAL_TIME);
}
