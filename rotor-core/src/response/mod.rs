//! `Response`: a machine's answer to an event, which is its next state, what the loop should do,
//! and until when.

mod expect;

use std::any::type_name;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;

use crate::time::Time;

/// The error that ends a machine: any error that can be sent between threads.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A machine's answer to an event: go on, spawn, or end; and its deadline.
///
/// The machine itself is part of the answer: a handler that does not return it does not compile, so
/// no state is ever forgotten. The deadline is part of the answer too, so no timer outlives its
/// reason.
///
/// `M` is the machine, and `N` the seed of the machines that it spawns. The default for `N`,
/// [`Infallible`], is for machines that spawn none.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Response, Time};
/// use std::time::Duration;
///
/// let now = Time::ZERO;
/// let answer: Response<&str> = Response::ok("waiting").deadline(now + Duration::from_secs(5));
/// assert_eq!(answer.expect_machine(), "waiting");
/// ```
#[must_use = "a machine whose answer is dropped is forgotten: return it"]
pub struct Response<M, N = Infallible> {
    pub(crate) answer: Answer<M, N>,
    pub(crate) deadline: Deadline,
}

/// What the loop does with the machine. This is the first half of a [`Response`], for code that
/// drives machines itself.
pub enum Answer<M, N = Infallible> {
    /// Keeps the machine until its next event.
    Continue(M),
    /// Calls `ready` again in the next turn, after the other machines, with the events of this call
    /// and those that have arrived by then.
    Again(M),
    /// Makes a machine from the seed, then calls `spawned` or `spawn_error`.
    Spawn(M, N),
    /// The machine has ended normally.
    Done,
    /// The machine has failed.
    Error(BoxError),
}

/// How long the machine waits. This is the second half of a [`Response`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadline {
    /// Keeps the deadline that was set before. A deadline that has just fired is gone.
    Keep,
    /// Sets no deadline: the machine waits for an event, however long that takes.
    Never,
    /// Sets a deadline: `timeout` is called once the loop's time has reached it, never earlier.
    At(Time),
}

impl<M, N> Response<M, N> {
    /// Goes on as `machine`, without a deadline unless [`deadline`](Response::deadline) adds one.
    #[inline]
    pub fn ok(machine: M) -> Response<M, N> {
        Response { answer: Answer::Continue(machine), deadline: Deadline::Never }
    }

    /// Goes on as `machine` and keeps the deadline: the answer to an event that does not matter in
    /// this state.
    ///
    /// In `timeout`, the deadline has just fired and is gone, so `keep` leaves the machine without
    /// a deadline.
    #[inline]
    pub fn keep(machine: M) -> Response<M, N> {
        Response { answer: Answer::Continue(machine), deadline: Deadline::Keep }
    }

    /// Goes on as `machine` and calls `ready` again in the next turn, after the socket events of
    /// the other machines. This is for a machine that has used up its budget but not its input.
    ///
    /// The set that `ready` then gets contains the events of this call (if this was `ready`) and
    /// those that have arrived since. The loop does not sleep in between. The deadline stays as it
    /// was unless one is set.
    #[doc(alias = "yield")]
    pub fn again(machine: M) -> Response<M, N> {
        Response { answer: Answer::Again(machine), deadline: Deadline::Keep }
    }

    /// Makes a machine from `seed`, then calls `spawned` or `spawn_error` of this machine.
    ///
    /// The deadline stays as it was until one of those returns its answer.
    pub fn spawn(machine: M, seed: N) -> Response<M, N> {
        Response { answer: Answer::Spawn(machine, seed), deadline: Deadline::Keep }
    }

    /// Ends the machine normally. Everything that it owned was dropped with it.
    pub fn done() -> Response<M, N> {
        Response { answer: Answer::Done, deadline: Deadline::Never }
    }

    /// Ends the machine because it has failed. The loop logs the error once, counts it, passes it
    /// to the observer and goes on. In [`create`](crate::Machine::create), the machine that spawns
    /// gets the error instead.
    pub fn error(error: impl Into<BoxError>) -> Response<M, N> {
        Response { answer: Answer::Error(error.into()), deadline: Deadline::Never }
    }

    /// Runs `handler`, in which `?` may be used, and turns an error that it returns into
    /// [`Response::error`].
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use rotor::Response;
    ///
    /// fn parse(input: &str) -> Response<u32> {
    ///     Response::attempt(|| Ok(Response::ok(input.parse()?)))
    /// }
    /// assert_eq!(parse("7").expect_machine(), 7);
    /// assert_eq!(parse("x").expect_error().to_string(), "invalid digit found in string");
    /// ```
    pub fn attempt(handler: impl FnOnce() -> Result<Response<M, N>, BoxError>) -> Response<M, N> {
        handler().unwrap_or_else(Response::error)
    }

