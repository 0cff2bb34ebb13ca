//! The list itself, independent of HTTP.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The maximum number of things to do, which are kept in memory.
const TODOS_MAX: usize = 10_000;

/// The maximum number of characters in a title.
const TITLE_MAX: usize = 1_000;

/// The maximum length of all titles together, in bytes.
const TITLES_BYTES_MAX: usize = 4 << 20;

/// Things to do, by number.
#[derive(Default)]
pub(crate) struct Todos {
    todos: BTreeMap<u64, Todo>,
    titles_bytes: usize,
    last: u64,
}

struct Todo {
    title: String,
    completed: bool,
    /// Its position on the page.
    order: Option<i64>,
}

/// Why a change was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// There is none with this number.
    Unknown,
    /// The request does not describe a valid change.
    Malformed,
    /// There are too many, or their titles are too long together.
    Full,
}

impl Todos {
    pub(crate) fn new() -> Todos {
        Todos::default()
    }

    /// Returns the list. Here and in the other methods, `base` is the URL of the items, without
    /// their number.
    pub(crate) fn list(&self, base: &str) -> Value {
        self.todos.iter().map(|(id, todo)| todo.show(*id, base)).collect()
    }

    pub(crate) fn get(&self, id: u64, base: &str) -> Result<Value, Refusal> {
        self.todos.get(&id).map(|todo| todo.show(id, base)).ok_or(Refusal::Unknown)
    }

    /// Adds an item and returns it, with its number.
    pub(crate) fn add(&mut self, wanted: &Value, base: &str) -> Result<Value, Refusal> {
        if self.todos.len() >= TODOS_MAX {
            return Err(Refusal::Full);
        }
        let mut todo = Todo { title: String::new(), completed: false, order: None };
        let room = TITLES_BYTES_MAX - self.titles_bytes;
        todo.change(wanted, room)?;
        if todo.title.is_empty() {
            return Err(Refusal::Malformed);
        }
        self.last += 1;
        self.titles_bytes += todo.title.len();
        let shown = todo.show(self.last, base);
        self.todos.insert(self.last, todo);
        Ok(shown)
    }

    pub(crate) fn change(&mut self, id: u64, wanted: &Value, base: &str) -> Result<Value, Refusal> {
        let todo = self.todos.get_mut(&id).ok_or(Refusal::Unknown)?;
        let others = self.titles_bytes - todo.title.len();
        todo.change(wanted, TITLES_BYTES_MAX - others)?;
        self.titles_bytes = others + todo.title.len();
        Ok(todo.show(id, base))
    }

    pub(crate) fn remove(&mut self, id: u64) -> Result<(), Refusal> {
        let todo = self.todos.remove(&id).ok_or(Refusal::Unknown)?;
        self.titles_bytes -= todo.title.len();
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.todos.clear();
        self.titles_bytes = 0;
    }
}

impl Todo {
    fn show(&self, id: u64, base: &str) -> Value {
        let url = format!("{base}{id}");
        let mut shown =
            json!({ "id": id, "title": self.title, "completed": self.completed, "url": url });
        if let Some(order) = self.order {
            shown["order"] = order.into();
        }
        shown
    }

    /// Applies a change completely or not at all. There is room for a title of `room` bytes.
    fn change(&mut self, wanted: &Value, room: usize) -> Result<(), Refusal> {
        let wanted = wanted.as_object().ok_or(Refusal::Malformed)?;
        let title = match wanted.get("title") {
            None => None,
            Some(Value::String(title))
                if !title.is_empty() && title.chars().count() <= TITLE_MAX =>
            {
                Some(title)
            }
            Some(_) => return Err(Refusal::Malformed),
        };
        let completed = match wanted.get("completed") {
            None => None,
            Some(Value::Bool(completed)) => Some(*completed),
            Some(_) => return Err(Refusal::Malformed),
        };
        let order = match wanted.get("order") {
            None => None,
            Some(order) => Some(order.as_i64().ok_or(Refusal::Malformed)?),
        };
        if title.is_some_and(|title| title.len() > room) {
            return Err(Refusal::Full);
        }
        if let Some(title) = title {
            self.title.clone_from(title);
        }
        self.completed = completed.unwrap_or(self.completed);
        self.order = order.or(self.order);
        Ok(())
    }
}
