//! The metrics of HTTP servers and clients.

use std::fmt;
use std::sync::Arc;

use rotor_http::{client, server};

use crate::families::{Families, Labels};

pub(crate) fn write_servers(
    families: &mut Families<'_>,
    servers: &[(String, Arc<server::Counters>)],
) -> fmt::Result {
    let Some((_, first)) = servers.first() else { return Ok(()) };
    let servers: Vec<_> =
        servers.iter().map(|(name, it)| ([("server", name.as_str())], it)).collect();
    let rows = || servers.iter().map(|(labels, counters)| (Labels(labels), counters));
    // All servers have the same counters.
    for (place, (name, _)) in first.iter().enumerate() {
        let of = |counters: &server::Counters| counters.iter().nth(place).map_or(0, |(_, it)| it);
        let help = format!("Counters::{name} of the server.");
        let rows = rows().map(|(labels, counters)| (labels, of(counters)));
        families.counters(&format!("rotor_http_server_{name}"), &help, rows)?;
    }
    let open = rows().map(|(labels, counters)| (labels, counters.connections_open()));
    families.gauges("rotor_http_server_connections_open", "Open connections.", open)?;
    let open = rows().map(|(labels, counters)| (labels, counters.requests_open()));
    families.gauges("rotor_http_server_requests_open", "Requests in progress.", open)?;
    let bytes = rows().map(|(labels, counters)| (labels, counters.received_bytes()));
    families.counters("rotor_http_server_received_bytes", "Bytes that were read.", bytes)?;
    let bytes = rows().map(|(labels, counters)| (labels, counters.sent_bytes()));
    families.counters("rotor_http_server_sent_bytes", "Bytes that were written.", bytes)?;
    write_responses(families, &servers)
}

/// A server's counters, with its label.
type LabelledCounters<'a> = ([(&'static str, &'a str); 1], &'a Arc<server::Counters>);

fn write_responses(families: &mut Families<'_>, servers: &[LabelledCounters<'_>]) -> fmt::Result {
    let all: Vec<_> = servers
        .iter()
        .flat_map(|(labels, counters)| {
            let label = labels[0];
            let classes = counters.times_by_class().into_iter();
            classes.map(move |(class, times)| ([label, ("class", class)], times))
        })
        .collect();
    let counts = all.iter().map(|(labels, times)| (Labels(labels), times.count()));
    let help = "Requests that have ended, by the class of their status.";
    families.counters("rotor_http_server_responses", help, counts)?;
    // A class that has not occurred would add two dozen lines of zeros.
    let seen = all.iter().filter(|(labels, times)| times.count() > 0 || labels[1].1 == "2xx");
    let times = seen.map(|(labels, times)| (Labels(labels), *times));
    let help = "How long requests took, from their head to the end of their response.";
    families.histograms("rotor_http_server_request_seconds", help, times)
}

pub(crate) fn write_logs(
    families: &mut Families<'_>,
    logs: &[(String, server::LostLines)],
) -> fmt::Result {
    if logs.is_empty() {
        return Ok(());
    }
    let logs: Vec<_> = logs.iter().map(|(name, it)| ([("log", name.as_str())], it)).collect();
    let rows = logs.iter().map(|(labels, lost)| (Labels(labels), lost.count()));
    let help = "Lines of the access log that were lost: no room in the queue, or no file.";
    families.counters("rotor_access_log_lines_lost", help, rows)
}

pub(crate) fn write_clients(
    families: &mut Families<'_>,
    clients: &[(String, Arc<client::Counters>)],
) -> fmt::Result {
    let Some((_, first)) = clients.first() else { return Ok(()) };
    let clients: Vec<_> =
        clients.iter().map(|(name, it)| ([("client", name.as_str())], it)).collect();
    for (place, (name, _)) in first.iter().enumerate() {
        let of = |counters: &client::Counters| counters.iter().nth(place).map_or(0, |(_, it)| it);
        let help = format!("Counters::{name} of the client.");
        let rows = clients.iter().map(|(labels, counters)| (Labels(labels), of(counters)));
        families.counters(&format!("rotor_http_client_{name}"), &help, rows)?;
    }
    Ok(())
}
