//! What makes a history no history.

use crate::Transaction;

/// The history contradicts itself, so there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Bytes that are no event.
    #[error("worker {worker}: no event at byte {offset} of its events")]
    Event {
        /// The worker's number.
        worker: u32,
        /// Where in its bytes.
        offset: usize,
    },
    /// An event outside of any attempt.
    #[error("worker {worker}: its event {event}, counted from 1, lies outside any attempt")]
    OutsideAttempt {
        /// The worker's number.
        worker: u32,
        /// Which of its events.
        event: usize,
    },
    /// A key's number beyond the table of keys.
    #[error("{transaction} names key number {key}, and there are only {keys} keys")]
    UnknownKey {
        /// Who names it.
        transaction: Transaction,
        /// The number.
        key: u32,
        /// How many keys there are.
        keys: usize,
    },
    /// An object's number beyond the table of objects.
    #[error("object number {object} is named, and there are only {objects} objects")]
    UnknownObject {
        /// The number.
        object: u32,
        /// How many objects there are.
        objects: usize,
    },
    /// An attempt or a range read that ended before it began.
    #[error("{transaction} has a stamp {from} at a beginning and a smaller one, {to}, at the end of it")]
    Backwards {
        /// Whose stamps.
        transaction: Transaction,
        /// The stamp at the beginning.
        from: u64,
        /// The stamp at the end.
        to: u64,
    },
    /// A range read that went on after its attempt had ended.
    #[error("{transaction} read a range until stamp {to}, and had ended at stamp {end}")]
    RangeBeyondEnd {
        /// The transaction with the range read.
        transaction: Transaction,
        /// The stamp after the range read.
        to: u64,
        /// The stamp at the attempt's end.
        end: u64,
    },
    /// Version 0, which is the state before the history, was written.
    #[error("{transaction} wrote version 0 of {key}, which is the state before the history")]
    VersionZero {
        /// Who wrote it.
        transaction: Transaction,
        /// The key.
        key: String,
    },
    /// One version was written twice.
    #[error("version {version} was written twice: of {first} and of {second}")]
    WrittenTwice {
        /// The version.
        version: u64,
        /// A key that it is of.
        first: String,
        /// The other key, or the same one.
        second: String,
    },
    /// Two writes replaced the same version.
    #[error("version {replaced} of {key} was replaced twice: by version {first} and by version {second}")]
    ReplacedTwice {
        /// The key.
        key: String,
        /// What was replaced.
        replaced: u64,
        /// By one version.
        first: u64,
        /// And by the other.
        second: u64,
    },
    /// A version was read or replaced as one key's and written as another's.
    #[error("version {version} is named as one of {named}, but it was written as one of {written}")]
    OtherKey {
        /// The version.
        version: u64,
        /// The key that it was read or replaced as.
        named: String,
        /// The key that it was written as.
        written: String,
    },
    /// The versions of a key replace one another in a circle.
    #[error("the versions of {key} replace one another in a circle, version {version} among them")]
    Circle {
        /// The key.
        key: String,
        /// One of the versions.
        version: u64,
    },
    /// A version that nobody wrote, in a history that says that it is complete.
    #[error(
        "the history is incomplete: version {version} of {key} was read or replaced, but nobody wrote it"
    )]
    Incomplete {
        /// The key.
        key: String,
        /// The version.
        version: u64,
    },
    /// More attempts, versions or graph nodes than fit the checker's numbers.
    #[error("the history is too large: more than {most} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many fit.
        most: usize,
    },
}
