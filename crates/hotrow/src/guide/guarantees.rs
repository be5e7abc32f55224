//! # Guarantees, rules for bodies, limits
//!
//! - **Serializability**, under every protocol: committed transactions have the effects, and their bodies the results, of some serial order.
//!   Failed lookups and scanned ranges are included. Exceptions ask for less: [`Isolation::ReadCommitted`] and
//!   [`untracked`](Transaction::untracked) reads.
//! - **Strict serializability** where [`Engine::is_strict`] is true, that is, under every protocol but `tictoc`: the order agrees with real
//!   time. Under `tictoc` a transaction may precede one that ended before it began. If one of the two reads what the other wrote,
//!   or overwrites what it read, only a chain of others that overlap them can reverse them. Transactions on a [snapshot](super::snapshots)
//!   that is not strict may be a millisecond behind.
//! - **No torn values**, under every protocol: a body never sees half of another transaction's write of one value or row.
//! - **Opacity** where [`Engine::is_opaque`] is true (`tl2`, `drp+opaque`, `deferred-2pl+opaque`, `serial`, `naive-htm`, `none`): an
//!   attempt sees one consistent state from its first read to its end, even if it aborts.
//!
//! # Rules for bodies
//!
//! - **No effects outside** (files, messages, plain shared variables) that must not happen more than once, because a body may run several
//!   times: they belong in [hooks](super::waiting#hooks).
//! - **No waiting** for another thread's transaction except by [`retry`](Transaction::retry): that one may wait for this one.
//! - **No endless loops** on an assumption such as "these two are equal", unless the protocol is opaque: otherwise an attempt that is going to
//!   abort may have read two values that never existed together.
//!
//! A panic, an error or a rollback of such an attempt does no harm: every protocol validates the reads first, and runs the body again if
//! they are not one consistent state. (The panic hook has printed its message by then.) So it is with [deferred
//! operations](super::deferred).
//!
//! # Limits
//!
//! Data live in the memory of one process, and one machine. [Durable](super::durability) tables are also in a directory.
//!
//! # Versions
//!
//! Crate `hotrow` follows semantic versioning, for what it exports, what the guide promises, and the format of recorded histories. The crates
//! named `hotrow-…` may change in any release. A higher minimum version of Rust is a minor release.
//!
//! Before 1.0 a release opens the directories of another one only if its notes say so; an error names the version found. From 1.0 on, a
//! release opens the directories of its major version and of the last release before.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
