//! Procedures that decide, and may fail, in every piece; tables whose numbers say whether anything of a failed one is left.

use hotrow::chopping::Chopping;
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::{Arc, thread};
use hotrow::{Abort, Context, Counter, Database, KeyRange, Occ, Procedure, Table, TableRef, Transaction};

pub(crate) const KEYS: u64 = 2;
/// The keys of the second table that come and go begin here.
const COMING: u64 = 100;

/// The operation of a [`Move`] on the second table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Update,
    UpdateEach,
    Replace,
    Insert,
    Delete,
    TakeFirst,
}

pub(crate) const ACTIONS: [Action; 6] =
    [Action::Update, Action::UpdateEach, Action::Replace, Action::Insert, Action::Delete, Action::TakeFirst];

/// The place at which a [`Move`] fails, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    None,
    /// Rolls back upon a result of the second table.
    Second,
    /// Rolls back upon a result of the third table.
    Third,
    Panics,
    /// Reads the first table once more, after the third.
    Strays,
}

/// Adds to a number in the first and the third of three tables, and to the sum of all; does something else with the second between.
pub(crate) struct Move {
    pub(crate) tables: [TableRef<u64, u64>; 3],
    pub(crate) sum: TableRef<u64, u64>,
    pub(crate) key: u64,
    pub(crate) amount: u64,
    pub(crate) action: Action,
    pub(crate) failure: Failure,
    /// Waits in the change of the third table until this is true.
    pub(crate) gate: Arc<AtomicBool>,
    /// The number that it has seen in the first table.
    pub(crate) seen: Arc<AtomicU64>,
}

impl Procedure for Move {
    type Output = u64;

    fn name(&self) -> &'static str {
        "move"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<u64>, C::Stop> {
        let Self { tables: [first, second, third], sum, key, amount, failure, .. } = *self;
        let (at, more, seen) = (cx.value(key), cx.value(amount), self.seen.clone());
        let before = cx.update(first, at, more, move |number, more| {
            seen.store(*number, Ordering::SeqCst);
            *number += more;
            *number - more
        })?;
        let (at, more, coming) = (cx.value(key), cx.value(amount), cx.value(COMING + key));
        let done = match self.action {
            Action::Update => {
                let done = cx.update(second, at, more, |number, more| *number += more)?;
                cx.map(done, |done| done.is_some())
            }
            Action::UpdateEach => {
                let keys = cx.value((0..KEYS).chain([COMING]).collect::<Vec<_>>());
                let done = cx.update_each(second, keys, more, 0, |count, number, more| {
                    *count += 1;
                    *number += more;
                })?;
                cx.map(done, |count| count > 0)
            }
            Action::Replace => cx.replace(second, at, more)?,
            Action::Insert => cx.insert(second, coming, more)?,
            Action::Delete => cx.delete(second, coming)?,
            Action::TakeFirst => {
                let range = cx.value(KeyRange::from(COMING..=COMING + KEYS));
                let taken = cx.take_first(second, 0, range)?;
                cx.map(taken, |taken| taken.is_some())
            }
        };
        let goes_on = cx.map(done, move |_| failure != Failure::Second);
        cx.require(goes_on)?;
        let (at, more, gate) = (cx.value(key), cx.value(amount), self.gate.clone());
        let after = cx.update(third, at, more, move |number, more| {
            while !gate.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            assert!(failure != Failure::Panics, "as told");
            *number += more;
        })?;
        let goes_on = cx.map(after, move |_| failure != Failure::Third);
        cx.require(goes_on)?;
        if failure == Failure::Strays {
            let at = cx.value(key);
            cx.read(first, at, |number| *number)?;
        }
        let (at, more) = (cx.value(0), cx.value(amount));
        cx.commute(sum, at, more, |sum, more| *sum += more)?;
        Ok(cx.map(before, |before| before.unwrap_or(0)))
    }
}

