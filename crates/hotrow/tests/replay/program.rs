//! Random programs: data that a procedure, a closure and a plain model interpret alike.

use hotrow::Direction;
use hotrow::sync::random::Random;
use std::fmt;

/// How many tables have rows of one number. Table [`BOXED`] comes after them.
pub(crate) const NUMBERS: usize = 4;
/// The table whose rows are boxed, for closures only: a context knows nothing of how rows are held.
pub(crate) const BOXED: usize = NUMBERS;
/// How many tables there are besides the queue.
pub(crate) const TABLES: usize = NUMBERS + 1;
/// The tables with an ordered index.
pub(crate) const ORDERED: [usize; 3] = [1, 3, BOXED];
/// The tables with a secondary index, by the last digit of the row.
pub(crate) const INDEXED: [usize; 2] = [2, 3];
/// Queues in the one table of queues.
pub(crate) const GROUPS: u64 = 2;
/// Numbers of rows in a queue.
pub(crate) const NUMBERS_IN_QUEUE: u64 = 32;
/// Elements of the array.
pub(crate) const ELEMENTS: u64 = 3;
/// The number as which a missing row counts.
pub(crate) const MISSING: u64 = 1_000;

/// A number that is known beforehand, or what an earlier operation gave, by its position from 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Known(u64),
    Earlier(usize),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Known(number) => write!(f, "{number}"),
            Source::Earlier(at) => write!(f, "result {at}"),
        }
    }
}

/// An operation. Each gives a number. Keys are taken modulo the number of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Read {
        table: usize,
        key: Source,
    },
    Add {
        table: usize,
        key: Source,
        amount: Source,
    },
    /// Up to two rows: of the next key, too.
    AddToEach {
        table: usize,
        key: Source,
        amount: Source,
    },
    Commute {
        table: usize,
        key: Source,
        amount: Source,
    },
    CommuteEach {
        table: usize,
        key: Source,
        amount: Source,
    },
    Replace {
        table: usize,
        key: Source,
        row: Source,
    },
    Delete {
        table: usize,
        key: Source,
    },
    Insert {
        table: usize,
        key: Source,
        row: Source,
        grouped: bool,
    },
    /// Closures only.
    Upsert {
        table: usize,
        key: Source,
        row: Source,
    },
    /// Takes the first row of an ordered table that is no table of queues.
    TakeRow {
        table: usize,
    },
    Scan {
        table: usize,
        from: u64,
        limit: u64,
        direction: Direction,
    },
    ScanIndex {
        table: usize,
        limit: u64,
        direction: Direction,
    },
    Enqueue {
        group: u64,
        number: Source,
        row: Source,
        grouped: bool,
    },
    Take {
        group: u64,
    },
    Unqueue {
        group: u64,
        number: Source,
    },
    ScanQueue,
    Force {
        value: Source,
    },
    /// Rolls back unless the number [`holds`].
    Require {
        holds: Source,
    },
    /// Panics in a computation unless the number holds.
    Panic {
        unless: Source,
    },
    /// Panics in the change of a row unless that holds afterwards.
    PanicInChange {
        table: usize,
        key: Source,
        amount: Source,
    },
    /// The rest is for closures only.
    ReadBox,
    SetBox {
        value: Source,
    },
    AddToBox {
        amount: Source,
    },
    ReadElement {
        index: u64,
    },
    SetElement {
        index: u64,
        value: Source,
    },
    AddToElement {
        index: u64,
        amount: Source,
    },
    AddToCounter {
        amount: Source,
    },
    SetCounter {
        value: Source,
    },
    GetCounter,
    TestCounter {
        bound: u64,
    },
}

/// The way in which a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `Database::execute`: the context is the protocol's.
    Procedure,
    /// `Database::execute_eagerly`.
    EagerProcedure,
    /// A closure on tables and objects, with deferred operations and others.
    Closure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) what: What,
    /// True if it is deferred, in a closure.
    pub(crate) later: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) form: Form,
    /// True if it lets other threads run in the midst of it.
    pub(crate) yields: bool,
    pub(crate) steps: Vec<Step>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}:", self.form, if self.yields { ", yielding" } else { "" })?;
        for (at, Step { what, later }) in self.steps.iter().enumerate() {
            let later = if *later && self.form == Form::Closure { ", deferred" } else { "" };
            write!(f, "{} {at}: {what:?}{later}", if at > 0 { ";" } else { "" })?;
        }
        Ok(())
    }
}

/// The properties that the programs of a round have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) keys: u64,
    /// Tables in the order of their ranks; the queue is the last one here.
    pub(crate) ranks: [u16; TABLES + 1],
    /// The share of programs in the midst of which others run.
    yield_share: f64,
}

