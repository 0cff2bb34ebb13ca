//! The notes, in SQLite: each thread has a connection of its own.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result, Row};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use crate::refused::{Refused, failed};

#[derive(Serialize)]
pub struct Note {
    pub id: i64,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewNote {
    text: String,
}

#[derive(Clone)]
pub struct Notes(Arc<str>);

impl Notes {
    /// Makes the table if it does not exist.
    pub fn open(file: String) -> Result<Notes> {
        let notes = Notes(file.into());
        let connection = notes.connect()?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
        )?;
        Ok(notes)
    }

    fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(&*self.0)?;
        // How long a thread waits for another one that writes.
        connection.busy_timeout(Duration::from_secs(5))?;
        Ok(connection)
    }

    /// Calls `work` on a thread that may block, with the connection of that thread.
    pub async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> std::result::Result<T, Refused> {
        thread_local! {
            static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
        }
        let own = self.clone();
        let asked = spawn_blocking(move || {
            CONNECTION.with_borrow_mut(|connection| match connection {
                Some(connection) => work(connection),
                none => work(none.insert(own.connect()?)),
            })
        });
        asked.await.map_err(|lost| failed(&lost))?.map_err(|error| failed(&error))
    }
}

pub fn list(notes: &Connection, limit: u32) -> Result<Vec<Note>> {
    let mut select = notes.prepare_cached("SELECT id, text FROM notes ORDER BY id LIMIT ?1")?;
    select.query_map([limit], read)?.collect()
}

pub fn add(notes: &Connection, new: &NewNote) -> Result<Note> {
    let mut insert =
        notes.prepare_cached("INSERT INTO notes (text) VALUES (?1) RETURNING id, text")?;
    insert.query_row([&new.text], read)
}

pub fn show(notes: &Connection, id: i64) -> Result<Option<Note>> {
    let mut select = notes.prepare_cached("SELECT id, text FROM notes WHERE id = ?1")?;
    select.query_row([id], read).optional()
}

pub fn remove(notes: &Connection, id: i64) -> Result<bool> {
    let mut delete = notes.prepare_cached("DELETE FROM notes WHERE id = ?1")?;
    Ok(delete.execute([id])? > 0)
}

fn read(row: &Row<'_>) -> Result<Note> {
    Ok(Note { id: row.get(0)?, text: row.get(1)? })
}
