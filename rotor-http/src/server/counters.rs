//! What the connections of a server count.

use crate::counters::counters;

counters! {
    /// Connections that were made.
    connections,
    /// Requests whose head was read.
    requests,
    /// Requests that were refused before a handler saw them, whatever the reason.
    refused,
    /// Heads over a limit (431, 414, 501; 400 for empty lines before one).
    heads_too_large,
    /// Bodies over a limit, of data (413), chunk lines, extensions (400) or trailers (431).
    bodies_too_large,
    /// Bodies that broke their framing, trailers included, or were cut short (400).
    bodies_broken,
    /// Heads that took too long (408).
    head_timeouts,
    /// Bodies that came too slowly (408).
    body_timeouts,
    /// Connections that waited too long for a request.
    idle_timeouts,
    /// Handlers that took too long (503), by the connection's deadline; those that set one of their own use it for
    /// whatever they like.
    handler_timeouts,
    /// Peers that took their answer too slowly.
    answer_timeouts,
    /// How often a connection stopped taking requests because its answers were not taken.
    held_back,
    /// Handlers that panicked (500).
    panics,
    /// Handlers that finished without a complete answer.
    unfinished,
    /// Connections that were closed with a body unread, because nobody wanted it and it was too long, or too slow.
    undrained,
    /// Connections that reached `requests_max`.
    used_up,
}
