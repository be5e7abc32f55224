//! The activity of each connection of an instance, for `pg_stat_activity`.

use super::state::now;
use crate::outcome::BlockState;
use hotrow::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest text of a statement that is shown, in bytes: PostgreSQL's `track_activity_query_size`.
const TEXT_MAX: usize = 1_024;

/// The connections of an instance, by process.
#[derive(Default)]
pub(crate) struct Activities(Mutex<BTreeMap<i32, Arc<Activity>>>);

/// A connection.
pub(crate) struct Activity {
    pub(crate) process: i32,
    pub(crate) user: String,
    pub(crate) database: String,
    /// When it began: microseconds since 2000-01-01 UTC, as all times here.
    pub(crate) started: i64,
    moment: Mutex<Moment>,
}

/// The activity of a connection at a moment.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) state: &'static str,
    /// The statement that runs, or ran last.
    pub(crate) text: String,
    pub(crate) application: String,
    pub(crate) changed: i64,
    pub(crate) statement_started: i64,
    pub(crate) transaction_started: Option<i64>,
}

impl Activities {
    /// Adds a connection.
    pub(super) fn enter(
        &self,
        process: i32,
        user: &str,
        database: &str,
        application: String,
    ) -> Arc<Activity> {
        let started = now();
        let moment = Moment {
            state: "idle",
            text: String::new(),
            application,
            changed: started,
            statement_started: started,
            transaction_started: None,
        };
        let (user, database) = (user.to_owned(), database.to_owned());
        let activity = Arc::new(Activity { process, user, database, started, moment: Mutex::new(moment) });
        lock(&self.0).insert(process, activity.clone());
        activity
    }

    /// Removes a connection.
    pub(super) fn leave(&self, activity: &Arc<Activity>) {
        let mut all = lock(&self.0);
        if all.get(&activity.process).is_some_and(|known| Arc::ptr_eq(known, activity)) {
            all.remove(&activity.process);
        }
    }

    /// All connections, with what they do.
    pub(crate) fn all(&self) -> Vec<(Arc<Activity>, Moment)> {
        let all: Vec<_> = lock(&self.0).values().cloned().collect();
        all.into_iter().map(|activity| (activity.clone(), lock(&activity.moment).clone())).collect()
    }
}

impl Activity {
    /// A statement begins.
    pub(super) fn begin(&self, text: Option<&str>) {
        let mut moment = lock(&self.moment);
        let at = now();
        moment.state = "active";
        (moment.changed, moment.statement_started) = (at, at);
        moment.transaction_started.get_or_insert(at);
        if let Some(text) = text {
            moment.text.clear();
            let fits = |end: &usize| text.is_char_boundary(*end);
            let end = (0..=text.len().min(TEXT_MAX)).rev().find(fits).unwrap_or(0);
            moment.text.push_str(&text[..end]);
        }
    }

    /// The client has another name for itself.
    pub(super) fn rename(&self, application: String) {
        lock(&self.moment).application = application;
    }

    /// The statement has ended, and left a block in this state.
    pub(super) fn end(&self, state: BlockState) {
        let mut moment = lock(&self.moment);
        moment.changed = now();
        moment.state = match state {
            BlockState::Idle => "idle",
            BlockState::Open => "idle in transaction",
            BlockState::Failed => "idle in transaction (aborted)",
        };
        if state == BlockState::Idle {
            moment.transaction_started = None;
        }
    }
}
