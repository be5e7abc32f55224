//! The tables and objects that programs work on, filled from a state of the model and read back into one.

use super::model::Model;
use super::program::{BOXED, ELEMENTS, INDEXED, NUMBERS, Shape, TABLES};
use hotrow::{
    Database, Direction, Engine, IndexRef, Protocol, SecondaryIndex, TArray, TBox, TCounter, TableRef, Value,
    Worker,
};
use std::ops::ControlFlow;

/// A row that is boxed.
#[derive(Debug, Clone, PartialEq, Eq, Value)]
pub(crate) struct Boxed(String);

/// A row that stands for a number.
pub(crate) trait Row: Value {
    fn from_number(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Row for u64 {
    fn from_number(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

impl Row for Boxed {
    fn from_number(number: u64) -> Self {
        Self(number.to_string())
    }

    fn number(&self) -> u64 {
        self.0.parse().expect("it was made from a number")
    }
}

/// References to the tables, which name no protocol.
#[derive(Clone, Copy)]
pub(crate) struct Refs {
    pub(crate) numbers: [TableRef<u64, u64>; NUMBERS],
    pub(crate) boxed: TableRef<u64, Boxed>,
    /// The secondary indexes of [`INDEXED`].
    indexes: [IndexRef<u64, u64, u64>; 2],
    pub(crate) queue: TableRef<(u64, u64), u64>,
}

impl Refs {
    pub(crate) fn index(&self, table: usize) -> IndexRef<u64, u64, u64> {
        self.indexes[usize::from(table == INDEXED[1])]
    }
}

/// All that programs work on.
pub(crate) struct Tables<P: Protocol> {
    pub(crate) database: Database<P>,
    pub(crate) refs: Refs,
    pub(crate) value: TBox<u64, P>,
    pub(crate) elements: TArray<u64, P>,
    pub(crate) counter: TCounter<P>,
}

impl<P: Protocol> Tables<P> {
    /// Tables with what the model has.
    pub(crate) fn new(engine: &Engine<P>, shape: &Shape, model: &Model) -> Self {
        let database = Database::on(engine);
        let ranks = shape.ranks;
        let mut indexes: Vec<SecondaryIndex<u64, u64, u64, P>> = Vec::new();
        let numbers = std::array::from_fn(|at| {
            let name = ["hash", "ordered", "indexed_hash", "indexed"][at];
            let mut builder = database.table(name).rank(ranks[at]);
            if at % 2 == 0 {
                builder = builder.hash(4);
            }
            if INDEXED.contains(&at) {
                indexes.push(builder.secondary("by_last_digit", |_, row: &u64| row % 10));
            }
            let table = builder.create().unwrap();
            table.bulk_insert(model.rows[at].iter().map(|(key, row)| (*key, *row))).unwrap();
            table.reference()
        });
        let boxed = database.table("boxed").rank(ranks[BOXED]).create().unwrap();
        let rows = model.rows[BOXED].iter().map(|(key, row)| (*key, Boxed::from_number(*row)));
        boxed.bulk_insert(rows).unwrap();
        let queue = database.table("queue").rank(ranks[TABLES]);
        let queue = queue.queues(|(group, _): &(u64, u64)| *group).create().unwrap();
        queue.bulk_insert(model.queue.iter().map(|(key, row)| (*key, *row))).unwrap();
        let [second, first] = [indexes.pop(), indexes.pop()].map(|index| index.expect("two have one"));
        let indexes = [first, second].map(|index| index.reference());
        let refs = Refs { numbers, boxed: boxed.reference(), indexes, queue: queue.reference() };
        Self {
            database,
            refs,
            value: TBox::named(engine, "box", model.value),
            elements: TArray::named(engine, "array", ELEMENTS as usize, |index| model.elements[index]),
            counter: TCounter::named(engine, "counter", model.counter),
        }
    }

    /// The differences from the model: rows, entries of secondary indexes, objects.
    pub(crate) fn differences(&self, worker: &mut Worker<P>, model: &Model) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |name: &str, expected: String, got: String| {
            if expected != got {
                differences.push(format!("{name}: expected {expected}, got {got}"));
            }
        };
        const ALONE: &str = "nobody else is there";
        for (at, table) in self.refs.numbers.iter().enumerate() {
            let table = self.database.table_of(*table);
            let mut rows = Vec::new();
            table.for_each(worker, |key, row| rows.push((*key, *row))).expect(ALONE);
            rows.sort_unstable();
            let expected: Vec<_> = model.rows[at].iter().map(|(key, row)| (*key, *row)).collect();
            compare(table.name(), format!("{expected:?}"), format!("{rows:?}"));
        }
        let mut rows = Vec::new();
        let boxed = self.database.table_of(self.refs.boxed);
        boxed.for_each(worker, |key, row| rows.push((*key, row.number()))).expect(ALONE);
        let expected: Vec<_> = model.rows[BOXED].iter().map(|(key, row)| (*key, *row)).collect();
        compare("boxed", format!("{expected:?}"), format!("{rows:?}"));
        let mut rows = Vec::new();
        let queue = self.database.table_of(self.refs.queue);
        queue.for_each(worker, |key, row| rows.push((*key, *row))).expect(ALONE);
        let expected: Vec<_> = model.queue.iter().map(|(key, row)| (*key, *row)).collect();
        compare("queue", format!("{expected:?}"), format!("{rows:?}"));
        for table in INDEXED {
            let index = self.database.index_of(self.refs.index(table));
            let entries = worker.transact(|tx| {
                let mut entries = Vec::new();
                index.scan_keys(tx, .., Direction::Ascending, |digit, key| {
                    entries.push((*digit, *key));
                    ControlFlow::Continue(())
                })?;
                Ok(entries)
            });
            compare(
                index.name(),
                format!("{:?}", model.entries(table)),
                format!("{:?}", entries.expect(ALONE)),
            );
        }
        let objects = worker.transact(|tx| {
            let mut elements = [0; ELEMENTS as usize];
            for (index, element) in elements.iter_mut().enumerate() {
                *element = self.elements.get(tx, index)?;
            }
            Ok((self.value.get(tx)?, elements, self.counter.get(tx)?))
        });
        let expected = (model.value, model.elements, model.counter);
        compare("box, array, counter", format!("{expected:?}"), format!("{:?}", objects.expect(ALONE)));
        differences
    }
}