    /// Sets the deadline of the answer: `timeout` is called once the loop's time has reached
    /// `time`, unless a later answer changes the deadline.
    ///
    /// A deadline that has already passed is not a mistake. `timeout` is then called in the same
    /// turn; if the turn is done with its deadlines, or has had [too
    /// many](crate::Config::timeouts_per_turn), in the next one. If the answer of that `timeout`
    /// has a deadline in the past as well, `timeout` is called again in the following turn. On
    /// `done` or `error` the deadline is ignored.
    #[inline]
    pub fn deadline(self, time: Time) -> Response<M, N> {
        self.with(Deadline::At(time))
    }

    /// Sets the deadline of the answer as [`deadline`](Response::deadline) does, or removes it if
    /// `time` is `None`.
    pub fn deadline_opt(self, time: Option<Time>) -> Response<M, N> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// Sets the deadline of the answer to one that was decided elsewhere: a time, none, or the one
    /// that was set before. On `done` or `error` it is ignored.
    /// ([`from_parts`](Response::from_parts), by contrast, is the exact inverse of
    /// [`into_parts`](Response::into_parts).)
    #[inline]
    pub fn with(mut self, deadline: Deadline) -> Response<M, N> {
        // This is not an error: a layer may set a deadline whatever its inner machine has answered.
        if matches!(self.answer, Answer::Done | Answer::Error(_)) {
            if let Deadline::At(_) = deadline {
                log::debug!("a deadline on an answer that ends the machine is ignored");
            }
            return self;
        }
        self.deadline = deadline;
        self
    }

    /// Converts the machine and the seed of the answer. A wrapper converts the answer of its inner
    /// machine in this way.
    #[inline]
    pub fn map<M2, N2>(
        self,
        machine: impl FnOnce(M) -> M2,
        seed: impl FnOnce(N) -> N2,
    ) -> Response<M2, N2> {
        // Each branch builds the whole answer, so that the machine is copied fewer times.
        let deadline = self.deadline;
        match self.answer {
            Answer::Continue(m) => Response { answer: Answer::Continue(machine(m)), deadline },
            Answer::Again(m) => Response { answer: Answer::Again(machine(m)), deadline },
            Answer::Spawn(m, n) => {
                Response { answer: Answer::Spawn(machine(m), seed(n)), deadline }
            }
            Answer::Done => Response { answer: Answer::Done, deadline },
            Answer::Error(error) => Response { answer: Answer::Error(error), deadline },
        }
    }

    /// Converts the answer for a place in which nothing can be spawned: for a layer whose inner
    /// machine is not expected to spawn.
    ///
    /// An answer of `spawn` is refused: the seed is dropped, a warning is logged, and the machine
    /// goes on with the deadline of its answer. It gets neither `Spawned` nor `SpawnError`.
    #[inline]
    pub fn without_spawn<N2>(self) -> Response<M, N2> {
        let deadline = self.deadline;
        let answer = match self.answer {
            Answer::Continue(machine) => Answer::Continue(machine),
            Answer::Again(machine) => Answer::Again(machine),
            Answer::Spawn(machine, seed) => {
                drop_refused_seed(seed);
                Answer::Continue(machine)
            }
            Answer::Done => Answer::Done,
            Answer::Error(error) => Answer::Error(error),
        };
        Response { answer, deadline }
    }

    /// Calls `look` with a reference to the machine, if it goes on, and returns the answer
    /// unchanged: for values that are known only once the machine is made.
    ///
    /// # Examples
    ///
    /// Reads the port that the system has chosen for a listener, before the listener is wrapped in
    /// the program's machine:
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use rotor::Response;
    ///
    /// # struct Listening(u16);
    /// # enum App { Listening(Listening) }
    /// # fn listen() -> Response<Listening> { Response::ok(Listening(40_001)) }
    /// let mut port = 0;
    /// let answer: Response<App> = listen().inspect(|listening| port = listening.0).wrap(App::Listening);
    /// assert_eq!(port, 40_001);
    /// # let App::Listening(_) = answer.expect_machine();
    /// ```
    pub fn inspect(self, look: impl FnOnce(&M)) -> Response<M, N> {
        if let Answer::Continue(machine) | Answer::Again(machine) | Answer::Spawn(machine, _) =
            &self.answer
        {
            look(machine);
        }
        self
    }

    /// Splits the answer into what the loop does and how long the machine waits, for code that
    /// drives machines itself.
    #[inline]
    pub fn into_parts(self) -> (Answer<M, N>, Deadline) {
        (self.answer, self.deadline)
    }

    /// Returns what [`into_parts`](Response::into_parts) returns, but borrows the answer.
    pub fn parts(&self) -> (&Answer<M, N>, Deadline) {
        (&self.answer, self.deadline)
    }

    /// Makes an answer from its parts: the inverse of [`into_parts`](Response::into_parts).
    pub fn from_parts(answer: Answer<M, N>, deadline: Deadline) -> Response<M, N> {
        Response { answer, deadline }
    }

