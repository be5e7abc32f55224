//! Changes that are made at the commit: to boxes, arrays and rows.

use crate::support::steps::judge;
use crate::support::{self, Census, attempts, for_each_concurrent_protocol, for_each_protocol, on_threads};
use hotrow::sync::random::Random;
use hotrow::{
    Abort, Column, Database, Engine, Error, Protocol, TArray, TBox, Table, Transaction, Value, column_of,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
struct Stock {
    left: u32,
    sold: u32,
    /// Not aligned to a word.
    best: i16,
    flags: u16,
    last: u32,
}

fn stock(left: u32) -> Stock {
    Stock { left, sold: 0, best: -7, flags: 0, last: 0 }
}

/// The same number in every kind of place.
struct Places<P: Protocol> {
    number: TBox<u64, P>,
    numbers: TArray<u64, P>,
    rows: Table<u64, u64, P>,
    ordered: Table<u64, u64, P>,
}

/// How many there are.
const PLACES: usize = 4;

impl<P: Protocol> Places<P> {
    fn new(engine: &Engine<P>, value: u64) -> Self {
        let builder = || Database::on(engine).table::<u64, u64>("rows");
        let places = Self {
            number: TBox::new(engine, value),
            numbers: TArray::new(engine, 2, |_| value),
            rows: builder().hash(4).create().unwrap(),
            ordered: builder().create().unwrap(),
        };
        for table in [&places.rows, &places.ordered] {
            table.bulk_insert([(1, value)]).unwrap();
        }
        places
    }

    fn get(&self, tx: &mut Transaction<'_, P>, place: usize) -> Result<u64, Abort> {
        match place {
            0 => self.number.get(tx),
            1 => self.numbers.get(tx, 1),
            2 => Ok(self.rows.get(tx, &1)?.unwrap()),
            _ => Ok(self.ordered.get(tx, &1)?.unwrap()),
        }
    }

    fn set(&self, tx: &mut Transaction<'_, P>, place: usize, value: u64) -> Result<(), Abort> {
        match place {
            0 => self.number.set(tx, value),
            1 => self.numbers.set(tx, 1, value),
            2 => self.rows.replace(tx, &1, value),
            _ => self.ordered.replace(tx, &1, value),
        }
    }

    fn add(&self, tx: &mut Transaction<'_, P>, place: usize, amount: u64) -> Result<(), Abort> {
        match place {
            0 => self.number.add(tx, amount),
            1 => self.numbers.add(tx, 1, amount),
            2 => self.rows.add(tx, &1, Column::whole(), amount),
            _ => self.ordered.add(tx, &1, Column::whole(), amount),
        }
    }

    fn take(&self, tx: &mut Transaction<'_, P>, place: usize, amount: u64) -> Result<bool, Abort> {
        match place {
            0 => self.number.subtract_if_enough(tx, amount),
            1 => self.numbers.subtract_if_enough(tx, 1, amount),
            2 => self.rows.subtract_if_enough(tx, &1, Column::whole(), amount),
            _ => self.ordered.subtract_if_enough(tx, &1, Column::whole(), amount),
        }
    }

    fn double(&self, tx: &mut Transaction<'_, P>, place: usize) -> Result<(), Abort> {
        let double = |value: &mut u64| *value = value.wrapping_mul(2);
        match place {
            0 => self.number.apply(tx, double),
            1 => self.numbers.apply(tx, 1, double),
            2 => self.rows.apply(tx, &1, double),
            _ => self.ordered.apply(tx, &1, double),
        }
    }

    fn max(&self, tx: &mut Transaction<'_, P>, place: usize, value: u64) -> Result<(), Abort> {
        match place {
            0 => self.number.max(tx, value),
            1 => self.numbers.max(tx, 1, value),
            2 => self.rows.max(tx, &1, Column::whole(), value),
            _ => self.ordered.max(tx, &1, Column::whole(), value),
        }
    }

    fn min(&self, tx: &mut Transaction<'_, P>, place: usize, value: u64) -> Result<(), Abort> {
        match place {
            0 => self.number.min(tx, value),
            1 => self.numbers.min(tx, 1, value),
            2 => self.rows.min(tx, &1, Column::whole(), value),
            _ => self.ordered.min(tx, &1, Column::whole(), value),
        }
    }
}

/// True if the variant never holds a writer off for as long as another attempt is in progress.
fn never_waits() -> bool {
    ["occ", "tl2", "tictoc"].contains(&support::chosen().as_str())
}

#[test]
fn changes_at_the_commit_never_abort_each_other() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let places = Places::new(&engine, 100);
        for place in 0..PLACES {
            let made = attempts(&engine, |tx| places.add(tx, place, 3), |tx| places.double(tx, place));
            assert!(made.is_none_or(|made| made == 1), "{made:?}");
            assert!(made.is_some() || !never_waits());
            let expected = if made.is_some() { 203 } else { 103 };
            assert_eq!(engine.transact(|tx| places.get(tx, place)), Ok(expected));
            // As long as enough is left, nobody's subtraction is in the way.
            let take = |tx: &mut Transaction<'_, P>| places.take(tx, place, 50).map(|taken| assert!(taken));
            let made = attempts(&engine, take, take);
            assert!(made.is_none_or(|made| made == 1), "{made:?}");
            let left = expected - if made.is_some() { 100 } else { 50 };
            assert_eq!(engine.transact(|tx| places.get(tx, place)), Ok(left));
        }
    });
}

