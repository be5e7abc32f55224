//! # Guarantees, rules for bodies, limits
//!
//! - **Serializability**, under every protocol, of all transactions that write, and of those that only read unless they declare that
//!   they need less ([`Isolation::ReadCommitted`]): committed transactions have the effects, and their bodies the results, of some
//!   serial order. Failed lookups and scanned ranges are included.
//! - **That order agrees with real time** (strict serializability) where [`Variants::is_strict`] is true, that is,
//!   everywhere but under `tictoc`. There a transaction may precede, in the order, another one that ended before it
//!   began. If one of two transactions reads what the other wrote, or overwrites what it read, they are never
//!   reversed by themselves; that takes others that overlap them.
//! - **No torn values**, under every protocol: a body never sees half of another transaction's write of one
//!   value or row, not even in an attempt that aborts.
//! - **Opacity** only where [`Variants::is_opaque`] is true (`tl2`, `drp+opaque`, and trivially `serial` and
//!   `none`): an attempt sees one consistent state from its first read to its end, even if it aborts.
//!
//! Under the other protocols an attempt that is going to abort may have read two values that never existed together.
//! The commit detects this. Until then the body must not do anything that makes sense only in a consistent state,
//! because nothing validates its reads before the commit:
//!
//! - **No endless loops** on an assumption such as "these two are equal".
//!
//! A panic, an error or a rollback of such a body does no harm. Every protocol validates the attempt's reads first,
//! and propagates it only if they are one consistent state. Otherwise the body runs again. (The panic hook has
//! printed its message by then.) The same holds for conditions and panics of [deferred
//! operations](crate::guide::deferred).
//!
//! Under every protocol a body may run several times, so it must obey two more rules:
//!
//! - **No effects outside** (files, messages, plain shared variables) that may not happen more than once. They belong in
//!   [hooks](crate::guide::waiting).
//! - **No waiting** for a transaction of another thread but by [`retry`](Transaction::retry): that transaction may have to wait until this one has ended,
//!   and under protocols that lock it may wait for a lock of this one. (The example of the conflict report waits in
//!   this way to show a conflict. That works only because nothing else runs.)
//!
//! # Limits
//!
//! Data live in the memory of one process; tables are durable in a database that was opened at a directory ([`durable`](crate::guide::durability), with the feature of that name). There is no network, no SQL, no distribution.
//!
//! # Versions
//!
//! Crate `hotrow` follows semantic versioning: what it exports, the guide's promises, and the format of recorded histories. The
//! crates whose names begin with `hotrow-` are its parts. Their versions move with it, but what they export beyond `hotrow` may
//! change in any release. A higher minimum version of Rust is a minor release.
//!
//! A directory that a release has written is opened by that release, and before 1.0 by no other one unless its notes say so: the error names
//! the version of the format that was found. From 1.0 on, a release opens the directories of all releases with the same major
//! version, and of the last one before. The types of rows may [change](crate::guide::durability#changing-the-program) at any time.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
