//! Sources of random numbers: the predictable one, and the secure one.

use std::io;

use rotor_core::backend::system_entropy;
use rotor_core::{Config, Loop, Response};

use crate::actor::{Actor, idle};
use crate::manual::Manual;

/// The first numbers that a loop draws of each kind, in sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RandomDraws {
    fast: [u64; 4],
    secure: [u64; 4],
}

/// What a new loop draws on a backend whose entropy is `entropy`.
fn draw(config: &Config, entropy: u8) -> RandomDraws {
    let manual = Manual::new();
    manual.set_entropy(Some(entropy));
    let mut drawn = None;
    let _instance = manual.start(config, (), |scope| {
        let fast = [(); 4].map(|()| scope.random_u64());
        drawn = Some(RandomDraws {
            fast,
            secure: [(); 4].map(|()| u64::from_ne_bytes(scope.secure_random())),
        });
        Response::ok(idle::<()>())
    });
    drawn.expect("the machine was made")
}

/// What a new loop on the system backend draws.
fn draw_on_mio() -> RandomDraws {
    let mut drawn = None;
    let mut creator = Loop::<Actor<()>>::new(&Config::new()).expect("there are descriptors");
    let made = creator.add_machine_with(|scope| {
        let fast = [(); 4].map(|()| scope.random_u64());
        drawn = Some(RandomDraws {
            fast,
            secure: [(); 4].map(|()| u64::from_ne_bytes(scope.secure_random())),
        });
        Response::ok(idle())
    });
    made.expect("there is room");
    drawn.expect("the machine was made")
}

/// SplitMix64, the published algorithm: the number that follows this one.
fn successor(number: u64) -> u64 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let undo_shift = |z: u64, shift: u32| {
        let mut undone = z;
        for _ in 0..64 / shift {
            undone = z ^ (undone >> shift);
        }
        undone
    };
    // The modular inverses of the two odd factors, modulo 2^64.
    let z = undo_shift(number, 31).wrapping_mul(0x3196_42B2_D24D_8EC3);
    let z = undo_shift(z, 27).wrapping_mul(0x96DE_1B17_3F11_9089);
    let mut z = undo_shift(z, 30).wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[test]
fn a_fast_number_reveals_the_next_and_a_secure_one_does_not() {
    let RandomDraws { fast, secure } = draw_on_mio();
    for pair in fast.windows(2) {
        assert_eq!(successor(pair[0]), pair[1], "this is why they may not leave the process");
    }
    for pair in secure.windows(2) {
        assert_ne!(successor(pair[0]), pair[1]);
    }
    for number in secure {
        assert!(!fast.contains(&number) && !fast.contains(&successor(number)));
    }
}

#[test]
fn random_numbers_do_not_depend_on_the_time_thread_or_other_seeds() {
    let drawn = [(); 2].map(|()| {
        // Other code on this thread draws numbers too, and reseeds the generator.
        fastrand::seed(1);
        draw_on_mio()
    });
    for first in drawn[0].fast.iter().chain(&drawn[0].secure) {
        assert!(drawn[1].fast.iter().chain(&drawn[1].secure).all(|second| first != second));
    }
}

#[test]
fn fast_numbers_follow_the_seed_and_secure_ones_the_backend_only() {
    let seeded = |seed, entropy| draw(&Config::new().seed(seed), entropy);
    assert_eq!(seeded(1, 1), seeded(1, 1));
    assert_eq!(seeded(1, 1).fast, seeded(1, 2).fast);
    assert_ne!(seeded(1, 1).fast, seeded(2, 1).fast);
    assert_eq!(seeded(1, 1).secure, seeded(2, 1).secure);
    assert_ne!(seeded(1, 1).secure, seeded(1, 2).secure);
    // Without a seed both kinds depend on the backend's entropy.
    assert_eq!(draw(&Config::new(), 1), draw(&Config::new(), 1));
    assert_ne!(draw(&Config::new(), 1).fast, draw(&Config::new(), 2).fast);
}

#[test]
fn a_backend_is_asked_for_random_bytes_once_a_loop() {
    let manual = Manual::new();
    let instance = manual.start(&Config::new(), (), |scope| {
        for _ in 0..1_000 {
            let _: [u8; 64] = scope.secure_random();
        }
        Response::ok(idle::<()>())
    });
    assert_eq!(manual.entropy_requests(), 1);
    drop(instance);
}

#[test]
fn a_loop_cannot_be_created_without_random_bytes() {
    let manual = Manual::new();
    manual.set_entropy(None);
    let made = Loop::<Actor<()>, _>::with_backend(manual, &Config::new().seed(1));
    assert_eq!(made.err().map(|error| error.kind()), Some(io::ErrorKind::PermissionDenied));
}

#[test]
fn system_entropy_fills_every_byte() {
    let mut filled = [false; 64];
    // A byte that is filled stays zero eight times in a row with a probability of 2^-64.
    for _ in 0..8 {
        let mut bytes = [0; 64];
        system_entropy(&mut bytes).expect("the system has a random source");
        filled.iter_mut().zip(bytes).for_each(|(filled, byte)| *filled |= byte != 0);
    }
    assert_eq!(filled, [true; 64]);
}
