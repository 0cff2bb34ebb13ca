//! A line protocol that stores and fetches values, on tokio. `tests/long/lines-and-builds`
//! describes what it has in common with the one on rotor.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

const LINE_BYTES_MAX: u64 = 1024;
const LINE_TIME_MAX: Duration = Duration::from_secs(10);
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
const FLUSH_TIME_MAX: Duration = Duration::from_secs(30);
const CONNECTIONS_MAX: usize = 1000;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

type Store = Mutex<HashMap<Vec<u8>, Vec<u8>>>;

/// Serves one connection, until the peer ends or exceeds a limit, or, during a drain, has no line
/// in progress.
async fn lines(
    mut socket: TcpStream,
    store: Arc<Store>,
    mut ending: watch::Receiver<bool>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (input, output) = socket.split();
    let mut input = BufReader::new(input);
    let mut output = BufWriter::new(output);
    let mut line = Vec::new();
    loop {
        if input.buffer().is_empty() {
            timeout(FLUSH_TIME_MAX, output.flush()).await??;
            let has_begun = select! {
                biased;
                first = timeout(IDLE_TIME_MAX, input.fill_buf()) => !first??.is_empty(),
                _ = ending.wait_for(|is_ending| *is_ending) => false,
            };
            if !has_begun {
                return Ok(());
            }
        }
        line.clear();
        let mut limited = (&mut input).take(LINE_BYTES_MAX);
        timeout(LINE_TIME_MAX, limited.read_until(b'\n', &mut line)).await??;
        if !line.ends_with(b"\n") {
            break;
        }
        let Some(answer) = obey(&line, &store) else { break };
        timeout(FLUSH_TIME_MAX, output.write_all(&answer)).await??;
    }
    timeout(FLUSH_TIME_MAX, output.shutdown()).await??;
    Ok(())
}

fn obey(line: &[u8], store: &Store) -> Option<Vec<u8>> {
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let mut words = line.trim_ascii_end().splitn(3, |byte| *byte == b' ');
    match (words.next(), words.next(), words.next()) {
        (Some(b"SET"), Some(key), Some(value)) => {
            store.insert(key.to_vec(), value.to_vec());
            Some(b"OK\n".to_vec())
        }
        (Some(b"GET"), Some(key), None) => match store.get(key) {
            Some(value) => Some([b"VALUE ", &value[..], b"\n"].concat()),
            None => Some(b"NONE\n".to_vec()),
        },
        (Some(b"QUIT"), None, None) => None,
        _ => Some(b"ERROR\n".to_vec()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7000".into());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (end, ending) = watch::channel(false);
    let (store, connections) = (Arc::new(Store::default()), TaskTracker::new());
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = select! {
            next = next => next,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        };
        let Ok((socket, _)) = accepted else {
            // For example, no descriptor is left; accepting is tried again until there is one.
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let connection = lines(socket, store.clone(), ending.clone());
        connections.spawn(async move {
            let _place = place;
            // An error of the peer, which affects only this connection.
            drop(connection.await);
        });
    }
    drop(listener);
    end.send_replace(true);
    connections.close();
    // Connections that are not done by then are dropped with the runtime.
    drop(timeout(DRAIN_TIME_MAX, connections.wait()).await);
    Ok(())
}
