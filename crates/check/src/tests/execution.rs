//! A store without concurrency control; its executions are recorded as a recorder would.
//!
//! Reads see installed versions. Writes are kept and installed at the end of a piece, the commit at the latest, one
//! after the other. One attempt at a time makes correct histories; interleaved attempts make all kinds of wrong ones.

use crate::{AttemptInProgress, HistoryBuilder};
use hotrow_core::history::{Event, History, ReadKind, WriteKind};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::Included;

/// Number of keys of the one object. Every other key is present at the beginning.
pub(super) const KEYS: u8 = 14;

/// An action of a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Read(u8),
    Write(u8),
    /// Changes a key that is present in a way that commutes, without reading it.
    Add(u8),
    Delete(u8),
    Scan(u8, u8),
    /// Ends a piece: installs the writes so far.
    Piece,
}

/// End of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Commit,
    Abort,
    RollBack,
    Never,
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (0..KEYS).prop_map(Action::Read),
        3 => (0..KEYS).prop_map(Action::Write),
        3 => (0..KEYS).prop_map(Action::Add),
        2 => (0..KEYS).prop_map(Action::Delete),
        2 => (0..KEYS, 0..KEYS).prop_map(|(a, b)| Action::Scan(a.min(b), a.max(b))),
        1 => Just(Action::Piece),
    ]
}

/// An action on one of two keys, so that there are long runs of additions.
pub(super) fn addition() -> impl Strategy<Value = Action> {
    let key = || (0..2u8).prop_map(|key| key * 2);
    prop_oneof![
        6 => key().prop_map(Action::Add),
        3 => key().prop_map(Action::Read),
        1 => key().prop_map(Action::Write),
        3 => Just(Action::Piece),
    ]
}

pub(super) fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        6 => Just(Ending::Commit),
        1 => Just(Ending::Abort),
        1 => Just(Ending::RollBack),
        1 => Just(Ending::Never),
    ]
}

pub(super) fn body(actions_max: usize) -> impl Strategy<Value = (Vec<Action>, Ending)> {
    (prop::collection::vec(action(), 1..=actions_max), ending())
}

/// A scan in progress: the keys that are left, and the stamp of its beginning.
struct Scan {
    next: u8,
    low: u8,
    high: u8,
    from: u64,
}

/// A transaction in progress.
pub(super) struct Running {
    attempt: AttemptInProgress,
    /// Writes to install, by key: true if the key is to be present.
    writes: BTreeMap<u8, bool>,
    /// Keys to be changed in a way that commutes.
    additions: BTreeSet<u8>,
    scan: Option<Scan>,
    /// True if it writes present keys without reading them. Only transactions that commit do: of the others, the
    /// checker knows the writes only by their reads.
    pub(super) blind: bool,
}

/// The store.
pub(super) struct Store {
    builder: HistoryBuilder,
    object: u32,
    /// Version of each key, and true if it is present.
    states: Vec<(u64, bool)>,
}

impl Store {
    pub(super) fn new() -> Self {
        let mut builder = HistoryBuilder::new("none at all");
        let object = builder.object("table");
        for key in 0..KEYS {
            builder.key(object, &[key], &key.to_string());
        }
        let states = (0..KEYS).map(|key| (0, key % 2 == 0)).collect();
        Store { builder, object, states }
    }

    pub(super) fn begin(&mut self, worker: u32) -> Running {
        Running {
            attempt: self.builder.begin(worker),
            writes: BTreeMap::new(),
            additions: BTreeSet::new(),
            scan: None,
            blind: false,
        }
    }

    fn see(&mut self, running: &mut Running, key: u8) -> bool {
        if let Some(there) = running.writes.get(&key) {
            return *there;
        }
        let (version, there) = self.states[key as usize];
        let kind = if there { ReadKind::Value } else { ReadKind::Absent };
        self.builder.event(running.attempt, Event::Read { key: key.into(), version, kind });
        there
    }

