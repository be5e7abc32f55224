//! The steps between the halves of a commit: when they are called, and in which order commits are stamped.

use crate::support;
use crate::support::{chosen, for_each_protocol};
use hotrow::sync::{Arc, Mutex, lock, thread};
use hotrow::{
    Abort, CommitStamp, CommitSteps, Committing, Database, Engine, Error, Protocol, RetryPolicy, TBox, Worker,
};
use std::collections::HashMap;

/// A double of a log, a keeper of versions and a hook, which write down that they were called.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Note>>>);

#[derive(Debug, Clone, PartialEq)]
struct Note {
    step: &'static str,
    worker: u32,
    stamp: CommitStamp,
    writes: usize,
}

impl Notes {
    fn note<P: Protocol>(&self, step: &'static str, commit: &Committing<'_, P>) {
        let (worker, stamp, writes) = (commit.worker().number(), commit.stamp(), commit.writes().count());
        lock(&self.0).push(Note { step, worker, stamp, writes });
    }

    fn take(&self) -> Vec<Note> {
        std::mem::take(&mut lock(&self.0))
    }
}

impl<P: Protocol> CommitSteps<P> for Notes {
    fn log(&self, commit: &Committing<'_, P>) {
        self.note("log", commit);
    }

    fn keep_versions(&self, commit: &Committing<'_, P>) {
        self.note("keep versions", commit);
    }

    fn before_commit(&self, commit: &Committing<'_, P>) {
        self.note("before commit", commit);
    }
}

fn engine<P: Protocol>(steps: impl CommitSteps<P>) -> Engine<P> {
    let options = P::options(&chosen()).expect("called inside for_each_protocol!");
    Engine::with_commit_steps(&options, RetryPolicy::default(), steps)
}

#[test]
fn a_commit_that_writes_is_logged_then_kept_then_hooked_with_one_stamp() {
    for_each_protocol!(1, |P| {
        let notes = Notes::default();
        let engine = engine::<P>(notes.clone());
        let (number, rows) = (
            TBox::new(&engine, 1),
            Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap(),
        );
        let mut last = None;
        for round in 0..3 {
            engine.transact(|tx| number.set(tx, round).and_then(|()| rows.upsert(tx, 7, round))).unwrap();
            let noted = notes.take();
            let steps: Vec<_> = noted.iter().map(|note| (note.step, note.writes)).collect();
            assert_eq!(steps, [("log", 2), ("keep versions", 2), ("before commit", 2)]);
            assert!(noted.iter().all(|note| note.stamp == noted[0].stamp));
            assert!(last < Some(noted[0].stamp) && noted[0].stamp.epoch() == round);
            last = Some(noted[0].stamp);
            engine.advance_epoch();
        }
        engine.transact(|tx| number.get(tx)).unwrap();
        let rolled_back =
            engine.transact(|tx| number.set(tx, 9).and_then(|()| Err::<(), _>(Abort::rollback())));
        assert_eq!(rolled_back, Err(Error::Rollback(Abort::rollback())));
        assert_eq!(notes.take(), [], "neither a read nor a rollback is a commit that writes");
    });
}

/// Panics between the halves.
struct Exploding;

impl<P: Protocol> CommitSteps<P> for Exploding {
    fn before_commit(&self, _commit: &Committing<'_, P>) {
        panic!("between the halves");
    }
}

#[test]
fn nothing_is_installed_before_the_steps_have_run() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>(Exploding);
        let (number, rows) =
            (TBox::new(&engine, 1), Database::on(&engine).table::<u64, u64>("rows").create().unwrap());
        rows.bulk_insert(1, 1);
        for _ in 0..2 {
            let words = support::panic_of(|| {
                engine.transact(|tx| {
                    number.set(tx, 2)?;
                    rows.insert_if_absent(tx, 0, 0)?;
                    rows.delete(tx, &1)
                })
            });
            assert_eq!(words, "between the halves");
            let seen = support::elsewhere(|| {
                engine.transact(|tx| Ok((number.get(tx)?, rows.get(tx, &0)?, rows.get(tx, &1)?)))
            });
            assert_eq!(seen, Ok((1, None, Some(1))));
        }
    });
}

/// Transactions of each thread.
const ROUNDS: u64 = 200;

#[test]
fn a_commit_that_must_come_after_another_has_the_larger_stamp() {
    for_each_protocol!(4, |P| {
        let notes = Notes::default();
        let engine = engine::<P>(notes.clone());
        let hot = TBox::new(&engine, 0u64);
        let copies: Vec<_> = (0..4).map(|_| TBox::new(&engine, 0u64)).collect();
        // Half of the threads change the number, the others copy it. Workers are made first: one that has gone leaves its
        // number to the next.
        let mut workers: Vec<_> = (0..4).map(|_| engine.worker().unwrap()).collect();
        let work = |thread: usize, worker: &mut Worker<P>| {
            let mut seen = Vec::new();
            for _ in 0..ROUNDS {
                let before = worker.transact(|tx| {
                    let before = hot.get(tx)?;
                    match thread % 2 {
                        0 => hot.set(tx, before + 1)?,
                        _ => copies[thread].set(tx, before)?,
                    }
                    Ok(before)
                });
                seen.push(before.unwrap());
            }
            (worker.id().number(), thread.is_multiple_of(2), seen)
        };
        let seen: Vec<_> = thread::scope(|scope| {
            let work = &work;
            let workers = workers.iter_mut().enumerate();
            let started: Vec<_> =
                workers.map(|(thread, worker)| scope.spawn(move || work(thread, worker))).collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut stamps: HashMap<u32, Vec<CommitStamp>> = HashMap::new();
        for note in notes.take().iter().filter(|note| note.step == "log") {
            stamps.entry(note.worker).or_default().push(note.stamp);
        }
        // The stamps of those who changed the number, by what it was before.
        let mut changes = vec![None; 2 * ROUNDS as usize];
        for (worker, _, seen) in seen.iter().filter(|(_, changes, _)| *changes) {
            for (before, stamp) in seen.iter().zip(&stamps[worker]) {
                assert_eq!(changes[*before as usize].replace(*stamp), None);
            }
        }
        assert!(changes.is_sorted(), "changes of one number are stamped in their order");
        if !P::STRICT {
            return;
        }
        for (worker, _, seen) in seen.iter().filter(|(_, changes, _)| !*changes) {
            for (before, stamp) in seen.iter().zip(&stamps[worker]) {
                let (before, stamp) = (*before as usize, Some(*stamp));
                assert!(
                    before == 0 || changes[before - 1] < stamp,
                    "whoever has read a change comes after it"
                );
                let next = changes.get(before).filter(|next| next.is_some());
                assert!(next.is_none_or(|next| stamp < *next), "and before the next one");
            }
        }
    });
}
