//! Ranges of tables and indexes as iterators.

use crate::support::{self, attempts, for_each_concurrent_protocol, for_each_protocol};
use hotrow::sync::random::Random;
use hotrow::{
    Abort, Database, Direction, Engine, Error, Isolation, Misuse, Profile, Protocol, SecondaryIndex, Table,
    Transaction, UniqueIndex,
};
use std::collections::VecDeque;

/// A table, and indexes of it.
struct Rows<P: Protocol> {
    table: Table<u64, u64, P>,
    by_value: UniqueIndex<u64, u64, u64, P>,
    by_rest: SecondaryIndex<u64, u64, u64, P>,
}

impl<P: Protocol> Rows<P> {
    fn new(engine: &Engine<P>, count: u64) -> Self {
        let mut builder = Database::on(engine).table::<u64, u64>("rows");
        let by_value = builder.unique("value", |_, row| *row);
        let by_rest = builder.secondary("rest", |_, row| *row % 3);
        let rows = Self { table: builder.create().unwrap(), by_value, by_rest };
        let filled = engine
            .transact(|tx| (0..count).try_for_each(|key| rows.table.insert(tx, 2 * key, 1_000 - 2 * key)));
        filled.unwrap();
        rows
    }

    /// Takes rows from both ends of iterators, and compares them with those of scans.
    fn compare(&self, tx: &mut Transaction<'_, P>, random: &mut Random) -> Result<(), Abort> {
        let low = random.below(230);
        let range = low..low + random.below(230);
        let rests = range.start % 3..=range.end % 3;
        let expected = self.table.collect(tx, range.clone(), Direction::Ascending, usize::MAX)?;
        take_all(expected, self.table.iter(tx, range), random)?;
        let range = 800 + low..;
        let expected = self.by_value.collect(tx, range.clone(), Direction::Ascending, usize::MAX)?;
        assert_eq!(self.by_value.first(tx, range.clone())?.as_ref(), expected.first());
        assert_eq!(self.by_value.last(tx, range.clone())?.as_ref(), expected.last());
        take_all(expected, self.by_value.iter(tx, range), random)?;
        let expected = self.by_rest.collect(tx, rests.clone(), Direction::Ascending, usize::MAX)?;
        assert_eq!(self.by_rest.first(tx, rests.clone())?.as_ref(), expected.first());
        assert_eq!(self.by_rest.last(tx, rests.clone())?.as_ref(), expected.last());
        take_all(expected, self.by_rest.iter(tx, rests), random)
    }
}

fn take_all(
    expected: Vec<(u64, u64)>,
    mut rows: impl DoubleEndedIterator<Item = Result<(u64, u64), Abort>>,
    random: &mut Random,
) -> Result<(), Abort> {
    let mut expected = VecDeque::from(expected);
    let ends = random.below(3);
    loop {
        let from_front = ends == 0 || ends == 2 && random.chance(0.5);
        let found = if from_front { rows.next() } else { rows.next_back() }.transpose()?;
        assert_eq!(found, if from_front { expected.pop_front() } else { expected.pop_back() });
        if found.is_none() {
            assert!(rows.next().is_none() && rows.next_back().is_none());
            return Ok(());
        }
    }
}

#[test]
fn iterators_show_what_scans_show_from_both_ends() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = Rows::new(&engine, 100);
        let mut random = Random::seeded(7);
        engine
            .transact(|tx| {
                for turn in 0..20 {
                    rows.compare(tx, &mut random)?;
                    rows.table.insert(tx, 2 * turn + 1, turn)?;
                    rows.table.delete(tx, &(4 * turn))?;
                }
                Ok(())
            })
            .unwrap();
        for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::StrictSnapshot] {
            let profile = Profile { isolation, ..Profile::UNKNOWN };
            engine
                .transact_as(profile, |tx| (0..20).try_for_each(|_| rows.compare(tx, &mut random)))
                .unwrap();
        }
        let hash = Database::on(&engine).table::<u64, u64>("hash").hash(4).create().unwrap();
        let refused = engine.transact(|tx| hash.iter(tx, ..).next().transpose());
        assert!(matches!(refused, Err(Error::Misuse(Misuse::Unsupported(_)))), "{refused:?}");
    });
}

#[test]
fn a_first_or_last_row_depends_on_nothing_behind_it() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        // The ends are in different leaves, of each of which one part is seen.
        let rows = Rows::new(&engine, 300);
        let ends = |tx: &mut Transaction<'_, P>| {
            let ends = (rows.table.first(tx, ..)?, rows.table.last(tx, ..)?);
            assert_eq!(ends, (Some((0, 1_000)), Some((598, 402))));
            Ok(())
        };
        let between = attempts(&engine, ends, |tx| {
            rows.table.update(tx, &2, |row| *row = 7)?;
            rows.table.update(tx, &596, |row| *row = 8)?;
            rows.table.insert(tx, 5, 5)
        });
        assert!(between.is_none_or(|attempts| attempts == 1), "{between:?}");
    });
}
