//! `RequestParts`: a request whose head has arrived.

use std::borrow::Cow;

use rotor_http::server::Head;

use crate::refused::Rejection;
use crate::routes::{Parameters, decode_parameter};

/// A request whose head has arrived, from which the arguments of a function are read.
#[doc(alias = "Asked")]
#[derive(Debug)]
pub struct RequestParts<'a> {
    head: Head<'a>,
    parameters: &'a Parameters<'a, 'a>,
    /// How many parameters have been taken, or belong to a prefix.
    taken: usize,
    pub(super) body_bytes_max: usize,
}

impl<'a> RequestParts<'a> {
    /// Makes a request. `prefix_parameters` is the number of parameters, at the beginning, that
    /// belong to prefixes and are skipped.
    pub(super) fn new(
        head: Head<'a>,
        parameters: &'a Parameters<'a, 'a>,
        prefix_parameters: usize,
        body_bytes_max: usize,
    ) -> RequestParts<'a> {
        RequestParts { head, parameters, taken: prefix_parameters, body_bytes_max }
    }

    /// Returns the head.
    pub fn head(&self) -> &Head<'a> {
        &self.head
    }

    /// Returns the parameters of the path, by name, including those of the prefix under which the
    /// router is [nested](super::Router::nest). A fallback has none.
    pub fn parameters(&self) -> &'a Parameters<'a, 'a> {
        self.parameters
    }

    /// Takes the next parameter of the path, percent-decoded. Parameters of prefixes are skipped.
    ///
    /// # Errors
    ///
    /// 400: the parameter is not UTF-8 after decoding. 404: the path has no further parameter.
    pub fn next_parameter(&mut self) -> Result<Cow<'a, str>, Rejection> {
        let raw = self.parameters.nth(self.taken).ok_or_else(Rejection::not_found)?;
        self.taken += 1;
        decode_parameter(raw)
    }
}
