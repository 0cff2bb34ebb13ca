//! `Zstd`: the zstd library's encoder, with a window that bounds its memory.

use std::io;

use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

/// The library's default.
const LEVEL: i32 = 3;

/// 64 KiB, twice that of gzip. Clients must support 8 MiB (RFC 9659), but each stream would hold
/// that much here.
const WINDOW_LOG: u32 = 16;

/// The sizes of the tables: 32 Ki and 16 Ki entries of four bytes.
const HASH_LOG: u32 = 15;
const CHAIN_LOG: u32 = 14;

/// An encoder and its latest output.
pub(super) struct Zstd {
    context: CCtx<'static>,
    out: Vec<u8>,
}

impl Zstd {
    pub(super) fn new() -> io::Result<Zstd> {
        let no_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let mut context = CCtx::try_create().ok_or_else(no_memory)?;
        for parameter in [
            CParameter::CompressionLevel(LEVEL),
            CParameter::WindowLog(WINDOW_LOG),
            CParameter::HashLog(HASH_LOG),
            CParameter::ChainLog(CHAIN_LOG),
        ] {
            context.set_parameter(parameter).map_err(failed)?;
        }
        Ok(Zstd { context, out: Vec::new() })
    }

    pub(super) fn write(&mut self, piece: &[u8]) -> io::Result<&[u8]> {
        self.out.clear();
        let mut input = InBuffer::around(piece);
        while input.pos() < piece.len() {
            self.step(&mut input, ZSTD_EndDirective::ZSTD_e_continue)?;
        }
        Ok(&self.out)
    }

    pub(super) fn flush(&mut self) -> io::Result<&[u8]> {
        self.out.clear();
        while self.step(&mut InBuffer::around(&[]), ZSTD_EndDirective::ZSTD_e_flush)? > 0 {}
        Ok(&self.out)
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<u8>> {
        self.out.clear();
        while self.step(&mut InBuffer::around(&[]), ZSTD_EndDirective::ZSTD_e_end)? > 0 {}
        Ok(self.out)
    }

    /// Makes one call, with room for a block. Returns how many bytes are known to be left.
    fn step(&mut self, input: &mut InBuffer<'_>, end: ZSTD_EndDirective) -> io::Result<usize> {
        let before = self.out.len();
        self.out.resize(before + CCtx::out_size(), 0);
        let mut output = OutBuffer::around_pos(self.out.as_mut_slice(), before);
        let left = self.context.compress_stream2(&mut output, input, end);
        let after = output.pos();
        self.out.truncate(after);
        left.map_err(failed)
    }

    /// Returns how many bytes the library and the output buffer hold.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.context.sizeof() + self.out.capacity()
    }
}

fn failed(code: usize) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}
