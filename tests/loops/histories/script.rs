//! `Script`: random operations on the sockets of some connections.

use rotor_core::Interest;

/// A step of a script. Each one is played until nothing moves any more.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Listen,
    CloseListener,
    Connect,
    Accept,
    /// Operations in a row on one of the sockets that are open, whose number is taken modulo theirs.
    Operate(usize, Vec<Operation>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Write(usize),
    /// Writes until there is no more room. How much that is differs, so of this direction only the
    /// end is compared.
    Fill,
    /// Reads so many bytes, if they are there.
    Read(usize),
    ShutdownWrite,
    TakeError,
    Register(Interest),
    Deregister,
    Reset,
    Drop,
}

/// The script of a seed: one connection at first, later some more.
pub(super) fn script(seed: u64) -> Vec<Step> {
    let mut random = fastrand::Rng::with_seed(seed);
    let fills = random.u32(0..3) == 0;
    let mut steps = vec![Step::Listen, Step::Connect, Step::Accept];
    for _ in 0..random.usize(3..40) {
        steps.push(match random.u32(0..100) {
            0..3 => Step::Listen,
            3..5 => Step::CloseListener,
            5..12 => Step::Connect,
            12..20 => Step::Accept,
            _ => {
                let count = if random.u32(0..3) == 0 { random.usize(1..4) } else { 1 };
                let operations = (0..count).map(|_| operation(&mut random, fills)).collect();
                Step::Operate(random.usize(..), operations)
            }
        });
    }
    steps
}

fn operation(random: &mut fastrand::Rng, fills: bool) -> Operation {
    let bytes = random.usize(0..2_000) >> random.u32(0..8);
    match random.u32(0..100) {
        0..30 => Operation::Write(bytes),
        30..32 if fills => Operation::Fill,
        30..57 => Operation::Read(bytes),
        57..72 => Operation::Read(usize::MAX),
        72..79 => Operation::ShutdownWrite,
        79..86 => Operation::Drop,
        86..89 => Operation::Reset,
        89..91 => Operation::TakeError,
        91..95 => Operation::Deregister,
        95 => Operation::Register(Interest::Readable),
        96 => Operation::Register(Interest::Writable),
        _ => Operation::Register(Interest::Both),
    }
}
