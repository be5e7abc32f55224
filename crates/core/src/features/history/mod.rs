//! Histories: the reads and writes of each attempt of a run, by version.
//!
//! # Recording
//!
//! A history is about *keys*: an object's number and bytes that name a segment of it permanently (a table's key, an
//! array's index), whatever record or address holds it at the time. While an engine records, each touched key has one
//! word beside the data, which belongs to the recorder: the number of the installed version. A write takes a new number
//! from the engine's counter and swaps it into the word right after it has installed the value, under the lock that the
//! protocol holds for that. A read loads the word in the same `load` as the value, so that the protocol's own check
//! makes the two stable together. The history therefore holds the value that was *really* seen, not the protocol's own
//! version words: a protocol that publishes a version before its value is caught.
//!
//! Absence is a version too: the one that the last delete made, or version 0. A failed lookup loads the word between
//! the lookup and a second look at the version of the bucket or leaf. A scan records its bounds and the counter before
//! and after it. The keys that it found have reads of their own, and `check` works out which keys it must have found
//! absent.
//!
//! Deferred operations run in another order than that of their program. Under a protocol that defers, an attempt's
//! events therefore name the place in the program of the operation that they belong to. Changes are recorded when they
//! are made (and not only when they are installed), and so are reads of the attempt's own changes. `check` compares the
//! order in which operations on one key ran with that of the program.
//!
//! # Cost
//!
//! Nothing measurable while off: a test of one word per attempt and of another one per operation. While on, each
//! operation looks up its key's word under a mutex (one of many). So recording slows a run down and changes its
//! interleavings, but no more than another cache miss per operation would.

mod attempt;
mod event;
pub(crate) mod recorder;

pub use crate::kernel::object::WriteKind;
pub use event::{Ended, Event, Events, Malformed, ReadKind};

use hotrow_sync::Arc;
use std::fmt;

/// A recording in progress. See [`Engine::record_history`](crate::Engine::record_history).
#[derive(Debug)]
pub struct Recording {
    pub(crate) recorder: Arc<recorder::Recorder>,
    pub(crate) protocol: String,
    pub(crate) opaque: bool,
    pub(crate) strict: bool,
}

impl Recording {
    /// True if its memory limit has been reached: transactions that begin now are not recorded.
    pub fn is_full(&self) -> bool {
        !self.recorder.is_open()
    }

    /// Ends the recording and returns the history.
    ///
    /// Call it when no transaction is running. Otherwise the history has only a part of an attempt in progress, and
    /// others may have read its later writes.
    pub fn finish(self) -> History {
        self.recorder.finish(&self.protocol, self.opaque, self.strict)
    }
}

/// The recorded history of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The protocol's name.
    pub protocol: String,
    /// True if the protocol claims to be opaque.
    pub opaque: bool,
    /// True if the protocol claims that its serial order agrees with real time.
    pub strict: bool,
    /// True if all attempts were recorded; otherwise only those that began before the memory limit was reached.
    pub complete: bool,
    /// The names of the objects, by their numbers.
    pub objects: Vec<String>,
    /// The keys, by their numbers.
    pub keys: Keys,
    /// The events of each worker.
    pub workers: Vec<WorkerEvents>,
}

/// The events of one worker, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerEvents {
    /// The worker's number.
    pub worker: u32,
    /// Its events, encoded.
    pub bytes: Vec<u8>,
}

impl WorkerEvents {
    /// The events.
    pub fn events(&self) -> Events<'_> {
        Events::new(&self.bytes)
    }
}

/// The keys of a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// For each key: its object, the end of its order in `bytes`, and the end of its text.
    places: Vec<(u32, usize, usize)>,
    bytes: Vec<u8>,
}

/// One key of a history.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyName<'a> {
    /// The number of its object.
    pub object: u32,
    /// Bytes that differ between the keys of an object and, if the object has an order, compare as the keys do.
    pub order: &'a [u8],
    /// The key for people; UTF-8 if it was recorded by an engine.
    pub text: &'a [u8],
}

impl fmt::Debug for KeyName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.object, String::from_utf8_lossy(self.text))
    }
}

impl Keys {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns a key by its number, if there is one.
    pub fn get(&self, number: u32) -> Option<KeyName<'_>> {
        let number = number as usize;
        let &(object, order, text) = self.places.get(number)?;
        let begin = number.checked_sub(1).map_or(0, |before| self.places[before].2);
        Some(KeyName { object, order: &self.bytes[begin..order], text: &self.bytes[order..text] })
    }

    /// Adds a key and returns its number.
    ///
    /// # Panics
    ///
    /// After four billion keys.
    pub fn push(&mut self, key: KeyName<'_>) -> u32 {
        let number = u32::try_from(self.places.len()).expect("fewer than 2^32 keys");
        self.bytes.extend_from_slice(key.order);
        let order = self.bytes.len();
        self.bytes.extend_from_slice(key.text);
        self.places.push((key.object, order, self.bytes.len()));
        number
    }

    /// Iterates over all keys, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = KeyName<'_>> {
        (0..self.len()).map(|number| self.get(number as u32).expect("within the length"))
    }
}
