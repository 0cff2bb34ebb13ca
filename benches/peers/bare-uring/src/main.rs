//! The bare loop on io_uring as a server: see `server`.
//!
//! ```text
//! bare-uring [ADDRESS]        default 127.0.0.1:3000; BODY_BYTES and CLOSE as for bare-loop
//! ```

fn main() -> Result<(), Box<dyn std::error::Error>> {
    bare_uring::server::serve()
}