    /// Returns whether the machine goes on.
    pub fn is_alive(&self) -> bool {
        !matches!(self.answer, Answer::Done | Answer::Error(_))
    }
}

impl<M> Response<M, Infallible> {
    /// Converts the answer for a wrapper that may spawn. A wrapper converts the answer of `create`
    /// in this way.
    #[inline]
    pub fn wrap<M2, N2>(self, machine: impl FnOnce(M) -> M2) -> Response<M2, N2> {
        self.map(machine, |seed| match seed {})
    }
}

#[cold]
fn drop_refused_seed<N>(seed: N) {
    log::warn!(
        "a machine spawned where none can be made: the seed, a {}, is dropped",
        type_name::<N>()
    );
    // Dropped after the warning, because the seed has a type of the user and its drop may panic.
    drop(seed);
}

impl<M, N> fmt::Debug for Answer<M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Continue(_) => f.write_str("Continue"),
            Answer::Again(_) => f.write_str("Again"),
            Answer::Spawn(..) => f.write_str("Spawn"),
            Answer::Done => f.write_str("Done"),
            Answer::Error(error) => write!(f, "Error({error})"),
        }
    }
}

impl<M, N> fmt::Debug for Response<M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("answer", &self.answer)
            .field("deadline", &self.deadline)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(response: Response<u8, u16>) -> (String, Deadline) {
        let (answer, deadline) = response.into_parts();
        (format!("{answer:?}"), deadline)
    }

    #[test]
    fn each_response_has_its_answer_and_deadline() {
        let at = Time::from_nanos(5);
        let cases = [
            (Response::ok(1), "Continue", Deadline::Never),
            (Response::ok(1).deadline(at), "Continue", Deadline::At(at)),
            (Response::ok(1).deadline_opt(None), "Continue", Deadline::Never),
            (Response::keep(1), "Continue", Deadline::Keep),
            (Response::keep(1).deadline_opt(Some(at)), "Continue", Deadline::At(at)),
            (Response::again(1), "Again", Deadline::Keep),
            (Response::spawn(1, 2), "Spawn", Deadline::Keep),
            (Response::done(), "Done", Deadline::Never),
            (Response::done().deadline(at), "Done", Deadline::Never),
            (Response::error("no").deadline(at), "Error(no)", Deadline::Never),
        ];
        for (response, answer, deadline) in cases {
            assert_eq!(parts(response), (answer.to_string(), deadline));
        }
    }

    #[test]
    fn inspect_shows_a_continuing_machine_and_changes_nothing() {
        let at = Time::from_nanos(5);
        let answers: [fn() -> Response<u8, u16>; 5] = [
            || Response::ok(1).deadline(Time::from_nanos(5)),
            || Response::again(1),
            || Response::spawn(1, 2),
            || Response::done(),
            || Response::error("no"),
        ];
        let seen = answers.map(|make| {
            let mut seen = None;
            assert_eq!(parts(make().inspect(|machine| seen = Some(*machine))), parts(make()));
            seen
        });
        assert_eq!(seen, [Some(1), Some(1), Some(1), None, None]);
        assert_eq!(parts(answers[0]()).1, Deadline::At(at));
    }

    #[test]
    fn map_and_wrap_change_the_machine_and_nothing_else() {
        let at = Time::from_nanos(5);
        let spawn = Response::spawn(1u8, 2u16).deadline(at).map(u32::from, u64::from);
        assert_eq!(spawn.expect_spawn(), (1, 2));
        let wrapped: Response<u32, u64> = Response::keep(1u8).wrap(u32::from);
        assert!(matches!(wrapped.into_parts(), (Answer::Continue(1), Deadline::Keep)));
        let ended: Response<u32, u64> = Response::<u8>::done().wrap(u32::from);
        ended.expect_done();
        assert!(!Response::<u8>::error("x").is_alive() && Response::<u8>::again(1).is_alive());
    }

    #[test]
    fn without_spawn_turns_only_a_spawn_into_continue() {
        let at = Time::from_nanos(5);
        let cases: [(Response<u8, u16>, &str, Deadline); 5] = [
            (Response::ok(1), "Continue", Deadline::Never),
            (Response::again(1), "Again", Deadline::Keep),
            (Response::spawn(1, 2).deadline(at), "Continue", Deadline::At(at)),
            (Response::done(), "Done", Deadline::Never),
            (Response::error("no"), "Error(no)", Deadline::Never),
        ];
        for (response, answer, deadline) in cases {
            assert_eq!(parts(response.without_spawn()), (answer.to_string(), deadline));
        }
    }

    #[test]
    fn a_response_adds_three_words_to_its_machine() {
        assert_eq!(size_of::<Response<[u64; 8]>>(), 64 + 8 + 16);
        assert_eq!(size_of::<Deadline>(), 16);
        assert!(size_of::<Response<Box<u8>>>() <= 5 * 8);
    }
}
