//! Mutants of protocols that defer: what only a protocol with lines and a certification can do wrong.
//!
//! All are one protocol in the manner of `deferred-2pl+exclusive`: lines are joined in the order of ranks, each at its
//! turn, and left at the end. A word beside each line keeps installations apart from each other and from looks, so that
//! no fault is undefined behaviour, and every value that is seen is whole.

use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::spin::Spin;
use hotrow::sync::thread;
use hotrow::{Protocol, Reason};
use hotrow_core::{
    Absent, Attempt, Before, ConflictCause, ConflictTarget, Deferral, Flags, Item, ItemId, Look, Prepared,
    Steps,
};

mutants! { DeferredMutant, STRICT = true:
    /// The reads of a wild attempt are not certified.
    Uncertified = "uncertified-attempts",
    /// Reads are certified, buckets and leaves are not.
    StructuresUncertified = "uncertified-absence",
    /// A line is left when the last intention on its segment has run, before the value is installed.
    LeftEarly = "lines-left-before-their-values-are-installed",
    /// Deferred reads do not line up.
    ReadOutOfLine = "deferred-reads-out-of-line",
}

pub(crate) struct DeferredMutant {
    fault: Fault,
}

/// How many have joined, how many have left, and a count of beginnings and ends of installations.
#[derive(Default)]
pub(crate) struct Line {
    joined: AtomicU64,
    done: AtomicU64,
    installing: AtomicU64,
}

impl Line {
    /// The version, if nobody is in line.
    fn version(&self) -> Option<u64> {
        let joined = self.joined.load(Ordering::SeqCst);
        (self.done.load(Ordering::SeqCst) == joined).then_some(joined)
    }

    /// Begins a look while nothing is installed.
    fn begin_whole(&self) -> u64 {
        loop {
            let before = self.installing.load(Ordering::SeqCst);
            if before.is_multiple_of(2) {
                return before;
            }
            thread::yield_now();
        }
    }

    /// True if nothing was installed meanwhile.
    fn is_whole(&self, before: u64) -> bool {
        self.installing.load(Ordering::SeqCst) == before
    }

    /// Looks while nobody is in line.
    fn stable<V>(&self, mut load: impl FnMut() -> V) -> Result<(u64, V), Reason> {
        let mut spin = Spin::new();
        loop {
            if let Some(version) = self.version() {
                let before = self.begin_whole();
                let value = load();
                if self.is_whole(before) && self.joined.load(Ordering::SeqCst) == version {
                    return Ok((version, value));
                }
            }
            if !spin.turn() {
                return Err(Reason::ReadLocked);
            }
        }
    }

    /// Joins, and waits for the turn.
    fn join(&self) -> u64 {
        let position = self.joined.fetch_add(1, Ordering::SeqCst);
        while self.done.load(Ordering::SeqCst) != position {
            thread::yield_now();
        }
        position
    }

