//! Segments, cells, items, attempts and workers: the base of every protocol and every datatype of Hotrow.
//!
//! This crate names no protocol and no datatype. A protocol implements [`Protocol`], a datatype implements
//! [`Object`]; neither knows the other, and every protocol serves every datatype.
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
pub use features::by_hand::OpenTransaction;
pub use features::cancelling::Canceller;
#[doc(hidden)]
pub use features::compiled::functions_of;
pub use features::conflicts::{Deadlock, DeadlockWait, HotKey, Named, Rivalry};
pub use features::deferred::DeferralAccess;
pub use features::durability::{EpochClock, OutsideCommits};
pub use features::graph::StealingAccess;
pub use features::operations::ContextAccess;
pub use features::operations::{Deferred, Expression, Input};
pub use features::pieces::Pieces;
pub use features::recorded::HistoryAccess;
pub use features::retries::RetryPolicy;
pub use features::session::{AsyncSession, LocalSession, Session, SessionMark, SessionOptions};
pub use features::snapshot::SnapshotAccess;
pub use features::snapshot::{
    AbsenceOnSnapshot, KeptSegments, OnSnapshot, OpenSnapshot, Sight, Snapshot, SnapshotKind, SnapshotReader,
    SnapshotReport, Sweep,
};
pub use features::stamp::{CommitStamp, CommitSteps, Committing};
pub use features::stamp::{LogFollowers, WorkerLog};
pub use features::waiting::{TransactFuture, WatchedNodes};
pub use features::{deferred, graph, history, operations, region};
pub use kernel::abort::NotDurable;
pub use kernel::abort::{
    Abort, BlockedForever, BoxedError, CancelCause, Cancelled, Conflict, DatatypeMisuse, Error, Misuse,
    Reason, RollbackReason,
};
pub use kernel::attempt::Attempt;
pub use kernel::capabilities::Elision;
pub use kernel::capabilities::LoggedReads;
pub use kernel::capabilities::Stealing;
pub use kernel::capabilities::{Absent, Capabilities};
pub use kernel::capabilities::{Access, Deferral};
pub use kernel::capabilities::{PieceOrder, PieceRanks};
pub use kernel::capabilities::{RangeId, RangeLocks, RangeUse};
pub use kernel::capabilities::{Reports, Rival};
pub use kernel::engine::Engine;
pub use kernel::item::{Flags, Item, ItemId, Items, TouchedSegment};
pub use kernel::loss::DeadlockPart;
pub use kernel::object::Object;
pub use kernel::object::OutOfRange;
pub use kernel::object::{SavedWrite, Saver};
pub use kernel::object_access::{ObjectAccess, ReadValue};
pub use kernel::observations::StructureAccess;
pub use kernel::profile::Durability;
pub use kernel::profile::{Isolation, Profile};
pub use kernel::protocol::{
    Before, ConflictCause, ConflictTarget, EnterError, Look, Protocol, Steps, Variant, Variants,
};
pub use kernel::protocol::{OneByOne, Prepared};
pub use kernel::read_log::{LoggedRead, ReadLog};
pub use kernel::statistics::Statistics;
pub use kernel::statistics::{Counter, CounterPlace, CounterValue, NamedCounts};
pub use kernel::transaction::Transaction;
pub use kernel::worker::Worker;
pub use kit::column_groups;
pub use kit::commit_time::{
    Addend, Addition, Applied, CommitTimeChange, CommitTimeChanges, Needed, Overflow, always,
};
pub use kit::commuting::{Commuting, CommutingAccess, CommutingArray, CommutingSegment, Seen};
pub use kit::segment::{Presence, Segment};
pub use kit::segment_object::{
    Elements, LogSegment, SegmentAccess, SegmentArray, SegmentObject, Segments, SingleSegment, Valued,
};
pub use kit::slots::{SegmentSlots, Slots};
pub use memory::cell;
pub use memory::cell::{Boxed, Cell, Inline, Plain, Value, ValueField};
pub use memory::column::{Column, Columns, Fields, Whole};
pub use memory::course::WaitLimit;
pub use memory::identity::EngineId;
pub use memory::identity::ObjectMeta;
pub use memory::identity::Origin;
pub use memory::identity::WorkerId;
pub use memory::pin::{EpochBox, Pin, Walk, retire_with};
pub use memory::retained::{HolderKind, MemoryHolder, MemoryLimit, RetainedMemory, retained_bytes};
pub use memory::structure::{KeySpan, Observed, OpenObservation, StructureChange, StructureVersion};
pub use memory::users_code::contained;
pub use memory::versions::{Keeper, Redo};
