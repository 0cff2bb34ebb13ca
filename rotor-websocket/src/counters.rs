//! What WebSockets count.

macro_rules! counters {
    ($(#[$about:meta])* struct Counters { $($(#[$doc:meta])* $name:ident,)+ }) => {
        rotor_core::__rotor_counters! {
            $(#[$about])*
            struct Counters {
                $($(#[$doc])* $name,)+
            }
        }

        /// One of the counters, by its name.
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
    /// What the connections that share a [`WebSocketConfig`](crate::WebSocketConfig) count: how
    /// they began and ended, and how often each limit was reached. Messages are not counted; a
    /// handler that needs that counts its own.
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
        /// Requests and answers that were not a valid handshake.
        refused,
        /// Connections that ended with a close frame each way.
        closed,
        /// Connections that were lost without a close frame each way.
        lost,
        /// Peers that violated the rules of frames (1002).
        bad_frames,
        /// Peers whose text was not UTF-8, or whose compressed message was malformed (1007).
        bad_data,
        /// Messages that were too long (1009).
        #[doc(alias = "zip bomb")]
        too_long,
        /// Connections whose message had no room beside those of others that were not whole (1013).
        without_room,
        /// Messages in too many fragments (1008).
        too_many_fragments,
        /// Peers that sent too many control frames (1008).
        #[doc(alias = "ping flood")]
        control_floods,
        /// Peers that were silent and did not answer a ping.
        #[doc(alias = "keep-alive")]
        pong_timeouts,
        /// Peers that did not answer a close frame.
        close_timeouts,
        /// Messages that were not sent because too much waited for the peer.
        #[doc(alias = "backpressure")]
        sends_refused,
        /// How often a connection left the rest of its decompression to its next turn.
        inflated_in_turns,
    }
}
