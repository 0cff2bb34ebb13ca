//! `BodyStorer`: a body that is stored as one value, for a handler of a server or a client.

use std::sync::Arc;

use rotor_body::{Collector, Expected, Progress, Spool, SpoolError};
use rotor_core::{LogLimit, Scope, Time};
use rotor_stream::{Block, BytesHeld};

use crate::h1::framing::Body;
use crate::limits::Limits;
use crate::recv_mode::RecvMode;
use crate::semantics::error::BodyError;

/// A body that is being stored, and what its exchange has to remember of it.
pub(crate) struct BodyStorer {
    collector: Collector,
    /// The handler wants no more for now, whatever the state of the disk.
    pub(crate) is_held_by_handler: bool,
    /// The peer has not been told yet to send the body (100 Continue).
    pub(crate) is_continue_pending: bool,
    /// A body that the handler would take may be too large only because no spool is configured.
    lacks_spool: bool,
}

/// The limits of a body that its handler wants stored.
#[derive(Clone, Copy)]
pub(crate) struct StoreLimits {
    ram_max: usize,
    max: u64,
}

impl StoreLimits {
    pub(crate) fn of(mode: RecvMode) -> Option<StoreLimits> {
        match mode {
            RecvMode::Stored { ram_max, max } => Some(StoreLimits { ram_max, max }),
            _ => None,
        }
    }
}

impl BodyStorer {
    /// Begins to store a body of which nothing has been taken yet.
    ///
    /// # Errors
    ///
    /// `TooLarge` if the announced length is; `NoRoom` if the quota of all bodies is used up.
    pub(crate) fn begin<C>(
        wanted: StoreLimits,
        announced: Body,
        spool: Option<&Spool>,
        limits: &Limits,
        memory: &Arc<BytesHeld>,
        scope: &Scope<'_, C>,
    ) -> Result<BodyStorer, BodyError> {
        let in_memory_max = usize::try_from(limits.buffered_body_bytes_max).unwrap_or(usize::MAX);
        let expected = Expected {
            ram_max: wanted.ram_max.min(in_memory_max),
            bytes_max: wanted.max,
            announced: match announced {
                Body::Empty => Some(0),
                Body::Length(length) => Some(length),
                _ => None,
            },
            memory: memory.clone(),
        };
        let lacks_spool = spool.is_none()
            && wanted.max > expected.ram_max as u64
            && expected.announced.is_none_or(|length| length <= wanted.max);
        let collector = Collector::begin(spool, expected, scope)
            .map_err(|error| to_body_error(&error, lacks_spool, scope.now()))?;
        Ok(BodyStorer {
            collector,
            is_held_by_handler: false,
            is_continue_pending: false,
            lacks_spool,
        })
    }

    /// Returns whether the peer has to wait.
    pub(crate) fn must_hold(&self) -> bool {
        self.is_held_by_handler || !self.collector.takes_more()
    }

    /// Returns whether the whole body will be in memory.
    pub(crate) fn is_collecting(&self) -> bool {
        self.collector.stays_in_memory()
    }

    /// Adds the next part of the body; `is_end` if it is the last one.
    pub(crate) fn add_blocks<C>(
        &mut self,
        blocks: Vec<Block>,
        is_end: bool,
        scope: &Scope<'_, C>,
    ) -> Result<Progress, BodyError> {
        let mut progress = Progress::Hold;
        for block in blocks {
            let added = self.collector.add(block, scope);
            progress = self.checked(added, scope)?;
        }
        if is_end {
            let ended = self.collector.end(scope);
            progress = self.checked(ended, scope)?;
        }
        Ok(progress)
    }

    /// Continues after the machine was woken, perhaps by a thread that has written something.
    pub(crate) fn poll<C>(&mut self, scope: &Scope<'_, C>) -> Result<Progress, BodyError> {
        let polled = self.collector.poll(scope);
        self.checked(polled, scope)
    }

    fn checked<C>(
        &self,
        progress: Result<Progress, SpoolError>,
        scope: &Scope<'_, C>,
    ) -> Result<Progress, BodyError> {
        progress.map_err(|error| to_body_error(&error, self.lacks_spool, scope.now()))
    }
}

/// Limits how often it is logged that a body is not stored: while a disk is full, each upload fails.
static FAILURES: LogLimit = LogLimit::new();

/// Logs a failure for which the peer is not responsible, and returns what the peer is told.
fn to_body_error(error: &SpoolError, lacks_spool: bool, now: Time) -> BodyError {
    let (reported, cause) = match error {
        // The peer is told that its body is too large, which hides the mistake of the program.
        SpoolError::TooLarge if lacks_spool => {
            (BodyError::TooLarge, "no spool is configured for longer ones".to_owned())
        }
        SpoolError::TooLarge => return BodyError::TooLarge,
        SpoolError::NoRoom => return BodyError::NoRoom,
        SpoolError::DiskFull(cause) => (BodyError::DiskFull, cause.to_string()),
        SpoolError::NoDescriptor(cause) => (BodyError::NoRoom, cause.to_string()),
        SpoolError::Disk(cause) => (BodyError::Disk, cause.to_string()),
        SpoolError::Lost(cause) => (BodyError::Disk, cause.to_string()),
        _ => (BodyError::Disk, String::new()),
    };
    if let Some(others) = FAILURES.try_pass(now) {
        log::warn!("a body is not stored: {error}: {cause} (before, {others} more were not)");
    }
    reported
}
