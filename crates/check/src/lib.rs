//! Judges recorded histories: whether they are serializable, strictly serializable and opaque, and what is wrong
//! if they are not.
//!
//! [`check()`] takes a [`History`](hotrow_core::history::History), as an engine records it, as a file holds it
//! ([`mod@file`]), or as a [`HistoryBuilder`] makes it, and returns a [`Report`], which can be printed.
//! [`serial_order()`] also gives a serial order of the committed transactions, to compare a run with a replay.
//!
//! # What is checked
//!
//! The *direct serialization graph* has the committed attempts as nodes. There is an edge from one to another if
//! the second replaced a version that the first wrote (write-write), read a version that the first wrote
//! (write-read), or replaced a version that the first read (read-write, the anti-dependency). The order of each
//! key's versions is recorded, so the graph is known and not guessed. After Adya:
//!
//! - **Serializable**: the graph has no cycle, no version was read that an attempt without effect wrote (G1a), and
//!   none that its own writer replaced (G1b). This is Adya's PL-3. Besides, operations of one transaction on one key
//!   ran in the order of its program, and saw its own changes (module `own_order` in the source). That is recorded of
//!   protocols that defer operations; what others run, they run in the program's order.
//! - **Strictly serializable**: there is no cycle either if an attempt that ended before another began comes
//!   before it.
//! - **Opaque**: nor if attempts without effect (aborted, rolled back, unfinished) are nodes too, which only
//!   read. After Guerraoui and Kapałka, with the versions' order as recorded. An unfinished attempt of which
//!   somebody has read a version was committing and counts as committed.
//!
//! Absence is a version: the initial one or the one that a deletion made. What range reads tell about keys that
//! they did not find is worked out from their bounds and stamps; module `ranges` in the source argues why each
//! edge that comes of it is sound.
//!
//! # What the anomalies are called
//!
//! [`AnomalyKind`] has the names. Of each set of transactions that reach each other, the most specific cycles are
//! shown: of write-write edges alone (G0), then of those and write-read edges (G1c), then with exactly one
//! read-write edge (G-single), then with several (G2-item; G2 if it needs a range read). Cycles with one
//! read-write edge are looked for until the search has looked at four times as many edges as the graph has, plus
//! a million; if that was not enough, a cycle with several is shown though there may be one with a single one.
//! The verdicts do not depend on that.
//!
//! # What is not seen
//!
//! - Predicates (`ReadKind::Predicate`) of attempts without effect: they are not recorded, so opacity is judged
//!   without them. Those of committed attempts are reads of the version that they held of.
//! - Tables that were declared fixed: nothing is recorded of them.
//! - What an attempt without effect wanted to write. Its range reads are judged on the assumption that it has
//!   read each key before it wrote it, or has said that it will write it, as Hotrow's tables do.
//! - Values. A read is the version that it saw; that a version has the right content is for other tests.
//! - Whether range reads and predicates agree with the transaction's own order, and operations that others have run for
//!   it (`steal`).
//! - What a range read tells of a key that the same attempt has read before, in a version that was replaced before
//!   the range read: that it was found like that is not told from that it was not found.
//! - Effects of versions that cancel out. An insertion and a deletion leave an absent key as absent as before,
//!   but with another version, and whoever saw one version comes before or after accordingly, as with any value
//!   that is written back.
//! - Of an incomplete history, whatever was not recorded: an edge may be missing, but none is wrong.
//!
//! # Cost
//!
//! Time and memory are linear in the events, but for sorting the keys of objects with range reads, and a
//! logarithm for each range read; and but for the insertions and deletions between a range read's two stamps, which
//! are gone through one by one. Of a history with the shape of TPC-C, a million transactions with fifty
//! million events took some fifteen seconds of one processor and two GiB, the history itself included (`examples/million.rs`).
//!
//! # Sources
//!
//! - Adya, "Weak Consistency: A Generalized Theory and Optimistic Implementations for Distributed Transactions",
//!   PhD thesis, MIT, 1999: direct serialization graphs, G0 to G2 (chapter 3), G-single (chapter 4).
//! - Guerraoui and Kapałka, "On the Correctness of Transactional Memory", PPoPP 2008: opacity and its graph.
//! - Papadimitriou, "The Serializability of Concurrent Database Updates", JACM 1979: strict serializability.

mod attempts;
mod builder;
mod check;
mod components;
mod cover;
mod cycle;
mod explain;
pub mod file;
mod graph;
mod judge;
mod malformed;
mod order;
mod ordered;
mod own_order;
mod ranges;
mod report;
#[cfg(test)]
mod tests;
mod version_index;
mod versions;

pub use builder::{AttemptInProgress, HistoryBuilder};
pub use check::{Placed, check, serial_order};
pub use malformed::Malformed;
pub use report::{Anomaly, AnomalyKind, Counts, Dependency, Level, Outcome, Report, Step, Transaction};
