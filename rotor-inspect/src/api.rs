//! The data of the page, as JSON. Times are in seconds. Times of events are ages by the inspector's
//! clock, which all loops of a process share.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use rotor_core::{Histogram, LoopTimes, Time};

use crate::inspected::Inspected;
use crate::json::Json;
use crate::walk::{Row, Snapshot};
use crate::watched::WatchedLoop;

/// From this duration on, a turn counts as blocked.
const BLOCKED_MIN: Duration = Duration::from_millis(100);

pub(crate) fn loops(inspected: &Inspected, now: Time) -> String {
    let mut json = Json::default();
    json.object(|json| {
        json.key("changes").bool(inspected.access.allows_changes);
        json.key("refused").count(inspected.refused.load(Relaxed));
        json.key("loops").array(|json| {
            inspected.loops.iter().for_each(|watched| write_loop(json, watched, now));
        });
        json.key("servers").array(|json| {
            for (name, counters) in &inspected.servers {
                json.object(|json| {
                    json.key("name").string(name);
                    json.key("connections_open").count(counters.connections_open());
                    json.key("requests_open").count(counters.requests_open());
                    json.key("requests").count(counters.requests());
                    json.key("received_bytes").count(counters.received_bytes());
                    json.key("sent_bytes").count(counters.sent_bytes());
                    for (class, count) in counters.responses() {
                        json.key(class).count(count);
                    }
                });
            }
        });
    });
    json.into_text()
}

/// Returns for how long the current turn has blocked its loop, if it has.
pub(crate) fn blocked_for(times: &LoopTimes, now: Time) -> Option<Duration> {
    times.in_turn_since.map(|since| now - since).filter(|lasted| *lasted >= BLOCKED_MIN)
}

fn write_loop(json: &mut Json, watched: &WatchedLoop, now: Time) {
    let (stats, times) = (watched.stats.read(), watched.stats.times());
    let blocked_for = blocked_for(&times, now);
    json.object(|json| {
        json.key("name").string(&watched.name);
        json.key("machines").count(stats.alive);
        json.key("slots").count(stats.slots);
        json.key("deadlines").count(stats.armed);
        json.key("turns").count(stats.turns);
        json.key("busy").number(times.busy.as_secs_f64());
        json.key("waited").number(times.waited.as_secs_f64());
        json.key("idle_for").number((now - times.last_turn_ended).as_secs_f64());
        match blocked_for {
            Some(lasted) => json.key("blocked_for").number(lasted.as_secs_f64()),
            None => json.key("blocked_for").null(),
        }
        json.key("longest_turn").number(stats.longest_turn.as_secs_f64());
        json.key("stuck").count(stats.stuck);
        json.key("failed").count(stats.failed);
        json.key("panicked").count(stats.panicked);
        json.key("turn_times");
        write_histogram(json, &times.turns);
        json.key("lag");
        write_histogram(json, &times.lag);
        json.key("handlers").array(|json| {
            for handler in &times.handlers {
                json.object(|json| {
                    json.key("machine").string(handler.machine);
                    json.key("calls").count(handler.times.count());
                    json.key("seconds").number(handler.times.sum().as_secs_f64());
                });
            }
        });
    });
}

fn write_histogram(json: &mut Json, times: &Histogram) {
    json.array(|json| times.buckets().for_each(|(_, count)| json.count(count)));
}

pub(crate) fn machines(watched: &WatchedLoop, snapshot: Snapshot, now: Time) -> String {
    let (page, pages) = (snapshot.page(), snapshot.pages());
    let mut json = Json::default();
    json.object(|json| {
        json.key("loop").string(&watched.name);
        json.key("phase").string(match snapshot.phase {
            rotor_core::Phase::Serving => "serving",
            rotor_core::Phase::Announced => "announced",
            rotor_core::Phase::Draining => "draining",
        });
        json.key("matched").count(snapshot.matched);
        json.key("page").count(page);
        json.key("pages").count(pages);
        json.key("kinds").array(|json| {
            for ((machine, state), kind) in &snapshot.kinds {
                json.object(|json| {
                    json.key("machine").string(machine);
                    json.key("state").string(state);
                    json.key("count").count(kind.count);
                    json.key("held").count(kind.held);
                    json.key("messages").count(kind.messages);
                    json.key("oldest");
                    write_age(json, kind.oldest, now);
                });
            }
        });
        let rows = snapshot.into_rows();
        json.key("rows").array(|json| rows.for_each(|it| write_row(json, &it, now)));
    });
    json.into_text()
}

fn write_row(json: &mut Json, row: &Row, now: Time) {
    json.object(|json| {
        // As text, because numbers of this size are not exact in JavaScript.
        json.key("token").string(&row.token.to_string());
        json.key("machine").string(row.machine);
        json.key("state").string(row.state);
        match row.peer {
            Some(peer) => json.key("peer").string(&peer.to_string()),
            None => json.key("peer").null(),
        }
        json.key("age");
        write_age(json, row.made, now);
        match row.deadline {
            Some(deadline) => json.key("deadline_in").number((deadline - now).as_secs_f64()),
            None => json.key("deadline_in").null(),
        }
        json.key("held").count(row.held as u64);
        json.key("messages").count(row.messages);
        json.key("due").bool(row.is_due);
    });
}

fn write_age(json: &mut Json, made: Option<Time>, now: Time) {
    match made {
        Some(made) => json.number((now - made).as_secs_f64().floor()),
        None => json.null(),
    }
}

pub(crate) fn failures(inspected: &Inspected, now: SystemTime) -> String {
    let mut json = Json::default();
    json.array(|json| {
        for failure in inspected.failures.iter().flat_map(|failures| failures.read()) {
            json.object(|json| {
                let ago = now.duration_since(failure.at).unwrap_or_default();
                json.key("ago").number(ago.as_secs_f64().floor());
                json.key("machine").string(failure.machine);
                json.key("text").string(&failure.text);
            });
        }
    });
    json.into_text()
}

/// Returns what is known of a loop that does not answer.
pub(crate) fn blocked_loop(watched: &WatchedLoop, now: Time) -> String {
    let mut json = Json::default();
    json.object(|json| write_loop(json.key("blocked"), watched, now));
    json.into_text()
}