#[test]
fn a_subtraction_is_made_again_when_others_have_left_too_little() {
    for_each_concurrent_protocol!(2, |P| {
        for place in 0..PLACES {
            let engine = support::impatient::<P>();
            let (places, note) = (Places::new(&engine, 10), TBox::new(&engine, 0u32));
            let mut taken = Vec::new();
            let made = attempts(
                &engine,
                |tx| {
                    taken.push(places.take(tx, place, 6)?);
                    note.set(tx, 1)
                },
                |tx| places.take(tx, place, 5).map(|taken| assert!(taken)),
            );
            let left = engine.transact(|tx| places.get(tx, place));
            match made {
                None => assert_eq!((taken, left), (vec![true], Ok(4))),
                Some(made) => {
                    assert!(made >= 2);
                    assert_eq!((taken[0], taken.last(), left), (true, Some(&false), Ok(5)));
                }
            }
        }
    });
}

#[test]
fn what_a_body_has_learned_counts_though_its_subtraction_is_undone_or_overwritten() {
    for_each_concurrent_protocol!(2, |P| {
        for place in 0..PLACES {
            for in_part in [false, true] {
                let engine = support::impatient::<P>();
                let (places, note) = (Places::new(&engine, 10), TBox::new(&engine, None));
                let mut bodies = 0;
                let body = |tx: &mut Transaction<'_, P>| {
                    bodies += 1;
                    let mut was_enough = false;
                    if in_part {
                        let undone = tx.savepoint(|tx| {
                            was_enough = places.take(tx, place, 6)?;
                            Err::<(), _>(Abort::rollback())
                        })?;
                        assert!(undone.is_err());
                    } else {
                        was_enough = places.take(tx, place, 6)?;
                        places.set(tx, place, 1)?;
                    }
                    note.set(tx, Some(was_enough))
                };
                let made = attempts(&engine, body, |tx| places.set(tx, place, 5));
                let ended = engine.transact(|tx| Ok((places.get(tx, place)?, note.get(tx)?)));
                let left = if in_part { [10, 5] } else { [1, 1] };
                match made {
                    None => assert_eq!(ended, Ok((left[0], Some(true)))),
                    Some(_) => {
                        assert!(bodies >= 2, "place {place}, in part: {in_part}");
                        assert_eq!(ended, Ok((left[1], Some(false))));
                    }
                }
            }
        }
    });
}

