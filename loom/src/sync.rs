//! Threads and shared data as loom's types: replaces a crate's own `sync.rs`.

pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
pub(crate) use loom::{hint, thread};

/// How often a waiting loop spins: once, since each further time multiplies the orders to try.
pub(crate) const fn spins(_: u32) -> u32 {
    1
}

/// Loom's atomics, without two behaviours that loom allows and the language does not: loom would
/// report failures that are impossible.
///
/// * Loom treats `SeqCst` as `AcqRel`: if two threads each store one value and then load the other
///   one, both could miss the other's store. Loom does model fences, so there is one between each
///   `SeqCst` store of a thread and its next `SeqCst` load. A change that weakens either of the two
///   is still detected, unless the thread has another such pair around them.
/// * A store may be ordered before an exchange that did not see it, and so be lost to all later
///   exchanges. This matters if one thread stores a flag and another takes it, so the store of a
///   flag is an exchange as well.
pub(crate) mod atomic {
    use std::cell::Cell;
    use std::ops::Deref;

    pub(crate) use loom::sync::atomic::Ordering;
    use loom::sync::atomic::Ordering::SeqCst;
    pub(crate) use loom::sync::atomic::fence;

    loom::thread_local! {
        /// Whether this thread has stored with `SeqCst` since its last fence.
        static HAS_SEQ_CST_STORE: Cell<bool> = Cell::new(false);
    }

    fn before_load(order: Ordering) {
        if order == SeqCst
            && HAS_SEQ_CST_STORE.try_with(|stored| stored.replace(false)).unwrap_or(true)
        {
            fence(SeqCst);
        }
    }

    fn after_store(order: Ordering) {
        if order == SeqCst {
            let _thread_ends = HAS_SEQ_CST_STORE.try_with(|stored| stored.set(true));
        }
    }

    fn fenced_exchange<V>(order: Ordering, exchange: impl FnOnce() -> V) -> V {
        before_load(order);
        let value = exchange();
        after_store(order);
        value
    }

    macro_rules! atomic {
        ($name:ident, $value:ty, stored by $store:ident $(, $fetch:ident)*) => {
            #[derive(Debug, Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            #[allow(dead_code, reason = "no model needs all of them")]
            impl $name {
                pub(crate) fn new(value: $value) -> $name {
                    $name(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    before_load(order);
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    self.0.$store(value, order);
                    after_store(order);
                }

                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    fenced_exchange(order, || self.0.swap(value, order))
                }

                pub(crate) fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    fenced_exchange(success, || self.0.compare_exchange(current, new, success, failure))
                }

                pub(crate) fn compare_exchange_weak(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    fenced_exchange(success, || self.0.compare_exchange_weak(current, new, success, failure))
                }

                $(pub(crate) fn $fetch(&self, value: $value, order: Ordering) -> $value {
                    fenced_exchange(order, || self.0.$fetch(value, order))
                })*
            }

            /// For operations that are never `SeqCst`.
            impl Deref for $name {
                type Target = loom::sync::atomic::$name;

                fn deref(&self) -> &loom::sync::atomic::$name {
                    &self.0
                }
            }
        };
    }

    atomic!(AtomicBool, bool, stored by swap);
    atomic!(AtomicU32, u32, stored by store, fetch_add, fetch_sub, fetch_or, fetch_and);
    atomic!(AtomicU64, u64, stored by store, fetch_add, fetch_sub);
    atomic!(AtomicUsize, usize, stored by store, fetch_add, fetch_sub);
}
