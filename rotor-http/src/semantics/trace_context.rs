//! `TraceContext`: the trace that a request belongs to (W3C Trace Context, level 1, and the random
//! flag of level 2).

use std::fmt;
use std::num::NonZero;

use super::fields::Fields;

/// The trace that a request belongs to, from the fields `traceparent` and `tracestate` ([W3C Trace
/// Context](https://www.w3.org/TR/trace-context/)).
///
/// A server's handler gets it from [`Head::trace_context`](crate::server::Head::trace_context), and
/// passes it on with [`Request::add_trace`](crate::client::Request::add_trace) or
/// [`Fetch::trace`](crate::client::Fetch::trace). A program that reports its own part of the trace
/// passes on a [`child`](TraceContext::child); any other program passes it on unchanged.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use std::num::NonZero;
///
/// use rotor::http::TraceContext;
/// use rotor::http::client::Fetch;
///
/// fn ask(came: Option<TraceContext>, trace: NonZero<u128>, here: NonZero<u64>) -> Fetch<()> {
///     let context = match came {
///         Some(context) => context.child(here),
///         None => TraceContext::begin(trace, here, true),
///     };
///     Fetch::get("/price").host("example.com").trace(&context)
/// }
/// # let _ = ask(None, NonZero::<u128>::MIN, NonZero::<u64>::MIN);
/// ```
///
/// Received fields are checked as the specification requires, and malformed ones are not passed on:
/// without a valid `traceparent` there is no context, without a valid `tracestate` there is no
/// state.
#[derive(Clone, PartialEq, Eq, Hash)]
#[doc(alias = "traceparent")]
#[doc(alias = "tracestate")]
#[doc(alias = "OpenTelemetry")]
pub struct TraceContext {
    trace_id: NonZero<u128>,
    parent_id: NonZero<u64>,
    flags: u8,
    /// Usually empty.
    state: Box<str>,
}

/// The flag: the caller has recorded the trace.
const SAMPLED: u8 = 1;

/// The flag: the trace's id was chosen at random (level 2).
const RANDOM: u8 = 2;

/// The length of a `traceparent` of version 00: version, trace, parent, flags, three dashes.
const PARENT_LEN: usize = 55;

/// The maximum number of members of a state (§3.3.1.1).
const MEMBERS_MAX: usize = 32;

/// How many bytes of a state are passed on: the minimum that everybody must pass on (§3.3.1.5).
const STATE_BYTES_MAX: usize = 512;

/// Members longer than this are the first to be dropped if there is no room (§3.3.1.5).
const LARGE_MEMBER: usize = 128;

impl TraceContext {
    /// Begins a trace, whose first part has the id `parent_id`. Choose both ids at random.
    pub fn begin(
        trace_id: NonZero<u128>,
        parent_id: NonZero<u64>,
        is_sampled: bool,
    ) -> TraceContext {
        let flags = RANDOM | if is_sampled { SAMPLED } else { 0 };
        TraceContext { trace_id, parent_id, flags, state: Box::default() }
    }

    /// Reads the context from the fields of a head. Returns `None` if there is no valid
    /// `traceparent`, or more than one.
    pub fn of(fields: Fields<'_>) -> Option<TraceContext> {
        let mut parents = fields.get_all("traceparent");
        // Without the field, nothing is allocated.
        let mut context = TraceContext::parse(parents.next()?)?;
        if parents.next().is_some() {
            return None;
        }
        context.state = join_members(fields.get_all("tracestate")).unwrap_or_default();
        Some(context)
    }

    /// Reads the value of a `traceparent`, without a state. Returns `None` if it is malformed.
    ///
    /// If its version is above 00 and it begins like a value of version 00, that part is used.
    pub fn parse(traceparent: &[u8]) -> Option<TraceContext> {
        let (head, more) = traceparent.split_at_checked(PARENT_LEN)?;
        let [version, trace, parent, flags] = split_parts(head)?;
        let version = hexadecimal(version)?;
        let is_valid = match version {
            0 => more.is_empty(),
            0xff => false,
            // Whatever follows, a dash must separate it.
            _ => more.is_empty() || more[0] == b'-',
        };
        if !is_valid {
            return None;
        }
        let flags = hexadecimal(flags)? as u8;
        Some(TraceContext {
            trace_id: NonZero::new(hexadecimal(trace)?)?,
            parent_id: NonZero::new(hexadecimal(parent)? as u64)?,
            // The meaning of other bits is unknown, and they are not passed on (§3.2.2.5.2).
            flags: flags & (SAMPLED | RANDOM),
            state: Box::default(),
        })
    }