/// Reads a number in the first and the third table, and the second's numbers between; rolls back if it finds the first two not the same.
pub(crate) struct Look {
    pub(crate) tables: [TableRef<u64, u64>; 3],
    pub(crate) key: u64,
}

impl Procedure for Look {
    type Output = u64;

    fn name(&self) -> &'static str {
        "look"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<u64>, C::Stop> {
        let [first, second, third] = self.tables;
        let at = cx.value(self.key);
        let one = cx.read(first, at, |number| *number)?;
        let at = cx.value(COMING + self.key);
        cx.read(second, at, |number| *number)?;
        let at = cx.value(self.key);
        let other = cx.read(third, at, |number| *number)?;
        let both = cx.zip(one.clone(), other);
        let holds = cx.map(both, |(one, other)| one == other);
        cx.require(holds)?;
        Ok(cx.map(one, |one| one.unwrap_or(0)))
    }
}

pub(crate) struct Tables {
    pub(crate) db: Database<Occ>,
    pub(crate) tables: [Table<u64, u64, Occ>; 3],
    pub(crate) sum: Table<u64, u64, Occ>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        let db: Database<Occ> = Database::builder().typed::<Occ>().variant("ic3+cascading").open().unwrap();
        let table = |name: &str| {
            let table = db.table::<u64, u64>(name).create().unwrap();
            table.bulk_insert((0..KEYS).map(|key| (key, 0))).unwrap();
            table
        };
        let tables =
            Self { tables: [table("first"), table("second"), table("third")], sum: table("sum"), db };
        let trace = |action| tables.db.trace(&tables.moves(0, action)).unwrap();
        let chopping = Chopping::new().procedure("move", ACTIONS.map(trace));
        let look = tables.db.trace(&tables.look(0)).unwrap();
        let chopping = chopping.procedure("look", [look]);
        let pieces = |graph: hotrow::chopping::RankedGraph| {
            graph.procedures.iter().map(|procedure| procedure.pieces.len()).collect::<Vec<_>>()
        };
        assert_eq!(pieces(chopping.rank_deciding_late().unwrap()), [4, 3], "it decides in each piece");
        assert_eq!(pieces(chopping.rank().unwrap()), [2, 1], "all that is decided upon comes first");
        tables.db.chop(&chopping).unwrap();
        tables
    }

    fn references(&self) -> [TableRef<u64, u64>; 3] {
        self.tables.each_ref().map(Table::reference)
    }

    pub(crate) fn moves(&self, key: u64, action: Action) -> Move {
        Move {
            tables: self.references(),
            sum: self.sum.reference(),
            key,
            amount: 1,
            action,
            failure: Failure::None,
            gate: Arc::new(AtomicBool::new(true)),
            seen: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    pub(crate) fn look(&self, key: u64) -> Look {
        Look { tables: self.references(), key }
    }

    /// The numbers of a key in all tables, of the key that comes and goes in the second, and the sum.
    pub(crate) fn read(&self, tx: &mut Transaction<'_, Occ>) -> Result<(Vec<Option<u64>>, u64), Abort> {
        let mut numbers = Vec::new();
        for key in 0..KEYS {
            for table in &self.tables {
                numbers.push(table.get(tx, &key)?);
            }
            numbers.push(self.tables[1].get(tx, &(COMING + key))?);
        }
        Ok((numbers, self.sum.get(tx, &0)?.unwrap()))
    }

    pub(crate) fn now(&self) -> (Vec<Option<u64>>, u64) {
        self.db.transact(|tx| self.read(tx)).unwrap()
    }

    pub(crate) fn count(&self, counter: &Counter) -> u64 {
        self.db.statistics().count(counter)
    }
}

/// Checks that no part of a transaction is there without the rest.
pub(crate) fn is_whole(numbers: &[Option<u64>], sum: u64) {
    let firsts = numbers.chunks(4).map(|of_key| {
        assert_eq!(of_key[0], of_key[2]);
        of_key[0].unwrap()
    });
    assert_eq!(firsts.sum::<u64>(), sum);
}
