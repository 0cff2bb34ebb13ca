//! Opens a ring, and checks what its kernel can do.

use std::io;

use io_uring::{IoUring, Probe, opcode};
use rustix::io::Errno;

use super::Ring;
use super::provided::ProvidedBuffers;
use crate::config::UringConfig;
use crate::refused::{RingUnavailable, Step};

/// The operations that are used, by number and name.
const OPERATIONS: [(u8, &str); 5] = [
    (opcode::RecvMulti::CODE, "RECV"),
    (opcode::Send::CODE, "SEND"),
    (opcode::PollAdd::CODE, "POLL_ADD"),
    (opcode::AsyncCancel::CODE, "ASYNC_CANCEL"),
    (opcode::Close::CODE, "CLOSE"),
];

impl Ring {
    /// Opens a ring for this thread, which alone may use it.
    pub(crate) fn open(config: &UringConfig) -> Result<Ring, RingUnavailable> {
        let ring: IoUring = IoUring::builder()
            // The thread that opens the ring is the one that enters it, and completions are made
            // when it does: no interrupts for it, no locks (io_uring_setup(2); Linux 6.1).
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            // A flag in memory says that there is work for an enter to do.
            .setup_taskrun_flag()
            // A bad entry does not stop those behind it.
            .setup_submit_all()
            .setup_cqsize(config.completions.max(config.submissions))
            // A child process cannot use it.
            .dontfork()
            .build(config.submissions)
            .map_err(RingUnavailable::at(Step::Setup))?;
        check(&ring)?;
        let mut provided = ProvidedBuffers::new(config.buffers, config.buffer_bytes)
            .map_err(RingUnavailable::at(Step::Memory))?;
        provided.register(&ring).map_err(RingUnavailable::at(Step::Buffers))?;
        Ok(Ring::new(ring, provided))
    }
}

/// Checks that the ring's kernel has all that is needed.
fn check(ring: &IoUring) -> Result<(), RingUnavailable> {
    let params = ring.params();
    let features = [
        // Without it, completions are lost if there are too many.
        (params.is_feature_nodrop(), "NODROP"),
        // The timeout of a wait is an argument of the call.
        (params.is_feature_ext_arg(), "EXT_ARG"),
        (params.is_feature_skip_cqe_on_success(), "CQE_SKIP"),
    ];
    let missing = || io::Error::from(Errno::OPNOTSUPP);
    if let Some((_, name)) = features.iter().find(|(has, _)| !has) {
        return Err(RingUnavailable::at(Step::Feature(name))(missing()));
    }
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(RingUnavailable::at(Step::Setup))?;
    match OPERATIONS.iter().find(|(code, _)| !probe.is_supported(*code)) {
        Some((_, name)) => Err(RingUnavailable::at(Step::Operation(name))(missing())),
        None => Ok(()),
    }
}
