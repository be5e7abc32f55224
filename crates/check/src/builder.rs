//! Histories made by hand, or recorded from another system.

use crate::ordered::within;
use hotrow_core::Reason;
use hotrow_core::history::{Ended, Event, History, KeyName, ReadKind, WorkerEvents, WriteKind};
use std::ops::Bound;

/// Builder of a history, step by step, in the order in which the events happened.
///
/// It keeps the counter for versions and stamps, and the latest version of each key, as a store with one version
/// per key would: [`read`](Self::read) returns this version and [`write`](Self::write) replaces it. Use
/// [`event`](Self::event) to record what such a store would not do.
///
/// ```
/// use hotrow_check::{AnomalyKind, HistoryBuilder, check};
///
/// let mut history = HistoryBuilder::new("mine");
/// let accounts = history.object("accounts");
/// let account = history.key(accounts, &[7], "7");
/// let (one, other) = (history.begin(1), history.begin(2));
/// history.read(one, account);
/// history.read(other, account);
/// history.write(one, account);
/// history.write(other, account);
/// history.commit(one);
/// history.commit(other);
/// let report = check(&history.finish())?;
/// assert!(!report.serializable);
/// assert_eq!(report.anomalies[0].kind, AnomalyKind::LostUpdate);
/// # Ok::<(), hotrow_check::Malformed>(())
/// ```
#[derive(Debug)]
pub struct HistoryBuilder {
    history: History,
    /// Next number of the counter.
    next: u64,
    /// Latest version of each key, and true if the key is present.
    states: Vec<(u64, bool)>,
}

/// An attempt of a history under construction. It stands for its worker's latest attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptInProgress {
    list: usize,
}

impl HistoryBuilder {
    /// Makes an empty, complete history of a protocol that claims to be strict and does not claim to be opaque.
    pub fn new(protocol: &str) -> Self {
        let history =
            History { protocol: protocol.to_owned(), strict: true, complete: true, ..History::default() };
        HistoryBuilder { history, next: 1, states: Vec::new() }
    }

    /// Declares that not all attempts are recorded.
    pub fn incomplete(&mut self) {
        self.history.complete = false;
    }

    /// Declares that the protocol claims to be opaque.
    pub fn claim_opacity(&mut self) {
        self.history.opaque = true;
    }

    /// Adds an object and returns its number.
    pub fn object(&mut self, name: &str) -> u32 {
        self.history.objects.push(name.to_owned());
        self.history.objects.len() as u32 - 1
    }

    /// Adds a key that is present from the beginning, and returns its number. `order` must differ between the keys
    /// of an object; range reads compare it.
    pub fn key(&mut self, object: u32, order: &[u8], text: &str) -> u32 {
        self.states.push((0, true));
        self.history.keys.push(KeyName { object, order, text: text.as_bytes() })
    }

    /// Adds a key that is absent at the beginning, and returns its number.
    pub fn absent_key(&mut self, object: u32, order: &[u8], text: &str) -> u32 {
        let key = self.key(object, order, text);
        self.states[key as usize].1 = false;
        key
    }

    /// Returns the value of the counter: the next number to be taken.
    pub fn now(&self) -> u64 {
        self.next
    }

    /// Takes a number from the counter.
    pub fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Begins an attempt of a worker. If the worker's earlier attempt has not ended, it stays unfinished.
    pub fn begin(&mut self, worker: u32) -> AttemptInProgress {
        let lists = &mut self.history.workers;
        let list = lists.iter().position(|list| list.worker == worker).unwrap_or_else(|| {
            lists.push(WorkerEvents { worker, bytes: Vec::new() });
            lists.len() - 1
        });
        let attempt = AttemptInProgress { list };
        self.event(attempt, Event::Begin { attempt: 0, stamp: self.next });
        attempt
    }

    /// Records the given event.
    pub fn event(&mut self, attempt: AttemptInProgress, event: Event<'_>) {
        event.encode(&mut self.history.workers[attempt.list].bytes);
    }