    /// Performs an action at once.
    pub(super) fn act(&mut self, running: &mut Running, action: Action) {
        match action {
            Action::Read(key) => {
                self.see(running, key);
            }
            // A blind write needs a present key; otherwise it is an insertion, which reads first.
            Action::Write(key) if running.blind && self.states[key as usize].1 => {
                running.writes.insert(key, true);
            }
            Action::Write(key) => {
                self.see(running, key);
                running.writes.insert(key, true);
            }
            Action::Add(key) if running.blind && self.states[key as usize].1 => {
                if !running.writes.contains_key(&key) {
                    running.additions.insert(key);
                }
            }
            Action::Add(key) => self.act(running, Action::Write(key)),
            Action::Delete(key) => {
                if self.see(running, key) {
                    running.writes.insert(key, false);
                }
            }
            Action::Scan(low, high) => {
                self.begin_scan(running, low, high);
                while self.step_scan(running) {}
            }
            // No other attempt installs anything before its end, when it is certain to commit.
            Action::Piece if running.blind => self.install(running),
            Action::Piece => {}
        }
    }

    pub(super) fn begin_scan(&mut self, running: &mut Running, low: u8, high: u8) {
        running.scan = Some(Scan { next: low, low, high, from: self.builder.now() });
    }

    /// Visits one more key. Returns false if there was no scan, or it has ended.
    pub(super) fn step_scan(&mut self, running: &mut Running) -> bool {
        let Some(mut scan) = running.scan.take() else { return false };
        if scan.next <= scan.high {
            let seen = running.writes.contains_key(&scan.next) || self.states[scan.next as usize].1;
            if seen {
                self.see(running, scan.next);
            }
            scan.next += 1;
            running.scan = Some(scan);
            return true;
        }
        let (low, high) = ([scan.low], [scan.high]);
        let (low, high, to) = (Included(&low[..]), Included(&high[..]), self.builder.now());
        let event = Event::Range { object: self.object, low, high, from: scan.from, to };
        self.builder.event(running.attempt, event);
        false
    }

    /// Installs the kept writes.
    pub(super) fn install(&mut self, running: &mut Running) {
        for key in std::mem::take(&mut running.additions) {
            let (replaced, there) = self.states[key as usize];
            // It may have become another kind of write, or the key may be gone.
            if there && !running.writes.contains_key(&key) {
                let (key, version, kind) = (u32::from(key), self.builder.take_number(), WriteKind::Commute);
                self.states[key as usize] = (version, true);
                self.builder.event(running.attempt, Event::Write { key, replaced, version, kind });
            }
        }
        for (key, wanted) in std::mem::take(&mut running.writes) {
            let (replaced, there) = self.states[key as usize];
            let kind = match (there, wanted) {
                (true, true) => WriteKind::Update,
                (false, true) => WriteKind::Insert,
                (true, false) => WriteKind::Delete,
                (false, false) => continue,
            };
            let version = self.builder.take_number();
            self.states[key as usize] = (version, wanted);
            self.builder.event(running.attempt, Event::Write { key: key.into(), replaced, version, kind });
        }
    }

    /// Ends a transaction. Installs its writes first if it commits.
    pub(super) fn end(&mut self, mut running: Running, ending: Ending) {
        match ending {
            Ending::Commit => {
                self.install(&mut running);
                self.builder.commit(running.attempt);
            }
            Ending::Abort => self.builder.abort(running.attempt),
            Ending::RollBack => self.builder.roll_back(running.attempt),
            Ending::Never => {}
        }
    }

    pub(super) fn finish(self) -> History {
        self.builder.finish()
    }
}

/// Makes a history with every event replaced by `map`.
pub(super) fn map_events<'a>(history: &'a History, mut map: impl FnMut(Event<'a>) -> Event<'a>) -> History {
    let mut mapped = history.clone();
    for (to, from) in mapped.workers.iter_mut().zip(&history.workers) {
        to.bytes.clear();
        from.events().for_each(|event| map(event.unwrap()).encode(&mut to.bytes));
    }
    mapped
}
