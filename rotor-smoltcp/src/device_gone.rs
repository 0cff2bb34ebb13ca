//! The error of a loop whose device has failed. It names the device, which the system's error does
//! not.

use std::error::Error;
use std::fmt;
use std::io;

/// A device has failed, and why: the content of the [`io::Error`] that ends the loop.
#[derive(Debug)]
struct DeviceGone {
    device: String,
    cause: io::Error,
}

/// Adds the name of the device to its error.
pub(crate) fn device_gone(device: &str, cause: io::Error) -> io::Error {
    io::Error::new(cause.kind(), DeviceGone { device: device.into(), cause })
}

impl fmt::Display for DeviceGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the device of the loop is gone: {}; open it again for a new loop", self.device)
    }
}

impl Error for DeviceGone {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
