//! A subscriber that records spans and events.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use rotor_tracing::tracing::field::{Field, Visit};
use rotor_tracing::tracing::span::{Attributes, Id, Record};
use rotor_tracing::tracing::{Event, Subscriber, subscriber};

/// Runs tests one after the other. Whether a span is wanted is cached for all threads of the
/// process, by asking the thread that reaches the span first. A thread without a subscriber would
/// answer for one that has a subscriber.
pub(crate) fn serialize_tests() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The records, in order: `+ span`, `> span`, `< span`, `- span {fields}` and `span: event`.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    /// Calls `act` while this is the subscriber of the thread.
    pub(crate) fn collect(act: impl FnOnce(&Notes)) {
        let notes = Notes::default();
        let subscriber = Registry::default().with(notes.clone());
        subscriber::with_default(subscriber, || act(&notes));
    }

    /// The records since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panics with it"))
    }

    fn push(&self, line: String) {
        self.0.lock().expect("nobody panics with it").push(line);
    }
}

/// The fields of a span, sorted by name.
#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Each field once: a second value would be a second line in some output.
        let before = self.0.insert(field.name(), format!("{value:?}"));
        assert_eq!(before, None, "{field} twice");
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Notes {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).expect("it is there");
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
        self.push(format!("+ {}", span.name()));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).expect("it is there");
        let mut extensions = span.extensions_mut();
        values.record(extensions.get_mut::<Fields>().expect("put there when it was made"));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let scope = context.event_scope(event).into_iter().flatten();
        let spans: Vec<_> = scope.map(|span| span.name()).collect();
        self.push(format!("{}: {}", spans.join(" in "), fields.0["message"]));
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.push(format!("> {}", context.span(id).expect("it is there").name()));
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.push(format!("< {}", context.span(id).expect("it is there").name()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).expect("it is there");
        let extensions = span.extensions();
        let fields = &extensions.get::<Fields>().expect("put there when it was made").0;
        let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.push(format!("- {} {}", span.name(), fields.join(" ")));
    }
}
