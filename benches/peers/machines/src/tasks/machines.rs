//! The shapes as machines: one type, whose seed says what each of them does.

use rotor_core::{
    Config, ExitPolicy, Future, Loop, LoopInstance, Machine, Notifier, Outcome, Port, Response,
    Scope,
};

use super::{CHAIN, MANY, PAIRS, YIELDERS, YIELDS};

/// A loop for all shapes. It is reused for all runs, as a runtime is, and each run ends when its
/// slab is empty.
pub(super) struct Shapes {
    instance: LoopInstance<Shape>,
}

impl Shapes {
    pub(super) fn new() -> Shapes {
        let config = Config::new().exit(ExitPolicy::WhenEmpty).machines_max(2 * MANY as usize);
        Shapes { instance: Loop::new(&config).expect("a loop").instantiate(0) }
    }

    fn run(&mut self, first: Seed, ended: u64) {
        *self.instance.context_mut() = 0;
        self.instance.spawn(first).expect("there is room");
        self.instance.run().expect("it runs");
        assert_eq!(*self.instance.context(), ended);
    }
}

pub(super) fn chained_spawn(shapes: &mut Shapes) {
    shapes.run(Seed::Chain(CHAIN - 1), CHAIN);
}

pub(super) fn spawn_many(shapes: &mut Shapes) {
    shapes.run(Seed::Parent(MANY, Child::Leaf), MANY);
}

pub(super) fn ping_pong(shapes: &mut Shapes) {
    shapes.run(Seed::Parent(PAIRS, Child::Ping), PAIRS);
}

pub(super) fn yield_many(shapes: &mut Shapes) {
    shapes.run(Seed::Parent(YIELDERS, Child::Yielder), YIELDERS);
}

/// What a machine should do.
enum Seed {
    Chain(u64),
    Parent(u64, Child),
    Leaf,
    Ping,
    Pong { hello: Port<Notifier>, pong: Port<()> },
    Yielder,
}

#[derive(Clone, Copy)]
enum Child {
    Leaf,
    Ping,
    Yielder,
}

impl Child {
    fn seed(self) -> Seed {
        match self {
            Child::Leaf => Seed::Leaf,
            Child::Ping => Seed::Ping,
            Child::Yielder => Seed::Yielder,
        }
    }
}

/// What a machine is doing. It is woken to do it.
enum Shape {
    /// Starts the next link and ends.
    Chain(u64),
    /// Starts this many machines and ends.
    Parent(u64, Child),
    /// Ends.
    Leaf,
    /// Starts its partner.
    Starting,
    /// Waits for its partner's notifier, and pings the partner by a wake-up.
    Pinging { hello: Future<Notifier>, pong: Future<()> },
    /// Waits for the pong, and ends.
    Pinged(Future<()>),
    /// Is pinged, answers and ends.
    Ponging(Port<()>),
    /// Yields to the others this many times, and ends.
    Yielding(u64),
}

impl Machine for Shape {
    /// How many machines have reached the end that the shape counts.
    type Context = u64;
    type Seed = Seed;

    fn create(seed: Seed, scope: &mut Scope<'_, u64>) -> Response<Self> {
        let shape = match seed {
            Seed::Chain(left) => Shape::Chain(left),
            Seed::Parent(count, child) => Shape::Parent(count, child),
            Seed::Leaf => Shape::Leaf,
            Seed::Ping => Shape::Starting,
            Seed::Yielder => Shape::Yielding(YIELDS),
            Seed::Pong { hello, pong } => {
                // The ping wakes it.
                return match hello.set(scope.notifier()) {
                    Ok(()) => Response::ok(Shape::Ponging(pong)),
                    Err(_) => Response::done(),
                };
            }
        };
        scope.wake_self();
        Response::ok(shape)
    }

    fn spawned(self, scope: &mut Scope<'_, u64>) -> Response<Self, Seed> {
        match self {
            Shape::Chain(_) => ended(scope),
            Shape::Parent(0, _) => Response::done(),
            Shape::Parent(left, child) => {
                Response::spawn(Shape::Parent(left - 1, child), child.seed())
            }
            other => Response::keep(other),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, u64>) -> Response<Self, Seed> {
        match self {
            Shape::Chain(0) | Shape::Leaf | Shape::Yielding(0) => ended(scope),
            Shape::Chain(left) => Response::spawn(Shape::Chain(left), Seed::Chain(left - 1)),
            Shape::Parent(left, child) => {
                Response::spawn(Shape::Parent(left - 1, child), child.seed())
            }
            Shape::Starting => {
                let (hello_port, hello) = scope.create_future();
                let (pong_port, pong) = scope.create_future();
                let seed = Seed::Pong { hello: hello_port, pong: pong_port };
                Response::spawn(Shape::Pinging { hello, pong }, seed)
            }
            Shape::Pinging { hello, pong } => match hello.take() {
                Outcome::Pending(hello) => Response::keep(Shape::Pinging { hello, pong }),
                Outcome::Value(partner) if partner.wakeup() => Response::ok(Shape::Pinged(pong)),
                _ => Response::done(),
            },
            Shape::Pinged(pong) => match pong.take() {
                Outcome::Pending(pong) => Response::keep(Shape::Pinged(pong)),
                Outcome::Value(()) => ended(scope),
                Outcome::Lost(_) => Response::done(),
            },
            Shape::Ponging(pong) => {
                // If the partner is gone, it is missing in the count.
                let _ = pong.set(());
                Response::done()
            }
            Shape::Yielding(left) => {
                scope.wake_self();
                Response::ok(Shape::Yielding(left - 1))
            }
        }
    }
}

fn ended(scope: &mut Scope<'_, u64>) -> Response<Shape, Seed> {
    **scope += 1;
    Response::done()
}
