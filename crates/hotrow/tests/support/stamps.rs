//! Stamps of commits, noted by a double of the steps between the halves, and judged by what the commits have seen.

use hotrow::sync::{Arc, Mutex, lock};
use hotrow::{CommitStamp, CommitSteps, Committing, Engine, Protocol, TBox, TCounter, Worker};
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

/// A number that half of the workers change, while one copies it, and one tests whether it is odd, by a predicate.
pub(crate) struct Chain<P: Protocol> {
    pub(crate) engine: Engine<P>,
    hot: TBox<u64, P>,
    /// 1 if the number is odd.
    odd: TCounter<P>,
    copies: Vec<TBox<u64, P>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Changes,
    Copies,
    Tests,
}

/// The values that a worker's transactions have seen, in their order: the number, or 1 if it was odd.
pub(crate) struct Seen {
    worker: u32,
    role: Role,
    numbers: Vec<u64>,
}

impl<P: Protocol> Chain<P> {
    pub(crate) fn on(engine: Engine<P>) -> Self {
        let (hot, odd) = (TBox::new(&engine, 0), TCounter::new(&engine, 0));
        let copies = (0..4).map(|_| TBox::new(&engine, 0)).collect();
        Self { engine, hot, odd, copies }
    }

    /// Runs so many transactions of one of four workers.
    pub(crate) fn run(&self, number: usize, worker: &mut Worker<P>, rounds: usize) -> Seen {
        let role = [Role::Changes, Role::Copies, Role::Changes, Role::Tests][number];
        let round = |_| {
            let seen = worker.transact(|tx| {
                if role == Role::Tests {
                    let is_odd = self.odd.is_at_least(tx, 1)?.into();
                    return self.copies[number].set(tx, is_odd).map(|()| is_odd);
                }
                let seen = self.hot.get(tx)?;
                if role == Role::Changes {
                    self.hot.set(tx, seen + 1)?;
                    self.odd.set(tx, (seen as i64 + 1) % 2)?;
                } else {
                    self.copies[number].set(tx, seen)?;
                }
                Ok(seen)
            });
            seen.unwrap()
        };
        let numbers = (0..rounds).map(round).collect();
        Seen { worker: worker.id().number(), role, numbers }
    }
}

/// Checks that *if one transaction must come after another, its stamp is larger*: changes in their order, whoever has copied a number
/// between its change and the next, and whoever has tested it where the test is right.
pub(crate) fn judge(notes: &[Note], seen: &[Seen]) -> Result<(), &'static str> {
    let mut stamps: HashMap<u32, Vec<CommitStamp>> = HashMap::new();
    for note in notes.iter().filter(|note| note.step == "install") {
        stamps.entry(note.worker).or_default().push(note.stamp);
    }
    let of = |role| seen.iter().filter(move |seen| seen.role == role);
    let stamped = |seen: &Seen| {
        let stamps = stamps.get(&seen.worker).cloned().unwrap_or_default();
        assert_eq!(stamps.len(), seen.numbers.len(), "one stamp for each commit");
        seen.numbers.iter().map(|number| *number as usize).zip(stamps).collect::<Vec<_>>()
    };
    // The stamps of those who changed the number, by what it was before.
    let mut changes: Vec<Option<CommitStamp>> =
        vec![None; of(Role::Changes).map(|seen| seen.numbers.len()).sum()];
    for (before, stamp) in of(Role::Changes).flat_map(stamped) {
        assert_eq!(changes[before].replace(stamp), None);
    }
    if !changes.is_sorted() {
        return Err("changes of one number are not stamped in their order");
    }
    for (is_odd, stamp) in of(Role::Tests).flat_map(stamped) {
        let before = changes.partition_point(|change| *change < Some(stamp));
        if is_odd != before % 2 {
            return Err("a test is not right where its stamp is");
        }
    }
    for (number, stamp) in of(Role::Copies).flat_map(stamped) {
        let before = number.checked_sub(1).and_then(|before| changes[before]);
        if before >= Some(stamp) {
            return Err("a copy does not come after the change that it has seen");
        }
        if changes.get(number).copied().flatten().is_some_and(|next| next <= stamp) {
            return Err("a copy does not come before the change after the one that it has seen");
        }
    }
    Ok(())
}