    /// Reads the latest version of a key, or its absence, in the attempt. Returns the version.
    ///
    /// # Panics
    ///
    /// If there is no such key; the same holds for the other methods with a key.
    pub fn read(&mut self, attempt: AttemptInProgress, key: u32) -> u64 {
        let (version, there) = self.states[key as usize];
        let kind = if there { ReadKind::Value } else { ReadKind::Absent };
        self.event(attempt, Event::Read { key, version, kind });
        version
    }

    /// Reads a given version of a key in the attempt.
    pub fn read_version(&mut self, attempt: AttemptInProgress, key: u32, version: u64) {
        self.event(attempt, Event::Read { key, version, kind: ReadKind::Value });
    }

    /// Reads all keys of an object between two bounds in the attempt: those that are present, and the absence of
    /// others.
    pub fn scan(&mut self, attempt: AttemptInProgress, object: u32, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        let now = self.next;
        self.event(attempt, Event::Range { object, low, high, from: now, to: now });
        for key in 0..self.states.len() as u32 {
            let name = self.history.keys.get(key).expect("each state is a key's");
            let found = name.object == object && within(name.order, low, high);
            if found && self.states[key as usize].1 {
                self.read(attempt, key);
            }
        }
    }

    /// Assigns the attempt's next events to the operation at this place of its program.
    pub fn operation(&mut self, attempt: AttemptInProgress, place: u32) {
        self.event(attempt, Event::Operation { place });
    }

    /// Reads the attempt's own change of a key.
    pub fn own_read(&mut self, attempt: AttemptInProgress, key: u32) {
        self.event(attempt, Event::OwnRead { key });
    }

    /// Changes a key in the attempt, without installing a version yet.
    pub fn change(&mut self, attempt: AttemptInProgress, key: u32) {
        self.event(attempt, Event::Change { key });
    }

    /// Replaces the latest version of a key by a new one, which it returns.
    pub fn write(&mut self, attempt: AttemptInProgress, key: u32) -> u64 {
        self.install(attempt, key, WriteKind::Update)
    }

    /// As [`write`](Self::write), by a change that commutes.
    pub fn commute(&mut self, attempt: AttemptInProgress, key: u32) -> u64 {
        self.install(attempt, key, WriteKind::Commute)
    }

    /// Inserts a key. Returns the version.
    pub fn insert(&mut self, attempt: AttemptInProgress, key: u32) -> u64 {
        self.install(attempt, key, WriteKind::Insert)
    }

    /// Deletes a key. Returns the version.
    pub fn delete(&mut self, attempt: AttemptInProgress, key: u32) -> u64 {
        self.install(attempt, key, WriteKind::Delete)
    }

    fn install(&mut self, attempt: AttemptInProgress, key: u32, kind: WriteKind) -> u64 {
        let version = self.take_number();
        let state = (version, kind != WriteKind::Delete);
        let (replaced, _) = std::mem::replace(&mut self.states[key as usize], state);
        self.event(attempt, Event::Write { key, replaced, version, kind });
        version
    }

    fn end(&mut self, attempt: AttemptInProgress, outcome: Ended) {
        let stamp = self.take_number();
        self.event(attempt, Event::End { outcome, stamp });
    }

    /// Ends the attempt with a commit.
    pub fn commit(&mut self, attempt: AttemptInProgress) {
        self.end(attempt, Ended::Committed);
    }

    /// Ends the attempt as lost to a conflict.
    pub fn abort(&mut self, attempt: AttemptInProgress) {
        self.end(attempt, Ended::Aborted(Reason::ReadChanged));
    }

    /// Ends the attempt with a rollback that its body asked for.
    pub fn roll_back(&mut self, attempt: AttemptInProgress) {
        self.end(attempt, Ended::RolledBack);
    }

    /// Returns the history.
    pub fn finish(self) -> History {
        self.history
    }
}
