//! The steps between the halves of a commit: when they are called, and in which order commits are stamped.

use crate::support;
use crate::support::stamps::{Chain, Notes, judge};
use crate::support::{chosen, for_each_protocol};
use hotrow::sync::thread;
use hotrow::{
    Abort, CommitStamp, CommitSteps, Committing, Database, Engine, Error, Protocol, RetryPolicy, TBox,
};

fn engine<P: Protocol>(steps: impl CommitSteps<P>) -> Engine<P> {
    let options = P::options(&chosen()).expect("called inside for_each_protocol!");
    Engine::with_commit_steps(&options, RetryPolicy::default(), steps)
}

#[test]
fn a_commit_that_writes_is_hooked_then_installed_with_one_stamp() {
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
            assert_eq!(steps, [("before commit", 2), ("install", 2)]);
            assert!(noted.iter().all(|note| note.stamp == noted[0].stamp));
            let stamp = noted[0].stamp;
            assert!(last.is_none_or(|last: CommitStamp| last < stamp && last.epoch() + 1 == stamp.epoch()));
            last = Some(stamp);
            engine.epoch_clock().advance();
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
        let builder = Database::on(&engine).table::<u64, u64>("rows");
        let (number, rows) = (TBox::new(&engine, 1), support::loaded(builder, [(1, 1)]));
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
const ROUNDS: usize = 200;

#[test]
fn a_commit_that_must_come_after_another_has_the_larger_stamp() {
    for_each_protocol!(4, |P| {
        let notes = Notes::default();
        let chain = Chain::on(engine::<P>(notes.clone()));
        // Made first: a worker that has gone leaves its number to the next.
        let mut workers: Vec<_> = (0..4).map(|_| chain.engine.worker().unwrap()).collect();
        let seen = thread::scope(|scope| {
            let chain = &chain;
            let workers = workers.iter_mut().enumerate();
            let started: Vec<_> = workers
                .map(|(thread, worker)| scope.spawn(move || chain.run(thread, worker, ROUNDS)))
                .collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        judge(&notes.take(), &seen).unwrap();
    });
}
