//! `MultipartConfig`: the limits of a form.

/// The limits of a form. The length of the whole body is limited by the connection
/// ([`rotor_http::Limits`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MultipartConfig {
    pub(super) parts_max: usize,
    pub(super) part_bytes_max: u64,
    pub(super) head_bytes_max: usize,
    pub(super) name_bytes_max: usize,
}

impl MultipartConfig {
    /// Returns the defaults.
    pub fn new() -> MultipartConfig {
        MultipartConfig {
            parts_max: 100,
            part_bytes_max: 8 << 20,
            head_bytes_max: 4 << 10,
            name_bytes_max: 255,
        }
    }

    /// Sets how many parts a form may have. Default: 100. A form with more is refused with 413.
    pub fn parts_max(self, parts_max: usize) -> MultipartConfig {
        MultipartConfig { parts_max, ..self }
    }

    /// Sets how many bytes the data of a part may have. Default: 8 MiB. A longer one is refused
    /// with 413.
    pub fn part_bytes_max(self, part_bytes_max: u64) -> MultipartConfig {
        MultipartConfig { part_bytes_max, ..self }
    }

    /// Sets how many bytes the head of a part may have. Default: 4 KiB. A longer one is refused
    /// with 413.
    pub fn head_bytes_max(self, head_bytes_max: usize) -> MultipartConfig {
        MultipartConfig { head_bytes_max, ..self }
    }

    /// Sets how many bytes the name of a part may have, and the name of its file. Default: 255. A
    /// longer one is refused with 413.
    pub fn name_bytes_max(self, name_bytes_max: usize) -> MultipartConfig {
        MultipartConfig { name_bytes_max, ..self }
    }
}

impl Default for MultipartConfig {
    fn default() -> MultipartConfig {
        MultipartConfig::new()
    }
}
