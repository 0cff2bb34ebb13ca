//! `Counters`: the statistics of WebSockets.

macro_rules! counters {
    ($(#[$about:meta])* struct Counters { $($(#[$doc:meta])* $name:ident,)+ }) => {
        rotor_core::__rotor_counters! {
            $(#[$about])*
            struct Counters {
                $($(#[$doc])* $name,)+
            }
        }

        /// The name of a counter.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[expect(non_camel_case_types, reason = "they are the names of the methods")]
        pub(crate) enum Count {
            $($name,)+
        }

        impl Counters {
            pub(crate) fn count(&self, count: Count) {
                Counters::add(match count {
                    $(Count::$name => &self.$name,)+
                });
            }
        }
    };
}

counters! {
    /// Counters of the connections that share a [`WebSocketConfig`](crate::WebSocketConfig): how
    /// they began and ended, and how often each limit was reached. Messages are not counted; a
    /// handler that needs this has to count them itself.
    ///
    /// | limits | counter |
    /// |--|--|
    /// | `message_max` | [`too_long`](Counters::too_long) |
    /// | `messages_bytes_max` | [`without_room`](Counters::without_room) |
    /// | `fragments_max` | [`too_many_fragments`](Counters::too_many_fragments) |
    /// | `control_max`, `control_rate` | [`control_floods`](Counters::control_floods) |
    /// | `pong_within` after `ping_after` | [`pong_timeouts`](Counters::pong_timeouts) |
    /// | `close_within` | [`close_timeouts`](Counters::close_timeouts) |
    /// | `unsent_high_water` | [`sends_refused`](Counters::sends_refused) |
    /// | `inflated_max` | [`inflated_in_turns`](Counters::inflated_in_turns) |
    struct Counters {
        /// Connections that became WebSockets.
        opened,
        /// Requests and responses that were not a valid handshake.
        refused,
        /// Connections that ended with a close frame from each side.
        closed,
        /// Connections that were lost before both sides had sent a close frame.
        lost,
        /// Peers that violated the rules of frames (1002).
        bad_frames,
        /// Peers that sent text that was not UTF-8, or a malformed compressed message (1007).
        bad_data,
        /// Messages that were too long (1009).
        #[doc(alias = "zip bomb")]
        too_long,
        /// Connections that were closed because incomplete messages took too much memory (1013).
        without_room,
        /// Messages in too many fragments (1008).
        too_many_fragments,
        /// Peers that sent too many control frames (1008).
        #[doc(alias = "ping flood")]
        control_floods,
        /// Peers that were silent and did not answer a ping in time.
        #[doc(alias = "keep-alive")]
        pong_timeouts,
        /// Peers that did not answer a close frame in time.
        close_timeouts,
        /// Messages, pieces and pings that were refused because too much output was unsent.
        #[doc(alias = "backpressure")]
        sends_refused,
        /// How often a connection left the rest of its decompression to the next turn.
        inflated_in_turns,
    }
}
