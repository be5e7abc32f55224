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

mod abort;
mod address_index;
mod address_map;
mod arena;
mod attempt;
pub mod cell;
mod column;
pub mod column_groups;
mod commit;
mod commit_time;
mod commuting;
mod conflicts;
mod counter;
pub mod deferred;
mod durability;
mod end_hooks;
mod engine;
mod events;
pub mod graph;
pub mod history;
mod hooks;
mod item;
mod object;
pub mod operations;
mod pieces;
mod pin;
mod policy;
mod profile;
mod protocol;
mod range;
mod read_log;
mod recorded;
pub mod region;
mod retained;
mod savepoint;
mod segment;
mod segment_object;
mod session;
#[cfg(feature = "serde")]
mod shown;
mod slots;
mod snapshot;
mod statistics;
mod structure;
#[cfg(all(test, not(loom)))]
mod testing;
mod transaction;
mod unacknowledged;
mod users_code;
mod wait_limit;
mod waiting;
mod worker;

pub use abort::{
    Abort, BlockedForever, BoxedError, CancelCause, Cancelled, Conflict, Error, Misuse, Reason,
    RollbackReason,
};
pub use attempt::{Attempt, WorkerId};
pub use cell::{Boxed, Cell, Inline, Plain, Value, ValueField};
pub use column::{Column, Columns};
pub use commit::{CommitStamp, CommitSteps, Committing, OneByOne, Prepared};
pub use commit_time::{
    Addend, Addition, Applied, CommitTimeChange, CommitTimeChanges, Needed, OutOfRange, Overflow,
};
pub use commuting::{Commuting, CommutingAccess, CommutingArray, CommutingSegment, Seen};
pub use conflicts::{Deadlock, DeadlockPart, DeadlockWait, HotKey, Named, Origin, Reports, Rival, Rivalry};
pub use counter::{Counter, CounterPlace, CounterValue, NamedCounts};
pub use crossbeam_epoch as epoch;
pub use deferred::{Access, Deferral};
pub use durability::{Durability, EpochClock, LogFollowers, NotDurable, OutsideCommits, WorkerLog};
pub use engine::{Engine, EngineId};
pub use graph::Stealing;
pub use item::{Flags, Item, ItemId, Items, TouchedSegment};
pub use object::{Object, ObjectMeta};
pub use operations::{Deferred, Expression, Input};
pub use pieces::{PieceOrder, PieceRanks, Pieces};
pub use pin::{EpochBox, Pin, Walk, retire_with};
pub use policy::RetryPolicy;
pub use profile::{Isolation, Profile};
pub use protocol::{
    Absent, Capabilities, ConflictCause, ConflictTarget, EnterError, Protocol, Variant, Variants,
};
pub use range::{RangeId, RangeLocks, RangeUse};
pub use read_log::{LoggedRead, LoggedReads, ReadLog};
pub use region::Elision;
pub use retained::{HolderKind, MemoryHolder, MemoryLimit, RetainedMemory, retained_bytes};
pub use savepoint::{SavedWrite, Saver};
pub use segment::{Presence, Segment};
pub use segment_object::{
    Elements, LogSegment, SegmentAccess, SegmentArray, SegmentObject, Segments, SingleSegment, Valued,
};
pub use session::{AsyncSession, Canceller, Session, SessionMark, SessionOptions};
pub use slots::{SegmentSlots, Slots};
pub use snapshot::{
    AbsenceOnSnapshot, Keeper, KeptSegments, OnSnapshot, OpenSnapshot, Redo, Snapshot, SnapshotKind,
    SnapshotReader, SnapshotReport, Sweep,
};
pub use statistics::Statistics;
pub use structure::{KeySpan, Observed, OpenObservation, StructureChange, StructureVersion};
pub use transaction::{ContextAccess, ObjectAccess, ReadValue, Transaction};
pub use users_code::contained;
pub use wait_limit::WaitLimit;
pub use waiting::{TransactFuture, WatchedNodes};
pub use worker::{OpenTransaction, Worker};