impl Shape {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let mut ranks = std::array::from_fn(|at| 10 * (at as u16 + 1));
        random.shuffle(&mut ranks);
        let keys = [1, 2, 3, 5, 8][random.below(5) as usize];
        Self { keys, ranks, yield_share: [0.0, 0.05, 0.3][random.below(3) as usize] }
    }
}

/// True if the condition holds of a number.
pub(crate) fn holds(number: u64) -> bool {
    number % 8 != 5
}

pub(crate) fn mix(sum: &mut u64, number: u64) {
    *sum = sum.wrapping_mul(7).wrapping_add(number) % 10_007;
}

/// A row after a change of it.
pub(crate) fn changed(row: u64, amount: u64) -> u64 {
    (row * 2 + amount) % 997
}

/// A row after a change that commutes with others.
pub(crate) fn added(row: u64, amount: u64) -> u64 {
    (row + amount) % 997
}

/// A number as an amount that is added to the counter, or as a bound of it.
pub(crate) fn signed(number: u64) -> i64 {
    (number % 7).cast_signed() - 3
}

/// The counter's value, as a number.
pub(crate) fn unsigned(value: i64) -> u64 {
    value.rem_euclid(1_000).cast_unsigned()
}

impl Program {
    pub(crate) fn draw(random: &mut Random, shape: &Shape) -> Self {
        let form = match random.below(8) {
            0..=3 => Form::Procedure,
            4 => Form::EagerProcedure,
            _ => Form::Closure,
        };
        let count = 1 + random.below(8) as usize;
        // Most programs force nothing and scan nothing, so that all that can be deferred is.
        let may_look = random.chance(0.3);
        let later_share = [0.0, 0.5, 1.0, 1.0][random.below(4) as usize];
        // True if operations go from lower ranks to higher ones, as those do whose keys come from others.
        let ascends = random.chance(0.6);
        // The key that all are on, if they are on one.
        let focus = random.chance(0.4).then(|| random.below(shape.keys));
        let tables = if form == Form::Closure { TABLES } else { NUMBERS } as u64;
        let focus_table = random.chance(0.3).then(|| random.below(tables) as usize);
        let may_fail = random.chance(0.2);
        let mut draw = Draw { random, keys: shape.keys, focus, at: 0 };
        let mut steps: Vec<Step> = (0..count)
            .map(|at| {
                draw.at = at;
                let table = focus_table.unwrap_or_else(|| draw.random.below(tables) as usize);
                let what = draw.what(table, form, may_look, may_fail);
                Step { what, later: draw.random.chance(later_share) }
            })
            .collect();
        if ascends {
            // Sources stay what they are: positions of earlier operations.
            let mut ranked: Vec<What> = steps.iter().map(|step| step.what).collect();
            ranked.sort_by_key(|what| what.rank(shape));
            for (at, (step, what)) in steps.iter_mut().zip(ranked).enumerate() {
                step.what = what.map_sources(|source| match source {
                    Source::Earlier(earlier) if earlier >= at => match at.checked_sub(1) {
                        Some(before) => Source::Earlier(before),
                        None => Source::Known(1),
                    },
                    source => source,
                });
            }
        }
        Self { form, yields: random.chance(shape.yield_share), steps }
    }

    /// True if it may end otherwise than by its commit.
    pub(crate) fn may_fail(&self) -> bool {
        let fails = |step: &Step| {
            matches!(step.what, What::Require { .. } | What::Panic { .. } | What::PanicInChange { .. })
        };
        self.steps.iter().any(fails)
    }

    /// The program without one of its operations.
    pub(crate) fn without(&self, removed: usize) -> Self {
        let mut shorter = self.clone();
        shorter.steps.remove(removed);
        for step in &mut shorter.steps {
            step.what = step.what.map_sources(|source| match source {
                Source::Earlier(at) if at == removed => Source::Known(1),
                Source::Earlier(at) if at > removed => Source::Earlier(at - 1),
                source => source,
            });
        }
        shorter
    }
}

/// The choices from which operations are drawn.
struct Draw<'a> {
    random: &'a mut Random,
    keys: u64,
    focus: Option<u64>,
    /// The position of the operation that is drawn.
    at: usize,
}

