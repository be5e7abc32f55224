//! Numbers in every kind of object that can hold them, for what must hold of all kinds alike.

use super::steps::{Interleaving, Stepped};
use hotrow::{Abort, Database, Direction, Engine, Protocol, TArray, TBox, TCounter, Table, Transaction};

type Tx<'w, P> = Transaction<'w, P>;

/// A few numbers, by their positions.
pub(crate) enum Numbers<P: Protocol> {
    Boxes(Vec<TBox<i64, P>>),
    /// Boxes whose values are elsewhere in memory.
    Texts(Vec<TBox<String, P>>),
    Array(TArray<i64, P>),
    Counters(Vec<TCounter<P>>),
    /// So many rows, found by hashing.
    Hash(Table<u64, i64, P>, usize),
    /// Rows in their order, all of which are scanned together.
    Ordered(Table<u64, i64, P>),
}

impl<P: Protocol> Numbers<P> {
    /// The same numbers in each kind of object.
    const KINDS: [fn(&Engine<P>, &[i64]) -> Self; 6] = [
        |engine, values| Self::Boxes(values.iter().map(|value| TBox::new(engine, *value)).collect()),
        |engine, values| {
            Self::Texts(values.iter().map(|value| TBox::new(engine, value.to_string())).collect())
        },
        |engine, values| Self::Array(TArray::new(engine, values.len(), |position| values[position])),
        |engine, values| Self::Counters(values.iter().map(|value| TCounter::new(engine, *value)).collect()),
        |engine, values| {
            Self::Hash(
                loaded(Database::on(engine).table("hash").hash(4).create().unwrap(), values),
                values.len(),
            )
        },
        |engine, values| {
            Self::Ordered(loaded(Database::on(engine).table("ordered").create().unwrap(), values))
        },
    ];

    /// Steps the same interleaving over each kind of object.
    pub(crate) fn interleave_each<const N: usize>(
        values: &[i64],
        work: impl Fn(&Engine<P>, &Self, [Stepped<'_, P>; N]),
    ) {
        for kind in Self::KINDS {
            Interleaving::<P>::new().run(|engine, transactions| {
                let numbers = kind(engine, values);
                // Shown only if the test fails.
                eprintln!("in {}", numbers.kind());
                work(engine, &numbers, transactions);
            });
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Boxes(_) => "boxes",
            Self::Texts(_) => "boxed texts",
            Self::Array(_) => "an array",
            Self::Counters(_) => "counters",
            Self::Hash(..) => "a hash table",
            Self::Ordered(_) => "an ordered table",
        }
    }

    pub(crate) fn get(&self, tx: &mut Tx<'_, P>, position: usize) -> Result<i64, Abort> {
        match self {
            Self::Boxes(boxes) => boxes[position].get(tx),
            Self::Texts(texts) => texts[position].read(tx, |text| text.parse().unwrap()),
            Self::Array(array) => array.get(tx, position),
            Self::Counters(counters) => counters[position].get(tx),
            Self::Hash(table, _) | Self::Ordered(table) => {
                table.get(tx, &(position as u64)).map(|row| row.expect("loaded"))
            }
        }
    }

    /// Replaces a number, without looking at it if the kind of object can do that.
    pub(crate) fn set(&self, tx: &mut Tx<'_, P>, position: usize, value: i64) -> Result<(), Abort> {
        match self {
            Self::Boxes(boxes) => boxes[position].set(tx, value),
            Self::Texts(texts) => texts[position].set(tx, value.to_string()),
            Self::Array(array) => array.set(tx, position, value),
            Self::Counters(counters) => counters[position].set(tx, value),
            Self::Hash(table, _) | Self::Ordered(table) => table
                .update_if_present(tx, &(position as u64), |row| *row = value)
                .map(|row| row.expect("loaded")),
        }
    }

    pub(crate) fn add(&self, tx: &mut Tx<'_, P>, position: usize, amount: i64) -> Result<(), Abort> {
        match self {
            Self::Boxes(boxes) => boxes[position].update(tx, |value| *value += amount),
            Self::Texts(texts) => texts[position].update(tx, |text| {
                *text = (text.parse::<i64>().unwrap() + amount).to_string();
            }),
            Self::Array(array) => array.update(tx, position, |value| *value += amount),
            Self::Counters(counters) => counters[position].add(tx, amount),
            Self::Hash(table, _) | Self::Ordered(table) => table
                .update_if_present(tx, &(position as u64), |row| *row += amount)
                .map(|row| row.expect("loaded")),
        }
    }

    /// All numbers.
    pub(crate) fn all(&self, tx: &mut Tx<'_, P>) -> Result<Vec<i64>, Abort> {
        let length = match self {
            Self::Boxes(boxes) => boxes.len(),
            Self::Texts(texts) => texts.len(),
            Self::Array(array) => array.len(),
            Self::Counters(counters) => counters.len(),
            Self::Hash(_, length) => *length,
            Self::Ordered(table) => {
                let rows = table.collect(tx, .., Direction::Ascending, usize::MAX)?;
                return Ok(rows.into_iter().map(|(_, row)| row).collect());
            }
        };
        (0..length).map(|position| self.get(tx, position)).collect()
    }
}

fn loaded<P: Protocol>(table: Table<u64, i64, P>, values: &[i64]) -> Table<u64, i64, P> {
    table.bulk_insert((0..).zip(values.iter().copied())).unwrap();
    table
}
