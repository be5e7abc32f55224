//! The objects under stress.

use super::twins::Twins;
use hotrow::{
    Deferred, Direction, Engine, Error, Protocol, SecondaryIndex, TArray, TBox, TCounter, Table, Value,
    Worker,
};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

/// An inline value that shows a torn read: `complement` is computed from `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
pub(super) struct Inline {
    value: u64,
    complement: [u64; 3],
}

impl Inline {
    pub(super) fn new(value: u64) -> Self {
        Self { value, complement: [!value; 3] }
    }

    fn is_whole(&self) -> bool {
        self.complement == [!self.value; 3]
    }

    /// Returns the value; `None` if it is torn.
    pub(super) fn whole_or_torn(&self) -> Option<u64> {
        self.is_whole().then_some(self.value)
    }

    /// Returns the value, for an intention. A panic in an intention becomes the transaction's error.
    pub(super) fn whole(&self) -> u64 {
        assert!(self.is_whole(), "a mixture of two values: {self:?}");
        self.value
    }
}

/// A boxed value that shows a torn read; it owns memory on the heap.
#[derive(Debug, Clone, PartialEq, Eq, Value)]
pub(super) struct Boxed {
    pub(super) value: u64,
    copies: Vec<u64>,
}

impl Boxed {
    pub(super) fn new(value: u64) -> Self {
        Self { value, copies: vec![value; 2] }
    }

    fn is_whole(&self) -> bool {
        self.copies == [self.value; 2]
    }

    /// Returns the value; `None` if it is torn.
    pub(super) fn whole_or_torn(&self) -> Option<u64> {
        self.is_whole().then_some(self.value)
    }

    /// Returns the value, as [`Inline::whole`] does.
    pub(super) fn whole(&self) -> u64 {
        assert!(self.is_whole(), "a mixture of two values: {self:?}");
        self.value
    }

    /// Returns the row's key in the secondary index.
    pub(super) fn group(&self) -> u32 {
        (self.value % u64::from(GROUPS)) as u32
    }
}

/// Number of different keys in the secondary index.
pub(super) const GROUPS: u32 = 3;

/// State of one transaction: its reads, and the deferred results that later operations use.
#[derive(Debug, Default)]
pub(super) struct ReadDigest {
    /// Digest of all reads; later writes of the transaction are computed from it.
    pub(super) sum: u64,
    /// Number of torn values, in all attempts.
    pub(super) torn: u64,
    /// Digest of the deferred results; `None` if no operation was deferred.
    pub(super) later: Option<Deferred<u64>>,
    /// Result of the last operation deferred on a box, an element or the queue; the keys of later operations come
    /// from it.
    pub(super) source: Option<Deferred<u64>>,
    /// True if the attempt has found twins different, and asked for a rollback.
    pub(super) different: Rc<Cell<bool>>,
}

impl ReadDigest {
    pub(super) fn inline(&mut self, value: &Inline) {
        self.number(value.value);
        self.torn += u64::from(!value.is_whole());
    }

    pub(super) fn boxed(&mut self, value: &Boxed) {
        self.number(value.value);
        self.torn += u64::from(!value.is_whole());
    }

    pub(super) fn number(&mut self, value: u64) {
        self.sum = self.sum.wrapping_mul(31).wrapping_add(value);
    }
}

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
    pub(super) fn new(engine: &Engine<P>, keys: u32) -> Self {
        // Boxes and the array are made first, so that a commit locks them first: keys in the tables come from their
        // values.
        let inline =
            (0..keys).map(|key| TBox::named(engine, format!("inline{key}"), Inline::new(0))).collect();
        let boxed = (0..keys).map(|key| TBox::named(engine, format!("boxed{key}"), Boxed::new(0))).collect();
        let twins = (0..keys).map(|key| Twins::new(engine, key)).collect();
        let array = TArray::named(engine, "array", keys as usize, |_| 0);
        let hash = Table::hash(engine, "hash", keys as usize);
        let queue = Table::builder(engine, "queue");
        let queue = queue.queues(|(group, _): &(u32, u32)| u64::from(*group)).build();
        let mut builder = Table::builder(engine, "ordered");
        let by_group = builder.secondary("by_group", |_, row: &Boxed| row.group());
        let ordered = builder.build();
        for key in (0..keys).step_by(2) {
            hash.bulk_insert(key, Inline::new(key.into()));
            ordered.bulk_insert(key, Boxed::new(key.into()));
        }
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
            let found = worker.run(|tx| counter.get(tx)).map_err(|error| error.to_string())?;
            if found != *expected {
                return Err(format!("counter{key} is {found}, the committed increments are {expected}"));
            }
        }
        Ok(())
    }

    pub(super) fn check_secondary(&self, worker: &mut Worker<P>) -> Result<(), String> {
        let pairs = |worker: &mut Worker<P>| -> Result<_, Error> {
            worker.run(|tx| {
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
