//! The objects under stress.

use super::twins::Twins;
use super::values::{Boxed, Inline};
use hotrow::{
    Database, Direction, Engine, Error, Protocol, SecondaryIndex, TArray, TBox, TCounter, Table, Worker,
};
use std::ops::ControlFlow;

pub(super) struct Objects<P: Protocol> {
    pub(super) inline: Vec<TBox<Inline, P>>,
    pub(super) boxed: Vec<TBox<Boxed, P>>,
    pub(super) twins: Vec<Twins<P>>,
    pub(super) array: TArray<u64, P>,
    /// Counters that are only incremented, so that their sums are known.
    pub(super) counters: Vec<TCounter<P>>,
    /// Counters that are also set.
    pub(super) gauges: Vec<TCounter<P>>,
    pub(super) hash: Table<u32, Inline, P>,
    /// Queues, by group and number.
    pub(super) queue: Table<(u32, u32), Inline, P>,
    pub(super) ordered: Table<u32, Boxed, P>,
    pub(super) by_group: SecondaryIndex<u32, u32, Boxed, P>,
}

impl<P: Protocol> Objects<P> {
    pub(super) fn new(engine: &Engine<P>, keys: u32, caches: bool) -> Self {
        // Boxes and the array are made first, so that a commit locks them first: keys in the tables come from their
        // values.
        let inline =
            (0..keys).map(|key| TBox::named(engine, format!("inline{key}"), Inline::new(0))).collect();
        let boxed = (0..keys).map(|key| TBox::named(engine, format!("boxed{key}"), Boxed::new(0))).collect();
        let twins = (0..keys).map(|key| Twins::new(engine, key)).collect();
        let array = TArray::named(engine, "array", keys as usize, |_| 0);
        let database = Database::on(engine);
        let hash = database.table("hash").hash(keys as usize);
        let queue = database.table("queue");
        let mut builder = database.table("ordered");
        let (hash, queue) = if caches {
            // A bucket for each key, for each group, and for all keys.
            builder = builder.cached(64);
            (hash.cached(0), queue.cached(32))
        } else {
            (hash, queue)
        };
        let hash = hash.load().expect("a new name");
        let queue = queue.queues(|(group, _): &(u32, u32)| u64::from(*group)).create().expect("a new name");
        let by_group = builder.secondary("by_group", |_, row: &Boxed| row.group());
        let ordered = builder.load().expect("a new name");
        for key in (0..keys).step_by(2) {
            hash.insert(key, Inline::new(key.into())).expect("a new key");
            ordered.insert(key, Boxed::new(key.into())).expect("a new key");
        }
        let hash = hash.finish().expect("nothing is kept");
        let ordered = ordered.finish().expect("nothing is kept");
        Self {
            inline,
            boxed,
            twins,
            array,
            counters: (0..keys).map(|key| TCounter::named(engine, format!("counter{key}"), 0)).collect(),
            gauges: (0..keys).map(|key| TCounter::named(engine, format!("gauge{key}"), 0)).collect(),
            hash,
            queue,
            ordered,
            by_group,
        }
    }

    pub(super) fn check_counters(&self, worker: &mut Worker<P>, expected: &[i64]) -> Result<(), String> {
        for (key, (counter, expected)) in self.counters.iter().zip(expected).enumerate() {
            let found = worker.transact(|tx| counter.get(tx)).map_err(|error| error.to_string())?;
            if found != *expected {
                return Err(format!("counter{key} is {found}, the committed increments are {expected}"));
            }
        }
        Ok(())
    }

    pub(super) fn check_secondary(&self, worker: &mut Worker<P>) -> Result<(), String> {
        let pairs = |worker: &mut Worker<P>| -> Result<_, Error> {
            worker.transact(|tx| {
                let (mut rows, mut entries) = (Vec::new(), Vec::new());
                self.ordered.scan(tx, .., Direction::Ascending, |key, row| {
                    rows.push((row.group(), *key));
                    ControlFlow::Continue(())
                })?;
                self.by_group.scan_keys(tx, .., Direction::Ascending, |group, key| {
                    entries.push((*group, *key));
                    ControlFlow::Continue(())
                })?;
                Ok((rows, entries))
            })
        };
        let (mut rows, entries) = pairs(worker).map_err(|error| error.to_string())?;
        rows.sort_unstable();
        if rows == entries { Ok(()) } else { Err(format!("rows {rows:?}, entries {entries:?}")) }
    }

    pub(super) fn payload_bytes(&self) -> u64 {
        let keys = self.array.len();
        let key = size_of::<Inline>() * 4 + size_of::<Boxed>() * 3 + size_of::<u64>() * 3;
        (keys * key) as u64
    }
}