    /// Returns the context for requests to other servers in the same trace. `parent_id` is the id
    /// of the part that makes the requests; choose it at random.
    #[must_use]
    pub fn child(&self, parent_id: NonZero<u64>) -> TraceContext {
        TraceContext { parent_id, ..self.clone() }
    }

    /// Sets whether the caller records the trace.
    #[must_use]
    pub fn sampled(mut self, yes: bool) -> TraceContext {
        self.flags = self.flags & !SAMPLED | if yes { SAMPLED } else { 0 };
        self
    }

    /// Returns the id of the whole trace.
    pub fn trace_id(&self) -> NonZero<u128> {
        self.trace_id
    }

    /// Returns the id of the part that made the request.
    pub fn parent_id(&self) -> NonZero<u64> {
        self.parent_id
    }

    /// Returns whether the caller may have recorded its part.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Returns the value of `traceparent`.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace_id, self.parent_id, self.flags)
    }

    /// Returns the value of `tracestate`: what other systems store with the trace, at most 512
    /// bytes. It is empty if there is none.
    pub fn tracestate(&self) -> &str {
        &self.state
    }
}

/// Splits a value into version, trace, parent and flags, if the dashes are where they must be.
fn split_parts(head: &[u8]) -> Option<[&[u8]; 4]> {
    let dashes = [head.get(2)?, head.get(35)?, head.get(52)?];
    if dashes.iter().any(|&&dash| dash != b'-') {
        return None;
    }
    Some([head.get(..2)?, head.get(3..35)?, head.get(36..52)?, head.get(53..)?])
}

/// Parses at most 32 lower-case hexadecimal digits as a number.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number: u128, &digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

/// Joins all fields with this name into one list, shortened to what is passed on. Returns `None` if
/// a member is malformed, or if there are too many.
fn join_members<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Box<str>> {
    let mut members: Vec<&str> = Vec::new();
    for member in lines.flat_map(|line| line.split(|&byte| byte == b',')) {
        let member = member.trim_ascii();
        if member.is_empty() {
            continue;
        }
        if members.len() == MEMBERS_MAX || !is_member(member) {
            return None;
        }
        members.push(std::str::from_utf8(member).ok()?);
    }
    let joined = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>();
    if joined(&members) > STATE_BYTES_MAX + 1 {
        members.retain(|member| member.len() <= LARGE_MEMBER);
    }
    while joined(&members) > STATE_BYTES_MAX + 1 {
        members.pop();
    }
    Some(members.join(",").into())
}

/// Returns whether this is a key and a value (§3.3.1.3).
fn is_member(member: &[u8]) -> bool {
    let Some(equals) = member.iter().position(|&byte| byte == b'=') else { return false };
    is_key(&member[..equals]) && is_value(&member[equals + 1..])
}

/// Returns whether this is a key: a name, or a tenant and a system (§3.3.1.3.1).
fn is_key(key: &[u8]) -> bool {
    let is_of_key =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(byte);
    let is_name = |name: &[u8], len_max: usize, may_begin_with_digit: bool| {
        let begins = name.first().is_some_and(|first| {
            first.is_ascii_lowercase() || may_begin_with_digit && first.is_ascii_digit()
        });
        begins && name.len() <= len_max && name.iter().all(is_of_key)
    };
    match key.iter().position(|&byte| byte == b'@') {
        None => is_name(key, 256, false),
        Some(at) => is_name(&key[..at], 241, true) && is_name(&key[at + 1..], 14, false),
    }
}

/// Returns whether this is a value: printable ASCII without commas and equals signs. Surrounding
/// whitespace has been removed.
fn is_value(value: &[u8]) -> bool {
    let is_valid = |byte: &u8| matches!(byte, b' '..=b'~') && !b",=".contains(byte);
    (1..=256).contains(&value.len()) && value.iter().all(is_valid)
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceContext({}, {:?})", self.traceparent(), &self.state)
    }
}

#[cfg(test)]
mod tests;
