//! Derives choices from fuzzed bytes: the first bytes of an input are choices, the rest is the data
//! that they apply to.

use std::fmt;

use rotor_http::{Limits, Method};

/// Fuzzed bytes that have not been used yet. When they run out, every choice is the first one.
pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) fn new(data: &'a [u8]) -> Input<'a> {
        Input { rest: data }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    pub(super) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    /// Two bytes as a number.
    pub(super) fn short(&mut self) -> usize {
        usize::from(u16::from_be_bytes([self.byte(), self.byte()]))
    }

    /// Eight bytes as a number.
    pub(super) fn long(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// Reads a length byte, then that many bytes, or as many as are left.
    pub(super) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte()).min(self.rest.len());
        let (bytes, rest) = self.rest.split_at(len);
        self.rest = rest;
        bytes
    }

    /// The same as `bytes`, with each byte as a character.
    pub(super) fn text(&mut self) -> String {
        self.bytes().iter().map(|&byte| char::from(byte)).collect()
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }
}

/// The methods that change how a message is read, and some that do not.
pub(super) const METHODS: [Method<'static>; 8] = [
    Method::Get,
    Method::Head,
    Method::Post,
    Method::Connect,
    Method::Options,
    Method::Extension("BREW"),
    Method::Extension("HEAD"),
    Method::Extension("CONNECT"),
];

/// Where an input is cut, chosen by its own first bytes.
pub(super) struct Cuts {
    points: [usize; 3],
}

impl Cuts {
    pub(super) fn choose(input: &mut Input<'_>) -> Cuts {
        Cuts { points: [input.short(), input.short(), input.short()] }
    }

    /// What is read of an input from growing prefixes of these lengths: the same as a whole, cut
    /// here, and byte by byte.
    pub(super) fn read_each_way<R: fmt::Debug + PartialEq>(
        &self,
        input: &[u8],
        read: impl Fn(Vec<usize>) -> R,
    ) -> R {
        let whole = read(vec![input.len()]);
        let cut = read(self.prefixes(input.len()).to_vec());
        assert_eq!(cut, whole, "cut: {}", input.escape_ascii());
        let byte_by_byte = read((0..=input.len()).collect());
        assert_eq!(byte_by_byte, whole, "byte by byte: {}", input.escape_ascii());
        whole
    }

    /// The lengths of the successive prefixes; the last one is the whole input.
    fn prefixes(&self, len: usize) -> [usize; 4] {
        let [a, b, c] = self.points.map(|point| point % (len + 1));
        let mut prefixes = [a, b, c, len];
        prefixes.sort_unstable();
        prefixes
    }

    /// The input in pieces, some of them perhaps empty.
    pub(super) fn pieces<'a>(&self, input: &'a [u8]) -> [&'a [u8]; 4] {
        let [a, b, c, end] = self.prefixes(input.len());
        [&input[..a], &input[a..b], &input[b..c], &input[c..end]]
    }
}

/// The limits of a head, with public fields.
#[derive(Clone, Copy)]
pub(super) struct HeadLimits {
    pub(super) head: usize,
    pub(super) field: usize,
    pub(super) fields: usize,
    pub(super) target: usize,
    pub(super) empty_lines: u8,
}

impl HeadLimits {
    /// The defaults, some small ones, and some that only the end of the input reaches.
    pub(super) fn choose(input: &mut Input<'_>) -> HeadLimits {
        input.pick(&[
            HeadLimits {
                head: 16 << 10,
                field: 8 << 10,
                fields: 100,
                target: 8190,
                empty_lines: 2,
            },
            HeadLimits { head: 64, field: 16, fields: 3, target: 10, empty_lines: 0 },
            HeadLimits { head: 200, field: 60, fields: 5, target: 40, empty_lines: 1 },
            HeadLimits {
                head: 1 << 20,
                field: 1 << 20,
                fields: 256,
                target: 1 << 20,
                empty_lines: 255,
            },
            HeadLimits { head: 100, field: 0, fields: 0, target: 0, empty_lines: 2 },
            HeadLimits { head: 1000, field: 100, fields: 70, target: 20, empty_lines: 3 },
        ])
    }

    pub(super) fn limits(&self) -> Limits {
        Limits::new()
            .head_bytes_max(self.head)
            .field_bytes_max(self.field)
            .fields_max(self.fields)
            .target_bytes_max(self.target)
            .empty_lines_max(self.empty_lines)
    }
}
