//! The notes, in SQLite: each thread has a connection of its own.

use std::time::Duration;

use rotor_service::PerThread;
use rusqlite::{Connection, OptionalExtension, Result, Row};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
pub(crate) struct Note {
    pub(crate) id: i64,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewNote {
    text: String,
}

/// Makes the table if it does not exist.
pub(crate) fn open(file: String) -> Result<PerThread<Connection>> {
    let connect = move || {
        let connection = Connection::open(&file)?;
        // How long a thread waits for another one that writes.
        connection.busy_timeout(Duration::from_secs(5))?;
        Ok::<_, rusqlite::Error>(connection)
    };
    let connection = connect()?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    )?;
    Ok(PerThread::new(connect))
}

pub(crate) fn list(notes: &Connection, limit: u32) -> Result<Vec<Note>> {
    let mut select = notes.prepare_cached("SELECT id, text FROM notes ORDER BY id LIMIT ?1")?;
    select.query_map([limit], read)?.collect()
}

pub(crate) fn add(notes: &Connection, new: &NewNote) -> Result<Note> {
    let mut insert =
        notes.prepare_cached("INSERT INTO notes (text) VALUES (?1) RETURNING id, text")?;
    insert.query_row([&new.text], read)
}

pub(crate) fn show(notes: &Connection, id: i64) -> Result<Option<Note>> {
    let mut select = notes.prepare_cached("SELECT id, text FROM notes WHERE id = ?1")?;
    select.query_row([id], read).optional()
}

pub(crate) fn remove(notes: &Connection, id: i64) -> Result<bool> {
    let mut delete = notes.prepare_cached("DELETE FROM notes WHERE id = ?1")?;
    Ok(delete.execute([id])? > 0)
}

fn read(row: &Row<'_>) -> Result<Note> {
    Ok(Note { id: row.get(0)?, text: row.get(1)? })
}
