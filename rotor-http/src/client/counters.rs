//! What the connections of a client count.

use crate::counters::counters;

counters! {
    /// What the connections of a client count: requests, and for each limit how often it was met.
    struct Counters {
        /// Connections that were made.
        connections,
        /// Attempts to connect that failed.
        not_connected,
        /// Requests that were begun; one that is made again counts again.
        requests,
        /// Requests that came to their end with a response.
        answered,
        /// Requests that were made again, on another connection, because theirs died unanswered.
        repeated,
        /// Requests that failed, whatever the reason.
        failed,
        /// Requests that were cancelled while they were under way.
        cancelled,
        /// Handlers that panicked.
        panics,
        /// Connections that were closed because something came that nobody had asked for.
        #[doc(alias = "response queue poisoning")]
        stray,
        /// Connections that ended because there was no room for what they held beside the
        /// others ([`held_bytes_max`](super::ClientConfig::held_bytes_max)).
        without_room,
        /// Requests whose deadline passed.
        deadlines,
    }
}
