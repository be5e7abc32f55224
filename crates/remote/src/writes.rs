//! The writes of an attempt, of which a part can be undone.

use crate::counters::Addition;
use std::collections::BTreeMap;
use std::ops::Deref;

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write {
    Put(Vec<u8>),
    Delete,
    Add(Addition),
}

/// Changes by their keys.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    writes: BTreeMap<Vec<u8>, Write>,
    /// The writes that were replaced since the outermost part began, the last one at the end.
    replaced: Vec<(Vec<u8>, Option<Write>)>,
    /// The number of parts that are running.
    parts: usize,
}

/// The place in the attempt's course at which a part began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartMark(usize);

impl Deref for Writes {
    type Target = BTreeMap<Vec<u8>, Write>;

    fn deref(&self) -> &Self::Target {
        &self.writes
    }
}

impl Writes {
    pub(crate) fn insert(&mut self, key: Vec<u8>, write: Write) {
        let replaced = self.writes.insert(key.clone(), write);
        self.note(key, replaced);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        let replaced = self.writes.remove(key);
        self.note(key.to_vec(), replaced);
    }

    fn note(&mut self, key: Vec<u8>, replaced: Option<Write>) {
        if self.parts > 0 {
            self.replaced.push((key, replaced));
        }
    }

    /// True if a part is running.
    pub(crate) fn is_in_part(&self) -> bool {
        self.parts > 0
    }

    pub(crate) fn begin_part(&mut self) -> PartMark {
        self.parts += 1;
        PartMark(self.replaced.len())
    }

    /// Ends a part whose writes stay, as writes of the part around it.
    pub(crate) fn keep_part(&mut self) {
        self.parts -= 1;
        if self.parts == 0 {
            self.replaced.clear();
        }
    }

    /// Ends a part whose writes are undone.
    pub(crate) fn undo_part(&mut self, PartMark(begin): PartMark) {
        self.parts -= 1;
        for (key, replaced) in self.replaced.drain(begin..).rev() {
            match replaced {
                Some(write) => drop(self.writes.insert(key, write)),
                None => drop(self.writes.remove(&key)),
            }
        }
    }
}
