//! Edges from range reads: from and to the attempts that inserted and deleted the keys that a range read missed.
//!
//! # What is known
//!
//! A scan between the stamps `from` and `to` observed for each key in its bounds whether the key existed, at some
//! moment in between. The keys that it found have reads of their own, with exact versions; this module is about the
//! others. If the scan missed a key, it saw an *absent* version: the initial one, or a deletion. The history does
//! not record which one, but the scan looked at a moment between `from` and `to`. Write `m` for that moment. Then:
//!
//! 1. A deletion with a version below `from` was installed before `m`. The version seen is that one or a later one
//!    of the key's chain. So there is a path of write-write edges from the deletion to the version seen, and then a
//!    write-read edge to the scanner. The edge from the deleting transaction to the scanner adds nothing to the
//!    reachability in the true graph: it is sound.
//! 2. An insertion with a version not below `to` was installed after `m`. The scanner's read-write edge leads to
//!    the attempt that replaced the version seen, and a path of write-write edges leads on to this insertion. So
//!    the edge from the scanner to the inserting transaction is sound.
//! 3. If a key came or went within the window from `from` to `to`, the candidates are the absent version at `from`,
//!    if the key was absent then, and each deletion within the window. The version seen is the earliest candidate
//!    or a later one, so the edge from the earliest candidate's writer is sound. It is the latest candidate or an
//!    earlier one, so the edge to the attempt that replaced the latest is sound.
//!
//! Rule 3 holds for complete histories only. An attempt that is not recorded may have deleted a key within the
//! window, and inserted it again, on either side of the scan.
//!
//! Where the chain has a run of changes that commute (module [`crate::runs`]), the paths lead over any member of it:
//! the write before the run comes before each member, and each member before the write after it. A change that
//! commutes leaves its key present, so that no candidate is in a run.
//!
//! Rules 1 and 2 with all deletions and all insertions imply the edges of candidates outside of windows, so nothing
//! else is to be added. A store with several versions whose scans read an older snapshot must record the snapshot's
//! stamp as `from`.
//!
//! # Keys that are left out
//!
//! Rules 1 and 2 are applied to whole blocks of keys at once (module [`crate::cover`]), found keys included. If the
//! same attempt has a read of version `r` of a key, below `to`, exact edges exist, and the rules must not add more:
//!
//! - Rule 2 adds nothing. The insertion is not below `to`, hence after `r` in the chain (chains that do not follow
//!   the order of their numbers have no positions, see [`crate::ordered`]), and the read-write edge at `r` begins a
//!   path to it.
//! - Rule 1 adds nothing if no deletion lies between `r` and `from`. If a version below `from` replaced `r`, one
//!   may lie there (a stale read), so the key is left out.
//!
//! A read of a version not below `to` was made after the scan and does not count: the scan missed the key. Keys
//! that the attempt has written itself are left out for two reasons. A scan after the write does not see other
//! attempts' changes of the key, and the blocks' auxiliary nodes would lead from the attempt back to itself.
//!
//! Writes that an attempt without effect intended are not recorded. It is assumed that such an attempt has read
//! each key before it wrote it, at least to know whether it existed, as Hotrow's tables do, or that it has declared
//! the write (`Event::Intend`).
//!
//! # Keys that were present all the time
//!
//! If a key existed at `from`, was not deleted until `to`, and the scan missed it, there is no candidate. Either
//! the index has lost the key, or the scan read an old state. If the key was absent at any time before, the scan is
//! assumed to have seen this: whichever absent version it saw, the insertion that ended the latest absence comes
//! after the scanner. If the key was never absent, this is an anomaly by itself. Only a complete history shows that
//! a key existed, so incomplete ones are not searched for lost keys.

use crate::cover::{Cover, Scan};
use crate::graph::{Edges, Kind};
use crate::ordered::Ordered;
use crate::versions::{NONE, Versions};
use hotrow_core::history::{Event, History, WriteKind};

/// A position that an attempt has read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    position: u32,
    /// Rank of the version that was read, plus one; 0 for the initial one.
    read: u32,
    written: bool,
}

/// All range reads of a history, and those of the current attempt.
#[derive(Debug)]
pub(crate) struct Ranges<'a> {
    history: &'a History,
    versions: &'a Versions,
    ordered: Ordered,
    cover: Cover,
    pending: Vec<Scan>,
    touches: Vec<Touch>,
    scans: Vec<Scan>,
    touched: Vec<u32>,
    window: Vec<(u32, u32)>,
    left_out: Vec<u32>,
}

