//! Events for `tracing`. A binary of its own: subscribers are found out once for all threads.

#[path = "observing/overtaken.rs"]
mod overtaken;

use overtaken::overtaken;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A subscriber that writes down the events.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("hotrow")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(format!("{} {}:", event.metadata().level(), event.metadata().target()));
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn lost_attempts_and_transactions_that_give_up_are_events() {
    let events = Events::default();
    let (_, lost) = tracing::subscriber::with_default(events.clone(), || overtaken(1));
    assert!(lost.is_err());
    let (_, committed) = tracing::subscriber::with_default(events.clone(), || overtaken(2));
    committed.unwrap();
    let said = events.0.lock().unwrap().clone();
    let attempt = "TRACE hotrow::attempt: message=attempt lost protocol=\"occ\" reason=\"read_changed\" \
                   object=\"price\" key=\"value\" attempts=1 loser=audit winner=buy";
    let gives_up = "WARN hotrow::transaction: message=transaction gives up protocol=\"occ\" conflict=a value \
                    that was read has changed: price[value], attempt 1 of audit, lost to buy";
    assert_eq!(said, [attempt, gives_up, attempt]);
}
