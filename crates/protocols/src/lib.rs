//! Hotrow's concurrency-control protocols, one module each, and the registry that names them.
//!
//! A protocol knows headers, marks and items; it names no datatype. All protocols follow the one path that
//! [`hotrow_core::Protocol`] describes, so a reader who knows one can read them all.
//!
//! # Capabilities
//!
//! | capability | protocols |
//! |---|---|
//! | [`Deferral`](hotrow_core::Deferral) | `drp`, `deferred-2pl` |
//! | [`Stealing`](hotrow_core::Stealing) | `steal`, `steal-basic` |
//! | [`RangeLocks`](hotrow_core::RangeLocks) | `2pl-mcs`, `steal`, `steal-basic` |
//! | [`LoggedReads`](hotrow_core::LoggedReads) | `occ`, `chop`, `chop-htm`, `dbx`, `ic3`, `tl2`, `tictoc`; `drp` where it runs operations at once |
//! | [`PieceOrder`](hotrow_core::PieceOrder) | `ic3` |
//! | [`Elision`](hotrow_core::Elision) | `naive-htm` |
//! | [`Reports`](hotrow_core::Reports) | all but `tictoc`, `mocc`, `serial`, `naive-htm` and `none` |
//!
//! # Waits
//!
//! | protocol | waits for | and is woken |
//! |---|---|---|
//! | `occ`, `tl2`, `tictoc`, `mocc`, `chop`, `dbx` | a lock, for a bounded number of turns (`lock_wait`); then it aborts | |
//! | `wait-die`, `wound-wait` | a lock, at its own worker's event (`worker_states`) | by the grant, a call, the end of its nap, a wound, the deadline |
//! | `plor` | the right to write, at its own event; a commit or an older reader, at the other's event | as above, or by the other's end |
//! | `2pl-mcs`, `steal` | its place at the head of a lock's queue; a waiting thread of `steal` runs operations | by the one ahead, as a deadlock's victim, by the deadline |
//! | `drp`, `ic3` | transactions before it, until they have passed a rank (`drp::progress`) | by their progress; no deadline, and no circle |
//! | `serial` | the engine's lock | by its release, the deadline |
//!
//! # Absence
//!
//! A failed lookup and a scan observe buckets and leaves. Each commit checks these ([`hotrow_core::Attempt::check_structures`]): the version
//! of a node is the one observed, or, if a part of a leaf was observed only, a second look finds the same records in the part, and no
//! record was removed meanwhile (`tables/src/index/ordered/part.rs`).
//!
//! *If the check succeeds, no key that a commit had made present has come or gone in the part, from the observation to the
//! beginning of the check.* It would not be enough that the same keys are there at the check: a key may have come and gone, and the attempt
//! may have read something that was written in between.
//!
//! *An insertion after the check latches the leaf after the check.* The latch is a sequentially consistent access, and comes after the
//! check's last load of that leaf's version. So each protocol may take an unchanged version, or a second look, for a lock on the absent keys:
//!
//! | protocol | use of the two facts |
//! |---|---|
//! | `occ`, `chop`, `dbx`, `mocc`, `plor+optimistic` | they hold at the first check, when all writes are locked |
//! | `ic3` | the same; and the absent keys are entered in its lists (`ic3/accessors.rs`) |
//! | `no-wait`, `wait-die`, `wound-wait`, `plor`, `2pl-mcs`, `steal` | they hold at the beginning of the check, when all locks are held |
//! | `tl2`, `drp+opaque` | the same; and an extension checks after it has loaded the new bound: a commit up to that bound had latched before, so its insertion is found, or counted as removed |
//! | `tictoc` | a commit raises `observed` before it checks; an insertion that the check does not find latches later, and loads `observed` after that |
//! | `drp` | they hold at the check, which waits first for index changes of attempts that have finished before |
//!
//! An attempt that has observed one leaf at two versions has no contradiction in that: each observation is checked by itself.

// Without `Any`, nothing but models reaches the protocols, and these reach parts of them.
#![cfg_attr(loom, allow(dead_code, unreachable_pub))]

#[cfg(not(loom))]
mod any;
mod chop;
#[cfg(not(loom))]
mod compiled;
mod crowd;
mod drp;
mod host;
mod ic3;
mod latch;
mod lock_wait;
mod locking;
mod mocc;
mod naive_htm;
mod none;
mod occ;
mod per_worker;
mod plor;
mod queue_place;
mod reads;
mod registry;
mod removals;
mod serial;
mod stable;
mod steal;
mod striped;
mod tictoc;
mod tl2;
mod version;
mod worker_states;

#[cfg(not(loom))]
pub use any::{Any, AnyHeader, AnyLocal, AnyMark, AnyOptions};
#[cfg(not(loom))]
#[doc(hidden)]
pub use compiled::functions;
/// In models, whose words cannot be made of zero bytes, the first protocol stands for all.
#[cfg(loom)]
pub use occ::Occ as Any;
pub use occ::{Occ, OccLocal};
pub use registry::{
    PROTOCOLS, ProtocolInfo, UnknownProtocol, Visitor, find, for_each_concurrent_protocol, for_each_protocol,
    names, with_measured_protocol, with_protocol,
};
pub use version::{Version, VersionWord};
