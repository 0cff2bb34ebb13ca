//! How much memory replies hold, for limits in bytes.

use crate::error::LookupError;
use crate::name::Name;
use crate::record::{Data, RecordSet};
use crate::result::LookupResult;

/// The two counters of an `Arc`.
const ARC_COUNTER_BYTES: usize = 2 * size_of::<usize>();

/// The memory that an allocation of this many bytes takes, with the allocator's overhead as in
/// glibc: one more word, rounded up to 16, and at least 32 bytes.
fn allocation_size(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + size_of::<usize>()).next_multiple_of(16).max(32) }
}

impl Name {
    /// Returns the memory behind this name. Names may share it, but it is counted for each of them,
    /// since each may be the last one.
    pub(crate) fn held_bytes(&self) -> usize {
        allocation_size(ARC_COUNTER_BYTES + self.as_str().len())
    }
}

impl Data {
    /// Returns the memory behind this record.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Data::A(_) | Data::Aaaa(_) => 0,
            Data::Cname(name)
            | Data::Srv { target: name, .. }
            | Data::Mx { exchange: name, .. }
            | Data::Ptr(name) => name.held_bytes(),
            Data::Txt(strings) => {
                let texts: usize = strings.iter().map(|string| allocation_size(string.len())).sum();
                texts + allocation_size(strings.capacity() * size_of::<Box<[u8]>>())
            }
        }
    }
}

/// Returns the memory behind a reply.
pub(crate) fn reply_held_bytes(reply: &LookupResult) -> usize {
    match reply {
        Ok(answer) => {
            let list = allocation_size(answer.data.capacity() * size_of::<Data>());
            let data: usize = answer.data.iter().map(Data::held_bytes).sum();
            allocation_size(ARC_COUNTER_BYTES + size_of::<RecordSet>())
                + answer.name.held_bytes()
                + list
                + data
        }
        Err(LookupError::NoSuchName(name) | LookupError::NoRecords(name)) => name.held_bytes(),
        // They hold nothing, or are not kept.
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_memory_behind_a_reply_is_counted() {
        let name: Name = "sixteen-bytes.example".parse().expect("a name");
        assert_eq!(name.held_bytes(), 48, "two counters, 21 bytes, a word");
        let answer =
            |data| Ok(Arc::new(RecordSet { name: name.clone(), data, ttl: Duration::ZERO }));
        let empty = reply_held_bytes(&answer(Vec::new()));
        assert_eq!(empty, allocation_size(ARC_COUNTER_BYTES + size_of::<RecordSet>()) + 48);
        let address = Data::A([192, 0, 2, 1].into());
        let mut roomy = Vec::with_capacity(100);
        roomy.push(address.clone());
        assert_eq!(
            reply_held_bytes(&answer(roomy)) - empty,
            allocation_size(100 * size_of::<Data>()),
            "room counts"
        );
        let one = |data| {
            reply_held_bytes(&answer(vec![data])) - empty - allocation_size(size_of::<Data>())
        };
        assert_eq!(one(address), 0);
        for data in [
            Data::Cname(name.clone()),
            Data::Ptr(name.clone()),
            Data::Mx { preference: 10, exchange: name.clone() },
            Data::Srv { priority: 1, weight: 1, port: 1, target: name.clone() },
        ] {
            assert_eq!(one(data.clone()), 48, "{data:?}");
        }
        assert_eq!(
            one(Data::Txt(vec![[][..].into(); 1_000])),
            allocation_size(16_000),
            "though they are empty"
        );
        assert_eq!(one(Data::Txt(vec![[1][..].into(); 10])), allocation_size(160) + 10 * 32);
        assert_eq!(reply_held_bytes(&Err(LookupError::NoSuchName(name))), 48);
    }
}