impl Draw<'_> {
    fn source(&mut self) -> Source {
        match self.random.below(2) {
            0 if self.at > 0 => Source::Earlier(self.random.below(self.at as u64) as usize),
            _ => Source::Known(self.random.below(8)),
        }
    }

    fn key(&mut self) -> Source {
        match self.focus {
            Some(key) if self.random.chance(0.7) => Source::Known(key),
            _ if self.random.chance(0.6) => Source::Known(self.random.below(self.keys)),
            _ => self.source(),
        }
    }

    fn what(&mut self, table: usize, form: Form, may_look: bool, may_fail: bool) -> What {
        let (key, row, amount) = (self.key(), self.source(), self.source());
        let (group, grouped) = (self.random.below(GROUPS), self.random.chance(0.5));
        let direction = if grouped { Direction::Ascending } else { Direction::Descending };
        let limit = 1 + self.random.below(4);
        if may_fail && self.random.chance(0.15) {
            return match self.random.below(4) {
                0 => What::Panic { unless: amount },
                1 => What::PanicInChange { table, key, amount },
                _ => What::Require { holds: amount },
            };
        }
        if may_look && self.random.chance(0.3) {
            let tables = if form == Form::Closure { &ORDERED[..] } else { &ORDERED[..2] };
            let ordered = tables[self.random.below(tables.len() as u64) as usize];
            return match self.random.below(6) {
                0 | 1 => What::Scan { table: ordered, from: self.random.below(self.keys), limit, direction },
                2 => {
                    let table = INDEXED[self.random.below(INDEXED.len() as u64) as usize];
                    What::ScanIndex { table, limit, direction }
                }
                3 => What::ScanQueue,
                4 => What::TakeRow { table: ordered },
                _ => What::Force { value: amount },
            };
        }
        if form == Form::Closure && self.random.chance(0.3) {
            return self.object(amount);
        }
        // Rows are inserted more often than deleted: who finds none has read that, and is no longer tame.
        match self.random.below(23) {
            0 | 1 => What::Read { table, key },
            2 | 3 => What::Add { table, key, amount },
            4 => What::AddToEach { table, key, amount },
            5 => What::Commute { table, key, amount },
            6 => What::CommuteEach { table, key, amount },
            7 => What::Replace { table, key, row },
            8 | 9 => What::Delete { table, key },
            10 if form == Form::Closure => What::Upsert { table, key, row },
            10..=15 => What::Insert { table, key, row, grouped },
            16..=18 => What::Enqueue { group, number: amount, row, grouped },
            19..=21 => What::Take { group },
            _ => What::Unqueue { group, number: amount },
        }
    }

    fn object(&mut self, amount: Source) -> What {
        let index = self.random.below(ELEMENTS);
        match self.random.below(10) {
            0 => What::ReadBox,
            1 => What::SetBox { value: amount },
            2 => What::AddToBox { amount },
            3 => What::ReadElement { index },
            4 => What::SetElement { index, value: amount },
            5 => What::AddToElement { index, amount },
            6 => What::AddToCounter { amount },
            7 => What::SetCounter { value: amount },
            8 => What::GetCounter,
            _ => What::TestCounter { bound: self.random.below(7) },
        }
    }
}

impl What {
    /// The rank of what it touches.
    fn rank(self, shape: &Shape) -> u16 {
        match self {
            What::Read { table, .. }
            | What::Add { table, .. }
            | What::AddToEach { table, .. }
            | What::Commute { table, .. }
            | What::CommuteEach { table, .. }
            | What::Replace { table, .. }
            | What::Delete { table, .. }
            | What::Insert { table, .. }
            | What::Upsert { table, .. }
            | What::TakeRow { table }
            | What::Scan { table, .. }
            | What::ScanIndex { table, .. }
            | What::PanicInChange { table, .. } => shape.ranks[table],
            What::Enqueue { .. } | What::Take { .. } | What::Unqueue { .. } | What::ScanQueue => {
                shape.ranks[TABLES]
            }
            _ => 0,
        }
    }

    fn map_sources(self, mut map: impl FnMut(Source) -> Source) -> Self {
        let mut what = self;
        match &mut what {
            What::Read { key, .. } | What::Delete { key, .. } => *key = map(*key),
            What::Add { key, amount: other, .. }
            | What::AddToEach { key, amount: other, .. }
            | What::Commute { key, amount: other, .. }
            | What::CommuteEach { key, amount: other, .. }
            | What::PanicInChange { key, amount: other, .. }
            | What::Replace { key, row: other, .. }
            | What::Insert { key, row: other, .. }
            | What::Upsert { key, row: other, .. }
            | What::Enqueue { number: key, row: other, .. } => {
                *key = map(*key);
                *other = map(*other);
            }
            What::Unqueue { number: source, .. }
            | What::Force { value: source }
            | What::Require { holds: source }
            | What::Panic { unless: source }
            | What::SetBox { value: source }
            | What::AddToBox { amount: source }
            | What::SetElement { value: source, .. }
            | What::AddToElement { amount: source, .. }
            | What::AddToCounter { amount: source }
            | What::SetCounter { value: source } => *source = map(*source),
            What::TakeRow { .. }
            | What::Scan { .. }
            | What::ScanIndex { .. }
            | What::Take { .. }
            | What::ScanQueue
            | What::ReadBox
            | What::ReadElement { .. }
            | What::GetCounter
            | What::TestCounter { .. } => {}
        }
        what
    }
}
