//! Stamps of commits, noted by a double of the steps between the halves, and judged by what the commits have seen.

use hotrow::sync::{Arc, Mutex, lock};
use hotrow::{CommitStamp, CommitSteps, Committing, Engine, Protocol, TBox, Worker};
use std::collections::HashMap;

/// A double of the steps, which write down that they were called.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<Note>>>);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    pub(crate) step: &'static str,
    worker: u32,
    pub(crate) stamp: CommitStamp,
    pub(crate) writes: usize,
}

impl Notes {
    fn note<P: Protocol>(&self, step: &'static str, commit: &Committing<'_, P>) {
        let (worker, stamp, writes) = (commit.worker().number(), commit.stamp(), commit.writes().count());
        lock(&self.0).push(Note { step, worker, stamp, writes });
    }

    pub(crate) fn take(&self) -> Vec<Note> {
        std::mem::take(&mut lock(&self.0))
    }
}

impl<P: Protocol> CommitSteps<P> for Notes {
    fn before_commit(&self, commit: &Committing<'_, P>) {
        self.note("before commit", commit);
    }

    fn will_install(&self, commit: &Committing<'_, P>) {
        self.note("install", commit);
    }
}

/// A number that half of the workers change, while the others copy it.
pub(crate) struct Chain<P: Protocol> {
    pub(crate) engine: Engine<P>,
    hot: TBox<u64, P>,
    copies: Vec<TBox<u64, P>>,
}

/// The numbers that a worker's transactions have seen, in their order.
pub(crate) struct Seen {
    worker: u32,
    changes: bool,
    numbers: Vec<u64>,
}

impl<P: Protocol> Chain<P> {
    pub(crate) fn on(engine: Engine<P>) -> Self {
        let hot = TBox::new(&engine, 0);
        let copies = (0..4).map(|_| TBox::new(&engine, 0)).collect();
        Self { engine, hot, copies }
    }

    /// Runs so many transactions of one of four workers.
    pub(crate) fn run(&self, number: usize, worker: &mut Worker<P>, rounds: usize) -> Seen {
        let changes = number.is_multiple_of(2);
        let round = |_| {
            let seen = worker.transact(|tx| {
                let seen = self.hot.get(tx)?;
                match changes {
                    true => self.hot.set(tx, seen + 1)?,
                    false => self.copies[number].set(tx, seen)?,
                }
                Ok(seen)
            });
            seen.unwrap()
        };
        let numbers = (0..rounds).map(round).collect();
        Seen { worker: worker.id().number(), changes, numbers }
    }
}

/// Checks that *if one transaction must come after another, its stamp is larger*: changes in their order, and whoever has
/// copied a number between its change and the next.
pub(crate) fn judge<P: Protocol>(notes: &[Note], seen: Vec<Seen>) {
    let mut stamps: HashMap<u32, Vec<CommitStamp>> = HashMap::new();
    for note in notes.iter().filter(|note| note.step == "install") {
        stamps.entry(note.worker).or_default().push(note.stamp);
    }
    let (changed, copied): (Vec<_>, Vec<_>) = seen.into_iter().partition(|seen| seen.changes);
    let stamped = |seen: &Seen| {
        let stamps = stamps.get(&seen.worker).cloned().unwrap_or_default();
        assert_eq!(stamps.len(), seen.numbers.len(), "one stamp for each commit");
        seen.numbers.iter().map(|number| *number as usize).zip(stamps).collect::<Vec<_>>()
    };
    // The stamps of those who changed the number, by what it was before.
    let mut changes: Vec<Option<CommitStamp>> =
        vec![None; changed.iter().map(|seen| seen.numbers.len()).sum()];
    for (before, stamp) in changed.iter().flat_map(stamped) {
        assert_eq!(changes[before].replace(stamp), None);
    }
    assert!(changes.is_sorted(), "{}: changes of one number are stamped in their order", P::VARIANTS[0].name);
    for (number, stamp) in copied.iter().flat_map(stamped) {
        let before = number.checked_sub(1).and_then(|before| changes[before]);
        assert!(
            before < Some(stamp),
            "{}: a copy comes after the change that it has seen",
            P::VARIANTS[0].name
        );
        let next = changes.get(number).copied().flatten();
        assert!(next.is_none_or(|next| stamp < next), "{}: and before the next one", P::VARIANTS[0].name);
    }
}
