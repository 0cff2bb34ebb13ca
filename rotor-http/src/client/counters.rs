//! What the connections of a client count.

rotor_core::__rotor_counters! {
    /// What the connections of a client count: requests, and how often each limit was reached.
    struct Counters {
        /// Connections that were made.
        connections,
        /// Attempts to connect that failed.
        not_connected,
        /// Requests that were begun; one that is made again is counted again.
        requests,
        /// Requests that ended with a response.
        answered,
        /// Requests that were made again, on another connection, because theirs ended unanswered.
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
        /// Connections that spoke HTTP/2.
        http2_connections,
        /// Requests on HTTP/2 that the server refused without looking at them, and that could not
        /// be made again.
        refused,
        /// Streams that servers reset before their response was complete, refused ones included.
        streams_reset,
        /// Connections of HTTP/2 that ended because the server violated the protocol. The next four
        /// count some of them.
        protocol_errors,
        /// Blocks of fields that were far too large, or came in too many frames.
        field_floods,
        /// Too many frames that are no response: SETTINGS, PING, empty DATA and the like
        /// (`Http2Config::control_frames`).
        frame_floods,
        /// Servers that did not acknowledge our settings in time.
        settings_timeouts,
        /// Servers that did not answer a PING in time.
        ping_timeouts,
        /// Connections that a server asked to end (GOAWAY).
        goaways,
    }
}
