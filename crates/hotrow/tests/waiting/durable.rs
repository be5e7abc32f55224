//! Waiting, tasks and hooks where commits are logged.

use crate::executor::{Executor, block_on};
use crate::support::{chosen, for_each_protocol};
use hotrow::durable::storage::{Fault, Faulty};
use hotrow::durable::{DurableBuilder, DurableDatabase, LogOptions, Mode};
use hotrow::sync::thread;
use hotrow::sync::{Arc, Mutex, lock};
use hotrow::{Database, Error, Protocol};

fn open<P: Protocol>(storage: Arc<Faulty>) -> Database<P> {
    let options = LogOptions { mode: Mode::Group, ..LogOptions::default() };
    let builder = Database::builder().typed::<P>().variant(chosen());
    builder.log(options).open_in(storage).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_durable_commit_wakes_a_call_and_a_task_whose_own_commits_are_durable_when_they_end() {
    for_each_protocol!(4, |P| {
        let storage = Arc::new(Faulty::new(7));
        let db = open::<P>(storage.clone());
        let number = Arc::new(db.durable_box("number", 0u64).unwrap());
        let said = Arc::new(Mutex::new(Vec::new()));
        let executor = Executor::default();
        for task in 0..4u64 {
            let (engine, number, said) = ((*db).clone(), number.clone(), said.clone());
            executor.spawn(async move {
                let next = engine.transact_async(|tx| {
                    for (word, on_commit) in [("committed", true), ("durable", false)] {
                        let said = said.clone();
                        let hook = move || lock(&said).push((task, word));
                        if on_commit { tx.on_commit(hook) } else { tx.on_durable(hook) }
                    }
                    if number.get(tx)? != task {
                        return tx.retry();
                    }
                    number.set(tx, task + 1)
                });
                next.await.unwrap();
                lock(&said).push((task, "told"));
            });
        }
        thread::scope(|scope| {
            scope.spawn(|| executor.run(2));
            // Waits as a call.
            let last = db.transact(|tx| match number.get(tx)? {
                4 => number.set(tx, 5),
                _ => tx.retry(),
            });
            last.unwrap();
        });
        let said = lock(&said).clone();
        for task in 0..4 {
            let words: Vec<_> =
                said.iter().filter(|(other, _)| *other == task).map(|(_, word)| *word).collect();
            assert_eq!(words, ["committed", "durable", "told"]);
        }
        drop((number, db));
        let db = open::<P>(Arc::new(storage.power_loss(1)));
        let number = db.durable_box("number", 0u64).unwrap();
        assert_eq!(db.transact(|tx| number.get(tx)), Ok(5));
    });
}

#[test]
fn a_task_whose_log_fails_has_committed_and_is_not_durable() {
    for_each_protocol!(2, |P| {
        let storage = Arc::new(Faulty::new(8));
        let db = open::<P>(storage.clone());
        let number = db.durable_box("number", 0u64).unwrap();
        block_on(db.transact_async(|tx| number.set(tx, 1))).unwrap();
        storage.plan(storage.operations() + 1, Fault::Broken);
        let said = Arc::new(Mutex::new(Vec::new()));
        // The log writes by itself, too, so some commits may be durable before it fails.
        let failure = (2..1_000).find_map(|round| {
            lock(&said).clear();
            let ended = block_on(db.transact_async(|tx| {
                for (word, on_commit) in [("committed", true), ("durable", false)] {
                    let said = said.clone();
                    let hook = move || lock(&said).push(word);
                    if on_commit { tx.on_commit(hook) } else { tx.on_durable(hook) }
                }
                number.set(tx, round)
            }));
            match ended {
                Ok(()) => {
                    assert_eq!(*lock(&said), ["committed", "durable"]);
                    None
                }
                Err(Error::NotDurable(failure)) => Some(failure),
                Err(error) => panic!("{error}"),
            }
        });
        let failure = failure.expect("the log has failed");
        let words: &[_] = if failure.has_committed { &["committed"] } else { &[] };
        assert_eq!(*lock(&said), words);
        // The next one is refused before it begins.
        let refused = block_on(db.transact_async(|tx| number.set(tx, 3)));
        let Err(Error::NotDurable(failure)) = refused else { panic!("{refused:?}") };
        assert!(!failure.has_committed);
    });
}

#[test]
fn no_two_durable_transactions_draw_the_same_number_of_a_durable_sequence() {
    for_each_protocol!(3, |P| {
        let mut storage = Arc::new(Faulty::new(9));
        for round in 0..4 {
            let db = open::<P>(storage.clone());
            let numbers = db.durable_sequence("numbers", 100).unwrap();
            let rows = db.table::<u64, u64>("rows").create_or_open().unwrap();
            assert!(db.table::<u64, u64>("rows").create().is_err());
            assert_eq!(db.table::<u64, u64>("rows").create_or_open().unwrap().name(), rows.name());
            if round == 2 {
                db.checkpoint().unwrap();
            }
            let lost = thread::scope(|scope| {
                let threads: Vec<_> = (0..2)
                    .map(|_| {
                        scope.spawn(|| {
                            for _ in 0..700 {
                                let drawn = db.transact_with_ticket(|tx| {
                                    let number = numbers.next(tx);
                                    rows.insert(tx, number, round).map(|()| number)
                                });
                                assert!(drawn.unwrap().0 >= 100, "no other transaction has drawn it");
                            }
                        })
                    })
                    .collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
                storage.power_loss(round)
            });
            assert_eq!(numbers.name(), db.durable_sequence("numbers", 0).unwrap().name());
            assert!(db.durable_counter("numbers", 0).is_err());
            if round % 2 == 0 {
                storage = Arc::new(lost);
            }
        }
    });
}
