//! Segments, cells, items, attempts and workers: the base of every protocol and every datatype of Hotrow.
//!
//! This crate names no protocol and no datatype. A protocol implements [`Protocol`], a datatype implements
//! [`Object`]; neither knows the other, and every protocol serves every datatype.
//!
//! The hot path is forced inline where `debug_assertions` are off. In test builds that would multiply the compile time,
//! because every operation of every datatype exists once per protocol.
//!
//! Reading order: [`Segment`] and [`cell`] (shared state), [`Item`] (an attempt's knowledge of it), [`Object`] and
//! [`Protocol`] (the two sides of a commit), [`ObjectAccess`] (which joins them) and [`Transaction`] (what users see of
//! it), [`Worker`] (attempts and retries), [`Engine`].

mod features;
mod kernel;
mod kit;
mod memory;
#[cfg(all(test, not(loom)))]
mod testing;

pub use crossbeam_epoch as epoch;
pub use features::conflicts::{
    Deadlock, DeadlockPart, DeadlockWait, HotKey, Named, Origin, Reports, Rival, Rivalry,
};
pub use features::deferred::{Access, Deferral};
pub use features::durability::{Durability, EpochClock, LogFollowers, NotDurable, OutsideCommits, WorkerLog};
pub use features::graph::Stealing;
pub use features::operations::{Deferred, Expression, Input};
pub use features::pieces::{PieceOrder, PieceRanks, Pieces};
pub use features::region::Elision;
pub use features::savepoint::{SavedWrite, Saver};
pub use features::session::{AsyncSession, Canceller, Session, SessionMark, SessionOptions};
pub use features::snapshot::{
    AbsenceOnSnapshot, Keeper, KeptSegments, OnSnapshot, OpenSnapshot, Redo, Snapshot, SnapshotKind,
    SnapshotReader, SnapshotReport, Sweep,
};
pub use features::waiting::{TransactFuture, WatchedNodes};
pub use features::{deferred, graph, history, operations, region};
pub use kernel::abort::{
    Abort, BlockedForever, BoxedError, CancelCause, Cancelled, Conflict, DatatypeMisuse, Error, Misuse,
    Reason, RollbackReason,
};
pub use kernel::attempt::{Attempt, WorkerId};
pub use kernel::commit::{CommitStamp, CommitSteps, Committing, OneByOne, Prepared};
pub use kernel::counter::{Counter, CounterPlace, CounterValue, NamedCounts};
pub use kernel::engine::{Engine, EngineId};
pub use kernel::item::{Flags, Item, ItemId, Items, TouchedSegment};
pub use kernel::object::{Object, ObjectMeta};
pub use kernel::policy::RetryPolicy;
pub use kernel::profile::{Isolation, Profile};
pub use kernel::protocol::{
    Absent, Capabilities, ConflictCause, ConflictTarget, EnterError, Protocol, Variant, Variants,
};
pub use kernel::range::{RangeId, RangeLocks, RangeUse};
pub use kernel::read_log::{LoggedRead, LoggedReads, ReadLog};
pub use kernel::statistics::Statistics;
pub use kernel::transaction::{ContextAccess, ObjectAccess, ReadValue, Transaction};
pub use kernel::wait_limit::WaitLimit;
pub use kernel::worker::{OpenTransaction, Worker};
pub use kit::column_groups;
pub use kit::commit_time::{
    Addend, Addition, Applied, CommitTimeChange, CommitTimeChanges, Needed, OutOfRange, Overflow,
};
pub use kit::commuting::{Commuting, CommutingAccess, CommutingArray, CommutingSegment, Seen};
pub use kit::segment::{Presence, Segment};
pub use kit::segment_object::{
    Elements, LogSegment, SegmentAccess, SegmentArray, SegmentObject, Segments, SingleSegment, Valued,
};
pub use kit::slots::{SegmentSlots, Slots};
pub use memory::cell;
pub use memory::cell::{Boxed, Cell, Inline, Plain, Value, ValueField};
pub use memory::column::{Column, Columns};
pub use memory::pin::{EpochBox, Pin, Walk, retire_with};
pub use memory::retained::{HolderKind, MemoryHolder, MemoryLimit, RetainedMemory, retained_bytes};
pub use memory::structure::{KeySpan, Observed, OpenObservation, StructureChange, StructureVersion};
pub use memory::users_code::contained;
