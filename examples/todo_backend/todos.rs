//! The list itself. It knows nothing of HTTP.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Things that are kept at most: they are in memory.
const TODOS_MAX: usize = 10_000;

/// Characters of a title at most.
const TITLE_MAX: usize = 1_000;

/// Things to do, by number.
#[derive(Default)]
pub(crate) struct Todos {
    todos: BTreeMap<u64, Todo>,
    last: u64,
}

struct Todo {
    title: String,
    completed: bool,
}

/// Why a change was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// There is none of this number.
    Unknown,
    /// What was sent describes no change.
    Malformed,
    Full,
}

impl Todos {
    pub(crate) fn new() -> Todos {
        Todos::default()
    }

    pub(crate) fn list(&self) -> Value {
        self.todos.iter().map(|(id, todo)| todo.show(*id)).collect()
    }

    pub(crate) fn get(&self, id: u64) -> Result<Value, Refused> {
        self.todos.get(&id).map(|todo| todo.show(id)).ok_or(Refused::Unknown)
    }

    /// Adds one and shows it, with its number.
    pub(crate) fn add(&mut self, wanted: &Value) -> Result<Value, Refused> {
        if self.todos.len() >= TODOS_MAX {
            return Err(Refused::Full);
        }
        let mut todo = Todo { title: String::new(), completed: false };
        todo.change(wanted)?;
        if todo.title.is_empty() {
            return Err(Refused::Malformed);
        }
        self.last += 1;
        let shown = todo.show(self.last);
        self.todos.insert(self.last, todo);
        Ok(shown)
    }

    pub(crate) fn change(&mut self, id: u64, wanted: &Value) -> Result<Value, Refused> {
        let todo = self.todos.get_mut(&id).ok_or(Refused::Unknown)?;
        todo.change(wanted)?;
        Ok(todo.show(id))
    }

    pub(crate) fn remove(&mut self, id: u64) -> Result<(), Refused> {
        self.todos.remove(&id).map(drop).ok_or(Refused::Unknown)
    }

    pub(crate) fn clear(&mut self) {
        self.todos.clear();
    }
}

impl Todo {
    fn show(&self, id: u64) -> Value {
        json!({ "id": id, "title": self.title, "completed": self.completed, "url": format!("/todos/{id}") })
    }

    /// Makes the change whole or not at all.
    fn change(&mut self, wanted: &Value) -> Result<(), Refused> {
        let wanted = wanted.as_object().ok_or(Refused::Malformed)?;
        let title = match wanted.get("title") {
            None => None,
            Some(Value::String(title))
                if !title.is_empty() && title.chars().count() <= TITLE_MAX =>
            {
                Some(title)
            }
            Some(_) => return Err(Refused::Malformed),
        };
        let completed = match wanted.get("completed") {
            None => None,
            Some(Value::Bool(completed)) => Some(*completed),
            Some(_) => return Err(Refused::Malformed),
        };
        if let Some(title) = title {
            self.title.clone_from(title);
        }
        self.completed = completed.unwrap_or(self.completed);
        Ok(())
    }
}
