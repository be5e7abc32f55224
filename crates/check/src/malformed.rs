//! Errors of histories that contradict themselves.

use crate::Transaction;

/// The history contradicts itself, so there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Some bytes are not an event.
    #[error("worker {worker}: no event at byte {offset} of its events")]
    Event {
        /// Number of the worker.
        worker: u32,
        /// Offset in the bytes of its events.
        offset: usize,
    },
    /// An event lies outside any attempt.
    #[error("worker {worker}: its event {event}, counted from 1, lies outside any attempt")]
    OutsideAttempt {
        /// Number of the worker.
        worker: u32,
        /// Position among the worker's events, from 1.
        event: usize,
    },
    /// A key's number is beyond the table of keys.
    #[error("{transaction} names key number {key}, and there are only {keys} keys")]
    UnknownKey {
        /// Transaction that names the key.
        transaction: Transaction,
        /// Number named.
        key: u32,
        /// Number of keys.
        keys: usize,
    },
    /// An object's number is beyond the table of objects.
    #[error("object number {object} is named, and there are only {objects} objects")]
    UnknownObject {
        /// Number named.
        object: u32,
        /// Number of objects.
        objects: usize,
    },
    /// An attempt or a range read ended before it began.
    #[error("{transaction} has a stamp {from} at a beginning and a smaller one, {to}, at the end of it")]
    Backwards {
        /// Transaction with the stamps.
        transaction: Transaction,
        /// Stamp at the beginning.
        from: u64,
        /// Stamp at the end.
        to: u64,
    },
    /// A range read went on after its attempt had ended.
    #[error("{transaction} read a range until stamp {to}, and had ended at stamp {end}")]
    RangeBeyondEnd {
        /// Transaction with the range read.
        transaction: Transaction,
        /// Stamp after the range read.
        to: u64,
        /// Stamp at the attempt's end.
        end: u64,
    },
    /// Version 0, which is the state before the history, was written.
    #[error("{transaction} wrote version 0 of {key}, which is the state before the history")]
    VersionZero {
        /// Transaction that wrote it.
        transaction: Transaction,
        /// The key.
        key: String,
    },
    /// One version was written twice.
    #[error("version {version} was written twice: of {first} and of {second}")]
    WrittenTwice {
        /// The version.
        version: u64,
        /// A key of which the version was written.
        first: String,
        /// The other key, or the same one.
        second: String,
    },
    /// Two writes replaced the same version.
    #[error("version {replaced} of {key} was replaced twice: by version {first} and by version {second}")]
    ReplacedTwice {
        /// The key.
        key: String,
        /// Version that was replaced twice.
        replaced: u64,
        /// Version of the one write.
        first: u64,
        /// Version of the other write.
        second: u64,
    },
    /// A version was read or replaced as one key's, but written as another's.
    #[error("version {version} is named as one of {named}, but it was written as one of {written}")]
    OtherKey {
        /// The version.
        version: u64,
        /// Key as which it was read or replaced.
        named: String,
        /// Key as which it was written.
        written: String,
    },
    /// The versions of a key replace one another in a circle.
    #[error("the versions of {key} replace one another in a circle, version {version} among them")]
    Circle {
        /// The key.
        key: String,
        /// One of these versions.
        version: u64,
    },
    /// A history that claims to be complete has a version that no attempt wrote.
    #[error(
        "the history is incomplete: version {version} of {key} was read or replaced, but nobody wrote it"
    )]
    Incomplete {
        /// The key.
        key: String,
        /// The version.
        version: u64,
    },
    /// The history has more attempts, versions or graph nodes than the checker's numbers can count.
    #[error("the history is too large: more than {most} {what}")]
    TooLarge {
        /// Name of the things that are too many.
        what: &'static str,
        /// Largest number of them.
        most: usize,
    },
}
