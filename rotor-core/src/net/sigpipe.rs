//! Whether the process ignores SIGPIPE, which `sendfile` raises and has no flag to prevent.
//!
//! Rust's runtime ignores it before `main`. A C program that runs a loop in a library may not. Then
//! a single peer that hangs up would end the process.

use std::fs;
use std::io;
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::sync::OnceLock;

use signal_hook::consts::SIGPIPE;

/// Returns whether SIGPIPE is known to be ignored. This is determined once, if it can be, and kept,
/// because it takes one to three system calls, and a program that ignores the signal does so early
/// and for good.
pub(super) fn is_ignored() -> bool {
    static IS_IGNORED: OnceLock<bool> = OnceLock::new();
    // Safe code cannot query the disposition itself.
    determine_once(&IS_IGNORED, || fs::read_to_string("/proc/self/status"))
}

/// Returns what is known, or determines it from what `read` returns.
fn determine_once(known: &OnceLock<bool>, read: impl FnOnce() -> io::Result<String>) -> bool {
    if let Some(is_ignored) = known.get() {
        return *is_ignored;
    }
    let is_ignored = match read() {
        Ok(status) => is_sigpipe_in_mask(&status),
        // There is no such file, as in a sandbox without /proc: files are copied, which is slower
        // but never wrong.
        Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => false,
        // Most likely no descriptor is left now, which says nothing about later files.
        Err(_) => return false,
    };
    if !is_ignored {
        log::info!(
            "SIGPIPE is not known to be ignored: files are copied where the kernel would send them"
        );
    }
    *known.get_or_init(|| is_ignored)
}

/// Returns whether SIGPIPE is in the mask of ignored signals. `status` has the format of
/// proc_pid_status(5).
fn is_sigpipe_in_mask(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is signal 1.
    mask.is_some_and(|mask| mask & (1 << (SIGPIPE - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_parsed() {
        let cases = [
            (
                "SigBlk:\t0000000000001000\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000440\n",
                true,
            ),
            ("SigIgn:\tffffffffffffffff\n", true),
            ("SigIgn:\tffffffffffffefff\nSigCgt:\t0000000000001000\n", false),
            ("SigIgn:\t0000000000000000\n", false),
            ("SigCgt:\t0000000000001000\n", false),
            ("SigIgn:\tnonsense\n", false),
            ("", false),
        ];
        for (status, expected) in cases {
            assert_eq!(is_sigpipe_in_mask(status), expected, "{status:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_opened_now_is_read_again_later() {
        let failing = |kind: io::ErrorKind| move || Err(io::Error::from(kind));
        let status = || Ok("SigIgn:\t0000000000001000\n".to_owned());
        let known = OnceLock::new();
        // EMFILE, which has no kind of its own.
        assert!(!determine_once(&known, || Err(io::Error::from_raw_os_error(24))));
        assert!(determine_once(&known, status));
        assert!(determine_once(&known, failing(NotFound)), "it is kept");
        for kind in [NotFound, PermissionDenied] {
            let known = OnceLock::new();
            assert!(!determine_once(&known, failing(kind)));
            assert!(!determine_once(&known, status), "it is not read again");
        }
    }

    #[test]
    fn a_rust_program_ignores_sigpipe() {
        assert!(is_ignored());
    }
}
