//! Checker of recorded histories: decides if they are serializable, strictly serializable and opaque, and explains
//! each violation.
//!
//! [`check()`] takes a [`History`](hotrow_core::history::History) and returns a [`Report`], which can be printed.
//! An engine records a history, a file holds one ([`mod@file`]), and a [`HistoryBuilder`] makes one.
//! [`serial_order()`] also returns a serial order of the committed transactions, to compare a run with a replay.
//!
//! # Checked properties
//!
//! The nodes of the *direct serialization graph* are the committed attempts. An edge leads from one to another if
//! the second replaced a version that the first wrote (write-write), read a version that the first wrote
//! (write-read), or replaced a version that the first read (read-write, the anti-dependency). The order of each
//! key's versions is recorded, so the graph is known and not guessed. After Adya:
//!
//! - **Serializable**: the graph has no cycle, no attempt read a version that an attempt without effect wrote
//!   (G1a), and none read a version that its own writer replaced (G1b). This is Adya's PL-3. In addition, the
//!   operations of one transaction on one key ran in the order of its program and saw its own changes (module
//!   `own_order` in the source). Recorders note this only for protocols that defer operations; others run them in
//!   the program's order.
//! - **Strictly serializable**: the graph has no cycle even if an attempt that ended before another began comes
//!   before it.
//! - **Opaque**: the graph has no cycle even if attempts without effect (aborted, rolled back, unfinished) are
//!   nodes as well, which only read. After Guerraoui and Kapałka, with the recorded order of versions. If another
//!   attempt read a version of an unfinished attempt, the unfinished one was committing and counts as committed.
//!
//! Changes that commute ([`WriteKind::Commute`](hotrow_core::history::WriteKind)) and that directly follow one another
//! in a key's order of versions have no edges between each other. A read of one of these versions comes after all of
//! these changes up to it, and before all later ones (module `runs` in the source).
//!
//! Absence is a version: the initial one or the one that a deletion made. Range reads do not record the keys that
//! they missed; these are derived from the bounds and stamps. Module `ranges` in the source argues that each
//! derived edge is sound.
//!
//! # Names of anomalies
//!
//! [`AnomalyKind`] lists the names. For each set of transactions that reach each other, the most specific cycles
//! are reported: cycles of write-write edges alone (G0), then of these and write-read edges (G1c), then with
//! exactly one read-write edge (G-single), then with several (G2-item; G2 if it needs a range read). The search for
//! cycles with one read-write edge ends after four times as many edges as the graph has, plus a million. If that
//! was not enough, a cycle with several is reported although one with a single one may exist. The verdicts do not
//! depend on this.
//!
//! # Limits
//!
//! - Predicates (`ReadKind::Predicate`) of attempts without effect are not recorded, so opacity is judged without
//!   them. Those of committed attempts are reads of the version for which they held.
//! - Immutable tables are not recorded.
//! - Writes that an attempt without effect intended are not recorded. Its range reads are judged on the assumption
//!   that it read each key before it wrote it, or declared the write, as Hotrow's tables do.
//! - Values are not checked. A read is the version that it saw; other tests must check the content of versions.
//! - Range reads and predicates are not checked against the transaction's own order, nor are operations that
//!   another worker has run for it (`steal`).
//! - If an attempt has read a key in a version that was replaced before its range read, the checker cannot tell if
//!   the range read found the key like that or missed it.
//! - A predicate of a version that the same attempt replaced by a change that commutes counts as a test that there is
//!   something to change. Such a change has no other condition.
//! - Of an attempt that commits in pieces, it is not checked that a later piece sees what an earlier one has written.
//! - Versions whose effects cancel out still count. An insertion and a deletion leave an absent key absent, but
//!   with another version. A transaction that saw one of the versions comes before or after accordingly, as with
//!   any value that is written back.
//! - An incomplete history may lack edges, but has no wrong ones.
//!
//! # Cost
//!
//! Time and memory are linear in the number of events, with these exceptions: sorting the keys of objects with
//! range reads, a logarithm for each range read, the insertions and deletions between a range read's two stamps,
//! which are processed one by one, sorting changes that commute, and a logarithm for each read of such changes. A
//! history with the shape of TPC-C, a million transactions with fifty million events, took some fifteen seconds of
//! one processor and two GiB, the history itself included (`examples/million.rs`).
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
pub mod datatype;
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
mod runs;
#[cfg(test)]
mod tests;
mod version_index;
mod versions;

pub use builder::{AttemptInProgress, HistoryBuilder};
pub use check::{Placed, check, serial_order};
pub use malformed::Malformed;
pub use report::{Anomaly, AnomalyKind, AttemptEnd, Counts, Dependency, Level, Report, Step, Transaction};