/// Does the same to a place and to the model, some of it in parts that are undone.
fn operate<P: Protocol>(
    tx: &mut Transaction<'_, P>,
    places: &Places<P>,
    place: usize,
    model: &mut u64,
    random: &mut Random,
    depth: u32,
) -> Result<(), Abort> {
    for _ in 0..random.between(1, 7) {
        let amount = random.below(100);
        match random.below(9) {
            0 => {
                places.add(tx, place, amount)?;
                *model = model.wrapping_add(amount);
            }
            1 | 2 => {
                assert_eq!(places.take(tx, place, amount)?, *model >= amount);
                *model = model.checked_sub(amount).unwrap_or(*model);
            }
            3 => {
                places.double(tx, place)?;
                *model = model.wrapping_mul(2);
            }
            4 => {
                places.max(tx, place, amount)?;
                *model = amount.max(*model);
            }
            5 => {
                places.min(tx, place, amount)?;
                *model = amount.min(*model);
            }
            6 => assert_eq!(places.get(tx, place)?, *model),
            7 => {
                places.set(tx, place, amount)?;
                *model = amount;
            }
            _ if depth < 3 => {
                let (before, stays) = (*model, random.chance(0.5));
                let part = tx.savepoint(|tx| {
                    operate(tx, places, place, model, random, depth + 1)?;
                    if stays { Ok(()) } else { Err(Abort::rollback()) }
                })?;
                if part.is_err() {
                    *model = before;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn changes_at_the_commit_beside_all_other_operations_are_as_in_a_model() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let places = Places::new(&engine, 0);
        let recording = engine.record_history(1 << 24).unwrap();
        let mut random = Random::seeded(11);
        let mut models = [0; PLACES];
        for round in 0..800 {
            let (place, commits) = (round % PLACES, round % 5 != 3);
            let mut model = models[place];
            let ended = engine.transact(|tx| {
                operate(tx, &places, place, &mut model, &mut random, 0)?;
                if commits { Ok(()) } else { Err(Abort::rollback()) }
            });
            assert_eq!(ended.is_ok(), commits, "{ended:?}");
            if commits {
                models[place] = model;
            }
            assert_eq!(engine.transact(|tx| places.get(tx, place)), Ok(models[place]));
        }
        judge(&recording.finish());
    });
}

#[test]
fn nothing_is_sold_twice_and_nothing_is_lost_by_threads() {
    for_each_protocol!(3, |P| {
        let engine = support::engine::<P>();
        let places = Places::new(&engine, 40);
        let stocks = Database::on(&engine).table::<u64, Stock>("stocks").create().unwrap();
        stocks.bulk_insert([(1, stock(40))]).unwrap();
        let recording = engine.record_history(1 << 24).unwrap();
        let sold: u64 = on_threads(&engine, 3, |thread, worker| {
            let mut sold = 0;
            for round in 0..120u64 {
                let (place, gives_back) = ((round % 4) as usize, round % 6 == thread);
                let taken = worker.transact(|tx| {
                    let taken = places.take(tx, place, 1)?;
                    if taken && gives_back {
                        places.add(tx, place, 1)?;
                    }
                    let last = round as u32 + 1;
                    if stocks.subtract_if_enough(tx, &1, column_of!(Stock, left), 1)? {
                        stocks.add(tx, &1, column_of!(Stock, sold), 1)?;
                        stocks.max(tx, &1, column_of!(Stock, best), round as i16)?;
                        stocks.set(tx, &1, column_of!(Stock, last), last)?;
                    }
                    Ok(taken && !gives_back)
                });
                sold += u64::from(taken.unwrap());
            }
            sold
        })
        .into_iter()
        .sum();
        let left = engine.transact(|tx| {
            let mut left = 0;
            for place in 0..PLACES {
                left += places.get(tx, place)?;
            }
            Ok((left, stocks.get(tx, &1)?.unwrap()))
        });
        let (left, stock) = left.unwrap();
        judge(&recording.finish());
        assert_eq!(left + sold, 40 * PLACES as u64);
        assert_eq!((stock.left, stock.sold, stock.flags), (0, 40, 0));
        assert!(stock.best > 0 && stock.last > 0);
    });
}

#[test]
fn a_panic_at_the_commit_rolls_everything_back() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let places = Places::new(&engine, 1);
        let texts = Database::on(&engine).table::<u64, String>("texts").create().unwrap();
        texts.bulk_insert([(1, "one".into())]).unwrap();
        let change = |tx: &mut Transaction<'_, P>| {
            texts.append(tx, &1, ["+".to_owned()])?;
            texts.append(tx, &1, ['t', 'w'])?;
            texts.apply(tx, &1, |text| text.push('o'))?;
            places.add(tx, 1, 1)?;
            places.add(tx, 3, 1)
        };
        for place in 0..2 {
            let ended = engine.transact(|tx| {
                change(tx)?;
                let panics = |value: &mut u64| {
                    *value = 99;
                    panic!("at the commit")
                };
                if place == 0 {
                    places.number.apply(tx, panics)
                } else {
                    places.add(tx, 2, 1)?;
                    places.rows.apply(tx, &1, panics)
                }
            });
            assert_eq!(ended, Err(Error::Panicked { message: "at the commit".into() }));
            for place in 0..4 {
                assert_eq!(engine.transact(|tx| places.get(tx, place)), Ok(1), "place {place}");
            }
            assert_eq!(engine.transact(|tx| texts.get(tx, &1)), Ok(Some("one".into())));
        }
        assert_eq!(engine.transact(change), Ok(()));
        assert_eq!(engine.transact(|tx| texts.get(tx, &1)), Ok(Some("one+two".into())));
        let missing = engine.transact(|tx| texts.apply(tx, &2, String::clear));
        assert!(missing.unwrap_err().downcast_ref::<hotrow::MissingRow>().is_some());
    });
}

#[test]
fn what_changes_hold_is_dropped_once_however_the_transaction_ends() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (places, census) = (Places::new(&engine, 1), Census::default());
        let apply = |tx: &mut Transaction<'_, P>, place: usize| {
            let held = census.value(place as u64);
            let change = move |value: &mut u64| *value += held.number + 1;
            match place {
                0 => places.number.apply(tx, change),
                1 => places.numbers.apply(tx, 1, change),
                _ => places.rows.apply(tx, &1, change),
            }
        };
        let committed = engine.transact(|tx| (0..3).try_for_each(|place| apply(tx, place)));
        assert_eq!(committed, Ok(()));
        assert_eq!(engine.transact(|tx| places.get(tx, 2)), Ok(4));
        let rolled_back = engine.transact(|tx| {
            (0..3).try_for_each(|place| apply(tx, place))?;
            // Changes that an operation has needed have run on a copy, and are held still.
            assert_eq!(places.get(tx, 2)?, 7);
            tx.savepoint(|tx| (0..3).try_for_each(|place| apply(tx, place)))??;
            Err::<(), _>(Abort::rollback())
        });
        assert!(rolled_back.is_err());
        let panicked = support::panic_of(|| {
            engine.transact(|tx| {
                (0..3).try_for_each(|place| apply(tx, place))?;
                if true {
                    panic!("in the body");
                }
                Ok(())
            })
        });
        assert_eq!(panicked, "in the body");
        census.settle(&engine, 0);
        assert_eq!(engine.transact(|tx| places.get(tx, 2)), Ok(4));
    });
}
