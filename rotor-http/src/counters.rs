//! How connections count what happens to them, of servers and clients.

macro_rules! counters {
    ($(#[$about:meta])* struct Counters { $($(#[$doc:meta])* $name:ident,)+ } $(with $more:ident: $More:ty)?) => {
        $(#[$about])*
        #[derive(Default)]
        pub struct Counters {
            $(pub(super) $name: std::sync::atomic::AtomicU64,)+
            $(pub(super) $more: $More,)?
        }

        impl Counters {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> u64 {
                    self.$name.load(std::sync::atomic::Ordering::Relaxed)
                }
            )+

            /// Returns all of them with their names, for a page of metrics.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name()),)+].into_iter()
            }

            #[inline]
            pub(super) fn add(counter: &std::sync::atomic::AtomicU64) {
                counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }

        impl std::fmt::Debug for Counters {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_map().entries(self.iter()).finish()
            }
        }
    };
}

pub(crate) use counters;
