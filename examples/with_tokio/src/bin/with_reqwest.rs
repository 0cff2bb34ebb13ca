//! Makes a request with reqwest. Its futures are polled on the loop, by a machine; tokio, on
//! another thread, watches the sockets.
//!
//! ```text
//! cargo run --bin with_reqwest -- http://127.0.0.1:3000/
//! ```

use rotor::BoxError;
use rotor_with_tokio::drive;

fn main() -> Result<(), BoxError> {
    let url = std::env::args().nth(1).ok_or("which URL?")?;
    let text = drive(|_, _| async move {
        let answer = reqwest::get(url).await?.error_for_status()?;
        Ok(answer.text().await?)
    })?;
    println!("{}", text.trim_end());
    Ok(())
}