/// A key that was present and that a range read missed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) attempt: u32,
    pub(crate) key: u32,
}

impl<'a> Ranges<'a> {
    pub(crate) fn new(history: &'a History, versions: &'a Versions) -> Self {
        let ordered = Ordered::read(history, versions);
        Ranges {
            history,
            versions,
            cover: Cover::new(ordered.len()),
            ordered,
            pending: Vec::new(),
            touches: Vec::new(),
            scans: Vec::new(),
            touched: Vec::new(),
            window: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Processes an event of an attempt. Attempts come one after the other.
    pub(crate) fn event(&mut self, attempt: u32, event: Event<'_>) {
        let index = &self.versions.index;
        match event {
            Event::Range { object, low, high, from, to } => {
                let keys = self.ordered.range(self.history, object, low, high);
                let window = (index.below(from), index.below(to));
                self.pending.push(Scan { attempt, keys, window, touched: (0, 0) });
            }
            Event::Read { key, version, .. } => {
                if let Some(position) = self.ordered.position(key) {
                    let read = index.rank(version).map_or(0, |rank| rank + 1);
                    self.touches.push(Touch { position, read, written: false });
                }
            }
            Event::Write { key, .. } | Event::Intend { key } => {
                if let Some(position) = self.ordered.position(key) {
                    self.touches.push(Touch { position, read: 0, written: true });
                }
            }
            Event::Begin { .. }
            | Event::Operation { .. }
            | Event::OwnRead { .. }
            | Event::Change { .. }
            | Event::End { .. } => {}
        }
    }

    /// Ends the current attempt: adds the edges of its range reads.
    pub(crate) fn end_attempt(&mut self, edges: &mut Edges) {
        if !self.pending.is_empty() {
            self.touches.sort_unstable();
            // A repeated scan finds the same keys again.
            self.touches.dedup();
            let begin = self.touched.len();
            self.touched.extend(self.touches.iter().map(|touch| touch.position));
            let touched = (begin, self.touched.len());
            for mut scan in std::mem::take(&mut self.pending) {
                scan.touched = touched;
                if self.history.complete {
                    self.add_window(scan, edges);
                }
                self.add_blocks(scan, edges);
                self.scans.push(scan);
            }
        }
        self.touches.clear();
    }

    /// Returns the current attempt's reads and writes of a position.
    fn touches(&self, position: u32) -> &[Touch] {
        let begin = self.touches.partition_point(|touch| touch.position < position);
        let end = begin + self.touches[begin..].partition_point(|touch| touch.position == position);
        &self.touches[begin..end]
    }

    /// Adds the edges of rule 3.
    fn add_window(&mut self, scan: Scan, edges: &mut Edges) {
        let mut window = std::mem::take(&mut self.window);
        window.clear();
        let events = self.ordered.by_time();
        let begin = events.partition_point(|rank| *rank < scan.window.0);
        for rank in events[begin..].iter().take_while(|rank| **rank < scan.window.1) {
            let key = self.versions.get(*rank).key;
            if let Some(position) = self.ordered.position(key)
                && (scan.keys.0..scan.keys.1).contains(&position)
            {
                window.push((position, *rank));
            }
        }
        window.sort_unstable();
        for events in window.chunk_by(|a, b| a.0 == b.0) {
            let counts = |touch: &Touch| touch.written || touch.read <= scan.window.1;
            if self.touches(events[0].0).iter().any(counts) {
                continue;
            }
            let (first, last) = (events[0].1, events[events.len() - 1].1);
            if self.versions.kind(first) == WriteKind::Delete {
                edges.add(self.versions.writer(first), scan.attempt, Kind::WriteRange);
            }
            if self.versions.kind(last) == WriteKind::Insert {
                edges.add(scan.attempt, self.versions.writer(last), Kind::RangeWrite);
            }
        }
        self.window = window;
    }

    /// Adds the edges of rules 1 and 2, for the ranges between the positions that are left out.
    fn add_blocks(&mut self, scan: Scan, edges: &mut Edges) {
        let mut left_out = std::mem::take(&mut self.left_out);
        left_out.clear();
        let begin = self.touches.partition_point(|touch| touch.position < scan.keys.0);
        for touch in &self.touches[begin..] {
            if touch.position >= scan.keys.1 {
                break;
            }
            if touch.written || self.is_stale(touch, scan) {
                left_out.push(touch.position);
            }
        }
        let mut begin = scan.keys.0;
        for end in left_out.iter().copied().chain([scan.keys.1]) {
            if begin < end {
                self.cover.add(&self.ordered, self.versions, Scan { keys: (begin, end), ..scan }, edges);
            }
            begin = end + 1;
        }
        self.left_out = left_out;
    }

    /// True if the version read had been replaced before the scan.
    fn is_stale(&self, touch: &Touch, scan: Scan) -> bool {
        let next = match touch.read.checked_sub(1) {
            None => self.versions.first(self.ordered.key(touch.position)),
            Some(rank) => self.versions.get(rank).next,
        };
        next != NONE && next < scan.window.0
    }

    /// Finds keys that were present all the time and that a range read missed. Adds edges to the attempts that
    /// inserted them, and returns the keys that no attempt inserted.
    pub(crate) fn lost(mut self, edges: &mut Edges) -> Vec<Lost> {
        let mut lost = Vec::new();
        if !self.history.complete {
            return lost;
        }
        self.scans.sort_unstable_by_key(|scan| scan.window.0);
        let mut present = Present::new(self.ordered.len());
        let initially = (0..self.ordered.len()).filter(|position| self.ordered.was_there(*position));
        initially.for_each(|position| present.flip(position));
        let mut events = self.ordered.by_time().iter().copied().peekable();
        for scan in &self.scans {
            while let Some(rank) = events.next_if(|rank| *rank < scan.window.0) {
                let position = self.ordered.position(self.versions.get(rank).key);
                present.flip(position.expect("only keys with a position have events"));
            }
            let touched = &self.touched[scan.touched.0..scan.touched.1];
            let mut found = 0;
            let mut next = present.next(scan.keys.0);
            while let Some(position) = next.filter(|position| *position < scan.keys.1) {
                next = present.next(position + 1);
                if touched.binary_search(&position).is_ok() {
                    continue;
                }
                let events = self.ordered.events(position, position + 1);
                let before = events.partition_point(|rank| *rank < scan.window.0);
                if events.get(before).is_some_and(|rank| *rank < scan.window.1) {
                    continue;
                }
                match before.checked_sub(1) {
                    Some(insertion) => {
                        let writer = self.versions.writer(events[insertion]);
                        edges.add(scan.attempt, writer, Kind::RangeWrite);
                    }
                    None => lost.push(Lost { attempt: scan.attempt, key: self.ordered.key(position) }),
                }
                found += 1;
                if found == LOST_MAX {
                    break;
                }
            }
        }
        lost
    }
}

/// Largest number of lost keys examined per range read.
const LOST_MAX: usize = 8;

/// Bit set of the present positions, with a second level: one bit for each word that is not empty.
#[derive(Debug)]
struct Present {
    words: Vec<u64>,
    above: Vec<u64>,
}

impl Present {
    fn new(positions: u32) -> Self {
        let words = positions as usize / 64 + 1;
        Present { words: vec![0; words], above: vec![0; words / 64 + 1] }
    }

    fn flip(&mut self, position: u32) {
        let word = position as usize / 64;
        self.words[word] ^= 1 << (position % 64);
        let bit = 1 << (word % 64);
        let above = &mut self.above[word / 64];
        *above = if self.words[word] == 0 { *above & !bit } else { *above | bit };
    }

    /// Returns the first present position from this one on.
    fn next(&self, position: u32) -> Option<u32> {
        let word = position as usize / 64;
        let here = self.words.get(word)? & (u64::MAX << (position % 64));
        if here != 0 {
            return Some(word as u32 * 64 + here.trailing_zeros());
        }
        let mut at = (word + 1) / 64;
        let mut group = self.above.get(at)? & (u64::MAX << ((word + 1) % 64));
        while group == 0 {
            at += 1;
            group = *self.above.get(at)?;
        }
        let word = at * 64 + group.trailing_zeros() as usize;
        Some(word as u32 * 64 + self.words[word].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::Present;

    #[test]
    fn the_next_position_is_found_across_empty_words() {
        let mut present = Present::new(20_000);
        let positions = [0, 1, 63, 64, 127, 128, 4095, 4096, 8191, 19_999];
        positions.iter().for_each(|position| present.flip(*position));
        for from in 0..20_000 {
            let expected = positions.iter().copied().find(|position| *position >= from);
            assert_eq!(present.next(from), expected, "from {from}");
        }
        positions.iter().for_each(|position| present.flip(*position));
        assert_eq!(present.next(0), None);
    }
}
