//! `__rotor_counters!`: defines the counters of connections, for the crates of protocols.

/// Defines a type of counters, with a method for each counter, one that returns all of them with
/// their names, and `Debug`. Counting is a relaxed atomic addition. Hidden: for the crates of
/// protocols.
#[doc(hidden)]
#[macro_export]
macro_rules! __rotor_counters {
    (
        $(#[$about:meta])*
        struct $Counters:ident { $($(#[$doc:meta])* $name:ident,)+ } $(with $more:ident: $More:ty)?
    ) => {
        $(#[$about])*
        #[derive(Default)]
        pub struct $Counters {
            $(pub(crate) $name: ::std::sync::atomic::AtomicU64,)+
            $(pub(crate) $more: $More,)?
        }

        impl $Counters {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> u64 {
                    self.$name.load(::std::sync::atomic::Ordering::Relaxed)
                }
            )+

            /// Returns all counters with their names, for a page of metrics.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name()),)+].into_iter()
            }

            #[inline]
            pub(crate) fn add(counter: &::std::sync::atomic::AtomicU64) {
                counter.fetch_add(1, ::std::sync::atomic::Ordering::Relaxed);
            }
        }

        impl ::std::fmt::Debug for $Counters {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_map().entries(self.iter()).finish()
            }
        }
    };
}