    fn leave(&self) {
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    fn begin_installing(&self) {
        loop {
            let before = self.installing.load(Ordering::SeqCst) & !1;
            let begun =
                self.installing.compare_exchange(before, before + 1, Ordering::SeqCst, Ordering::SeqCst);
            if begun.is_ok() {
                return;
            }
            thread::yield_now();
        }
    }

    fn end_installing(&self) {
        self.installing.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    /// The version read.
    version: u64,
    /// Its position in line, if it has been in line, and whether it still is.
    position: Option<u64>,
    is_in_line: bool,
}

#[derive(Default)]
pub(crate) struct Local {
    has_read: bool,
    has_begun: bool,
    has_finished: bool,
}

type Result<T, E = ConflictCause> = std::result::Result<T, E>;

impl DeferredMutant {
    fn with(fault: Fault) -> Self {
        Self { fault }
    }

    fn is_wild(attempt: &Attempt<Self>) -> bool {
        attempt.local.has_read || attempt.has_structures() || attempt.items.has_predicates()
    }

    /// True if an item is to be in line.
    fn lines_up(&self, attempt: &Attempt<Self>, id: ItemId) -> bool {
        let item = attempt.items.get(id);
        let reads = item.is(Flags::DEFERRED) && self.fault != Fault::ReadOutOfLine;
        (reads || item.is_any(&[Flags::WRITE, Flags::DEFERRED_WRITE])) && !item.is(Flags::INSERTED)
    }

    fn leave(attempt: &mut Attempt<Self>, id: ItemId) {
        let item = attempt.items.get_mut(id);
        if std::mem::take(&mut item.mark.is_in_line) {
            item.header().leave();
        }
    }

    fn leave_all(attempt: &mut Attempt<Self>) {
        for id in attempt.items.ids() {
            Self::leave(attempt, id);
        }
    }

    fn each_inserted(attempt: &mut Attempt<Self>, mut visit: impl FnMut(&mut Attempt<Self>, ItemId)) {
        for at in 0..attempt.items.writes().len() {
            let id = attempt.items.writes()[at];
            if attempt.items.get(id).is(Flags::INSERTED) {
                visit(attempt, id);
            }
        }
    }

    fn certify(&self, attempt: &mut Attempt<Self>) -> Result<()> {
        if !Self::is_wild(attempt) || self.fault == Fault::Uncertified {
            return Ok(());
        }
        attempt.check_predicates(|attempt, id| {
            let item = attempt.items.get(id);
            if item.is(Flags::LOCKED) {
                loop {
                    let before = item.header().begin_whole();
                    let holds = attempt.predicate_holds(id);
                    if item.header().is_whole(before) {
                        return Ok(holds);
                    }
                }
            }
            let stable = item.header().stable(|| attempt.predicate_holds(id));
            let (version, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
            let item = attempt.items.get_mut(id);
            if !item.is(Flags::READ) {
                item.mark.version = version;
                item.set(Flags::READ);
            }
            Ok(holds)
        })?;
        for (id, item) in attempt.items.entries() {
            let now = match item.mark.position {
                Some(position) => Some(position),
                None => item.header().version(),
            };
            if item.is(Flags::READ) && now != Some(item.mark.version) {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
        }
        if self.fault == Fault::StructuresUncertified { Ok(()) } else { attempt.check_structures() }
    }

    fn undeclared(attempt: &Attempt<Self>) -> ConflictCause {
        let mut ids = attempt.items.ids();
        let culprit = ids.find(|id| attempt.items.get(*id).is_any(&[Flags::READ, Flags::PREDICATE]));
        match culprit {
            Some(item) => ConflictCause::item(Reason::Undeclared, item),
            None => ConflictCause::new(Reason::Undeclared, ConflictTarget::Structure(0)),
        }
    }
}

/// In place of a version before a load: the attempt has its turn. (A test does not count so far.)
const IN_LINE: u64 = u32::MAX as u64;

// SAFETY: loads are stable by the header, and each write is installed once, at the attempt's turn. The faults are in what is
// checked, not in that.
unsafe impl Protocol for DeferredMutant {
    type Header = Line;
    type Mark = Mark;
    type Local = Local;
    type Deferral = Self;
    type Stealing = Absent;
    type RangeLocks = Absent;
    type LoggedReads = Absent;
    type PieceOrder = Absent;
    type Elision = Absent;
    type Reports = Absent;
}

impl Steps<DeferredMutant> for DeferredMutant {
    fn begin(&self, attempt: &mut Attempt<Self>) {
        attempt.local = Local::default();
    }

    fn before_load(&self, attempt: &mut Attempt<Self>, id: ItemId, _: Look) -> Result<Before> {
        let item = attempt.items.get(id);
        let version = if item.is(Flags::LOCKED) {
            IN_LINE
        } else {
            let version = item.header().version();
            version.ok_or(ConflictCause::item(Reason::ReadLocked, id).passing())?
        };
        Ok(Before(version << 32 | item.header().begin_whole()))
    }

    fn after_load(&self, attempt: &mut Attempt<Self>, id: ItemId, look: Look, before: Before) -> Result<()> {
        let item = attempt.items.get_mut(id);
        let (version, installing) = (before.0 >> 32, before.0 & u64::from(u32::MAX));
        let is_whole = item.header().is_whole(installing);
        if !is_whole || version != IN_LINE && item.header().joined.load(Ordering::SeqCst) != version {
            return Err(ConflictCause::item(Reason::ReadLocked, id).passing());
        }
        if version == IN_LINE || look == Look::Peek {
            return Ok(());
        }
        if attempt.local.has_begun && item.is(Flags::DEFERRED) && self.fault == Fault::ReadOutOfLine {
            return if look == Look::ReadForUpdate { self.write(attempt, id) } else { Ok(()) };
        }
        if item.is(Flags::READ) && item.mark.version != version {
            return Err(ConflictCause::item(Reason::ReadChanged, id));
        }
        item.mark.version = version;
        item.set(Flags::READ);
        attempt.local.has_read = true;
        if look == Look::ReadForUpdate { self.write(attempt, id) } else { Ok(()) }
    }

    fn write(&self, attempt: &mut Attempt<Self>, id: ItemId) -> Result<()> {
        let item = attempt.items.get(id);
        if attempt.local.has_begun && !item.is(Flags::LOCKED) {
            return Err(ConflictCause::item(Reason::Undeclared, id));
        }
        Ok(())
    }

    fn new_locked_header(&self, _attempt: &Attempt<Self>) -> Line {
        Line { joined: AtomicU64::new(1), ..Line::default() }
    }

    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<()> {
        if !attempt.local.has_begun {
            self.line_up(attempt, None)?;
        }
        self.validate_before_rollback(attempt)
    }

    fn finish(&self, prepared: Prepared<'_, Self>) {
        let begin = |item: &Item<Self>| item.header().begin_installing();
        let attempt = prepared.install_all(begin, |item| item.header().end_installing());
        Self::leave_all(attempt);
        Self::each_inserted(attempt, |attempt, id| attempt.items.get(id).header().leave());
    }

    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<()> {
        match (attempt.local.has_finished, Self::is_wild(attempt)) {
            (true, true) => Err(Self::undeclared(attempt)),
            _ => self.certify(attempt),
        }
    }

    fn abort(&self, attempt: &mut Attempt<Self>) {
        Self::each_inserted(attempt, |attempt, id| attempt.items.get(id).header().leave());
        Self::leave_all(attempt);
    }
}

impl Deferral<Self> for DeferredMutant {
    fn of(protocol: &Self) -> Option<&Self> {
        Some(protocol)
    }

    fn deferred(&self, _attempt: &mut Attempt<Self>, _item: ItemId, _rank: u64) {}

    fn line_up(&self, attempt: &mut Attempt<Self>, below: Option<u64>) -> Result<()> {
        attempt.local.has_begun = true;
        let mut plan = Vec::new();
        for id in attempt.items.ids() {
            let item = attempt.items.get(id);
            if self.lines_up(attempt, id) && item.mark.position.is_none() {
                plan.push((item.rank(), item.segment().addr(), id));
            }
        }
        plan.sort_unstable();
        for (rank, _, id) in plan {
            if below.is_some_and(|below| rank >= below) {
                break;
            }
            let item = attempt.items.get_mut(id);
            item.mark.position = Some(item.header().join());
            item.mark.is_in_line = true;
            item.set(Flags::LOCKED);
        }
        attempt.local.has_finished = below.is_none() && !Self::is_wild(attempt);
        Ok(())
    }

    fn acquire_in_order(&self, attempt: &mut Attempt<Self>, id: ItemId, _wait: bool) -> Result<bool> {
        Ok(attempt.items.get(id).is(Flags::LOCKED) || !self.lines_up(attempt, id))
    }

    fn segment_done(&self, attempt: &mut Attempt<Self>, id: ItemId) {
        if self.fault == Fault::LeftEarly && attempt.local.has_finished {
            Self::leave(attempt, id);
            thread::yield_now();
        }
    }
}
