//! The notes, in SQLite: each thread has a connection of its own.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};

/// How long a thread waits for another one that writes.
const BUSY_TIME: Duration = Duration::from_secs(5);

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

/// A connection to the database.
pub(crate) struct Notes(Connection);

/// Makes the table where it is not there.
pub(crate) fn create(file: &Path) -> Result<(), rusqlite::Error> {
    let Notes(connection) = open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    )
}

fn open(file: &Path) -> Result<Notes, rusqlite::Error> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_TIME)?;
    Ok(Notes(connection))
}

/// Calls `work` with the connection of this thread.
pub(crate) fn with<T>(
    file: &Path,
    work: impl FnOnce(&Notes) -> Result<T, rusqlite::Error>,
) -> Result<T, rusqlite::Error> {
    thread_local! {
        static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
    }
    NOTES.with_borrow_mut(|notes| {
        let notes = match notes {
            Some(notes) => notes,
            none => none.insert(open(file)?),
        };
        work(notes)
    })
}

impl Notes {
    pub(crate) fn list(&self, limit: u32) -> Result<Vec<Note>, rusqlite::Error> {
        let mut select =
            self.0.prepare_cached("SELECT id, text FROM notes ORDER BY id LIMIT ?1")?;
        let notes = select.query_map([limit], read)?;
        notes.collect()
    }

    pub(crate) fn add(&self, new: &NewNote) -> Result<Note, rusqlite::Error> {
        let mut insert =
            self.0.prepare_cached("INSERT INTO notes (text) VALUES (?1) RETURNING id, text")?;
        insert.query_row([&new.text], read)
    }

    pub(crate) fn show(&self, id: i64) -> Result<Option<Note>, rusqlite::Error> {
        let mut select = self.0.prepare_cached("SELECT id, text FROM notes WHERE id = ?1")?;
        select.query_row([id], read).optional()
    }

    pub(crate) fn remove(&self, id: i64) -> Result<bool, rusqlite::Error> {
        let mut delete = self.0.prepare_cached("DELETE FROM notes WHERE id = ?1")?;
        Ok(delete.execute([id])? > 0)
    }
}

fn read(row: &Row<'_>) -> Result<Note, rusqlite::Error> {
    Ok(Note { id: row.get(0)?, text: row.get(1)? })
}
