//! hyper's client on tokio's current-thread runtime. Frames are kept as they arrive, or written to
//! a file by `spawn_blocking`, 256 KiB at a time, as rotor's spool does.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::time::Instant;

use bodies_work::{BATCH, BEAT, Figures, Lateness, Run, Summary, Task};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};

use crate::BoxError;

pub(crate) const WAYS: &[&str] = &["hyper-ram", "hyper-gather", "hyper-file"];

/// How much is written, or read, at a time.
const PIECE: usize = 256 << 10;

pub(crate) fn run(task: &Task) -> Result<Figures, BoxError> {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(2).build()?;
    runtime.block_on(batches(task))
}

async fn batches(task: &Task) -> Result<Figures, BoxError> {
    let mut connections = Vec::new();
    for _ in 0..BATCH {
        let socket = TcpStream::connect(&task.address).await?;
        let (requests, connection) = http1::handshake(TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        connections.push(requests);
    }
    let mut measured = None;
    for number in 0..=task.batches {
        if number == 1 {
            measured = Some((Run::begin(), Heart::begin()));
        }
        let mut under_way = JoinSet::new();
        for connection in connections.drain(..) {
            under_way.spawn(get(connection, task.clone()));
        }
        while let Some(ended) = under_way.join_next().await {
            connections.push(ended??);
        }
    }
    let (run, heart) = measured.ok_or("no batch")?;
    let lateness = heart.end().await?;
    Ok(run.end(task.batches, lateness))
}

/// Ticks once a millisecond.
struct Heart {
    stop: oneshot::Sender<()>,
    beats: tokio::task::JoinHandle<Lateness>,
}

impl Heart {
    fn begin() -> Heart {
        let (stop, mut stopped) = oneshot::channel();
        let beats = tokio::spawn(async move {
            let mut lateness = Lateness::default();
            while stopped.try_recv().is_err() {
                let due = Instant::now() + BEAT;
                tokio::time::sleep(BEAT).await;
                lateness.note(due);
            }
            lateness
        });
        Heart { stop, beats }
    }

    async fn end(self) -> Result<Lateness, BoxError> {
        let _ = self.stop.send(());
        Ok(self.beats.await?)
    }
}

type Connection = SendRequest<Empty<Bytes>>;

async fn get(mut connection: Connection, task: Task) -> Result<Connection, BoxError> {
    connection.ready().await?;
    let request = Request::get("/").header("Host", "bodies").body(Empty::new())?;
    let body = connection.send_request(request).await?.into_body();
    let summary = match task.way.as_str() {
        "hyper-file" => in_file(body, task.directory).await?,
        way => in_memory(body, way == "hyper-gather").await?,
    };
    summary.check();
    Ok(connection)
}

async fn in_memory(mut body: Incoming, gathers: bool) -> Result<Summary, BoxError> {
    let (mut all, mut summary) = (Vec::<Bytes>::new(), Summary::default());
    while let Some(frame) = body.frame().await {
        all.extend(frame?.into_data());
    }
    if gathers {
        summary.add(&all.concat());
    } else {
        all.iter().for_each(|piece| summary.add(piece));
    }
    Ok(summary)
}

async fn in_file(mut body: Incoming, directory: String) -> Result<Summary, BoxError> {
    let mut file = spawn_blocking(move || tempfile::tempfile_in(directory)).await??;
    let (mut waiting, mut len) = (Vec::<Bytes>::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        len += piece.len();
        waiting.push(piece);
        if len >= PIECE {
            file = write(file, std::mem::take(&mut waiting)).await?;
            len = 0;
        }
    }
    file = write(file, waiting).await?;
    spawn_blocking(move || read(file)).await?
}

async fn write(mut file: File, pieces: Vec<Bytes>) -> Result<File, BoxError> {
    let written = spawn_blocking(move || {
        pieces.iter().try_for_each(|piece| file.write_all(piece)).map(|()| file)
    });
    Ok(written.await??)
}

fn read(mut file: File) -> Result<Summary, BoxError> {
    let (mut piece, mut summary) = (vec![0; PIECE], Summary::default());
    file.rewind()?;
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(summary),
            count => summary.add(&piece[..count]),
        }
    }
}
