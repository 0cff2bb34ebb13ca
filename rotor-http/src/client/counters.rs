//! `Counters`: statistics of a client's connections.

rotor_core::__rotor_counters! {
    /// Counters of a client's connections: its requests, and how often each limit was reached.
    struct Counters {
        /// Connections that were made.
        connections,
        /// Attempts to connect that failed.
        not_connected,
        /// Requests that were begun. A request that is made again is counted again.
        requests,
        /// Requests that ended with a response.
        answered,
        /// Requests that were to be made again: because their connection ended without a response,
        /// or because the server did not process them there (HTTP/2).
        repeated,
        /// Requests that failed, whatever the reason.
        failed,
        /// Requests that were cancelled after a connection had taken them.
        cancelled,
        /// Handlers that panicked.
        panics,
        /// Connections that were closed because the server sent something unasked.
        #[doc(alias = "response queue poisoning")]
        stray,
        /// Connections that ended because all connections together held too many bytes
        /// ([`held_bytes_max`](super::ClientConfig::held_bytes_max)).
        without_room,
        /// Requests whose deadline passed.
        deadlines,
        /// Connections that spoke HTTP/2.
        http2_connections,
        /// HTTP/2 requests that the server refused without processing them, and that could not be
        /// made again.
        refused,
        /// Streams that servers reset before their response was complete, including refused ones.
        streams_reset,
        /// HTTP/2 connections that ended because the server violated the protocol. The next three
        /// counters are included.
        protocol_errors,
        /// Field blocks that were far too large, or came in too many frames.
        field_floods,
        /// Connections with too many frames that are no part of a response: SETTINGS, PING, empty
        /// DATA and the like (`Http2Config::control_frames`, `Http2Config::small_data`), or with
        /// too many streams that the server made us reset (`Http2Config::provoked_resets`).
        frame_floods,
        /// Servers that did not acknowledge our settings in time.
        settings_timeouts,
        /// Servers that did not answer a PING in time.
        ping_timeouts,
        /// Connections that a server asked to end (GOAWAY).
        goaways,
    }
}
