//! Hotrow's tables and transactions over a distributed store.
//!
//! A [`Cluster`] has the tables of a [`Store`]: the same keys and stored rows as durable tables, read and written by transactions that
//! are strictly serializable among all processes that use the store. The store does little: it reads at a version, and it
//! commits under conditions ([`Store`] says exactly what it promises). All else is done here, without a server of our own.
//!
//! ```
//! use hotrow_remote::{Cluster, MemoryStore};
//! use std::sync::Arc;
//!
//! let cluster = Cluster::over(Arc::new(MemoryStore::new()));
//! let accounts = cluster.table::<String, i64>("accounts").create_or_open()?;
//! cluster.transact(|tx| {
//!     tx.insert(&accounts, "alice".into(), 100)?;
//!     tx.insert(&accounts, "bob".into(), 0)
//! })?;
//! cluster.transact(|tx| {
//!     tx.update(&accounts, "alice", |balance| *balance -= 30)?;
//!     tx.update(&accounts, "bob", |balance| *balance += 30)
//! })?;
//! assert_eq!(cluster.transact(|tx| tx.get(&accounts, "bob"))?, Some(30));
//! # Ok::<(), hotrow_remote::ClusterError>(())
//! ```
//!
//! # Protocol
//!
//! Optimistic concurrency control over versions (Kung and Robinson, "On Optimistic Methods for Concurrency Control", TODS 1981, with
//! the store as the validator).
//!
//! 1. The first read of an attempt is answered at the newest version, R. All others are answered at R.
//! 2. Writes are kept in the process. Own reads and scans find them.
//! 3. One conditional commit validates and writes: each key that was read has the version that it had; no key in a range that was
//!    read has changed after R. A transaction that has only read sends nothing: it took place at R.
//! 4. An attempt whose commit conflicts is run again, after a pause that grows.
//!
//! **Deletions.** The condition on a range need not notice deletions (etcd's does not). So a deletion writes a *tombstone*, a value
//! that says that there is no row, and the condition notices it as any other write. [`Cluster::collect`] deletes tombstones. It
//! first writes the *fence*, a key of its own, at version F, and then deletes only tombstones that are not newer than F. A commit
//! that has read a range has the condition that the fence has not changed after R. So if R < F, the commit fails; if R ≥ F, each
//! tombstone that is collected was one at R already, and its deletion changes nothing that the transaction has read.
//!
//! **Lost answers.** Each commit replaces a *marker*, a key of which nobody else makes use, under the condition that it has the
//! version that its last use gave it. If the answer is lost, the client writes the marker itself under the same condition. If that
//! succeeds, the lost commit has not happened, and never will, because its condition cannot hold any more. If it fails, the marker
//! has been replaced, and its value tells by which of the two. Clocks play no role.
//!
//! # Strict serializability
//!
//! By the promises of [`Store`], states have versions, which ascend in real time. A transaction that writes commits at its version C
//! as if it ran there alone: what it has read at R is the same in the state before C. For a key, because its version is the same
//! (0 if it is absent, though it may have come and gone in between). For
//! a range, because every row that came, changed or went after R has left a key with a version above R, which only a collection can
//! delete; then the fence is newer than R. C lies between the call and its answer, or between the call and the lookup of the
//! marker. A transaction that only reads runs at R, which is not older than any commit that was acknowledged before it began.
//! A body's own error is reported from reads at R, a state that was, and from nothing that was assumed: an [addition](Transaction::add) that has
//! read nothing is assumed to be possible, and a body that fails or waits after one is run again, and reads.
//!
//! # Tables
//!
//! A row is a key for its main columns and one for each [group](trait@hotrow_core::Value) of columns, so that transactions that touch
//! different groups do not conflict. A group of one integer is a *counter*: additions to it, and subtractions
//! [if there is enough](Transaction::subtract_if_enough), read nothing. [Indexes](RemoteTableBuilder::secondary) are tables of their own, whose
//! entries are written in the commit of their rows; [constraints](RemoteTableBuilder::check) are judged before it.
//! [Sequences](Cluster::sequence) give numbers that nobody else gets. A part of a body can be [undone](Transaction::savepoint) alone.
//!
//! # Costs
//!
//! A transaction costs an answer of the store for each read that is not [prefetched](Transaction::prefetch) or in a range that was read, and
//! one for its commit if it writes. The keys of one row are read together. One that only adds costs one answer, which all
//! others share that wait in the same process to add to the same counters.
//!
//! A [procedure](Cluster::execute) is recorded first, and operations that do not depend on each other are sent together, but for scans, which cost
//! an answer each. Of TPC-C, New-Order costs three answers with its commit, Payment three or four, Order-Status four or five, Stock-Level three, and
//! a Delivery of ten orders eleven to fourteen, most for the first order of each district.
//!
//! **A hot row does not scale out.** One that is read and written is changed at most once for each read and commit; one that is added to, as often as
//! threads wait for each answer. Over three etcd servers on a machine of two cores, with 32 threads, that was 200 and 17,000 changes a second
//! (`docs/results/README.md`). A table in memory makes millions: a row that stays hot belongs on one machine.

#![forbid(unsafe_code)]

mod adding;
#[cfg(feature = "etcd")]
mod address;
mod attempt;
mod builder;
mod catalog;
mod cluster;
mod collecting;
mod combining;
mod committing;
mod companions;
mod converting;
mod counters;
pub mod database;
mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod faults;
mod indexes;
mod layout;
mod marker;
pub mod memory;
#[cfg(feature = "moving")]
pub mod moving;
#[cfg(test)]
mod mutants;
mod operations;
mod procedures;
mod recording;
mod resuming;
mod rows;
mod savepoint;
mod scanning;
mod sequence;
mod settings;
mod shared;
mod steps;
mod store;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod transaction;
mod writes;

#[cfg(feature = "etcd")]
pub use address::{AddressError, StoreAddress};
pub use builder::RemoteTableBuilder;
pub use cluster::{Cluster, ClusterCounts};
pub use database::DatabaseStore;
pub use error::{ClusterError, UnknownOutcome};
#[cfg(feature = "etcd")]
pub use etcd::{EtcdIdentity, EtcdOptions, EtcdStore, EtcdTls, EtcdUser};
pub use faults::{CommitFault, Faults, FaultyStore};
pub use indexes::{RemoteIndex, RemoteUniqueIndex};
pub use memory::MemoryStore;
pub use recording::Recording;
pub use sequence::RemoteSequence;
pub use settings::Settings;
pub use store::{
    At, Commit, Freshness, Hold, Limits, Marker, Mutation, Outcome, Page, Read, Span, Stamped, Store,
    StoreError, Version,
};
pub use table::RemoteTable;
pub use transaction::Transaction;
