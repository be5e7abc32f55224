//! What range reads tell: edges from and to whoever inserted and deleted the keys that were not found.
//!
//! # What is known
//!
//! A scan that took place between the stamps `from` and `to` learned of each key in its bounds whether it
//! existed, at some moment in between. The keys that it found have reads of their own, with exact versions; here
//! it is about the others. Of a key that was not found, the scan saw an *absent* version: the initial one, or a
//! deletion. Which one is not recorded, but it was installed at a moment between `from` and `to`. Write `m` for
//! that moment. Then:
//!
//! 1. A deletion with a version below `from` was installed before `m`. The version seen is that one or a later
//!    one of the key's chain, so there is a path deletion → … → version seen of write-write edges, and then a
//!    write-read edge to the scanner. The edge from the deleting transaction to the scanner adds nothing to the
//!    reachability that the true graph has: it is sound.
//! 2. An insertion with a version not below `to` was installed after `m`. The scanner's read-write edge leads to
//!    whoever replaced the version seen, and from there a path of write-write edges to this insertion. The edge
//!    from the scanner to the inserting transaction is sound.
//! 3. Of a key that came or went within the window from `from` to `to`, the candidates are the absent version at
//!    `from`, if the key was absent then, and each deletion within the window. The version seen is the earliest
//!    candidate or a later one, so the edge from the earliest candidate's writer is sound; it is the latest
//!    candidate or an earlier one, so the edge to whoever replaced the latest is sound.
//!
//! Rule 3 holds of complete histories only. Who is not recorded may have deleted a key within the window, and
//! inserted it again, on either side of the scan.
//!
//! 1 and 2 with all deletions and all insertions imply what the candidates give outside of windows, so there is
//! nothing else to add. A store with several versions whose scans look at an older snapshot has to record the
//! snapshot's stamp as `from`.
//!
//! # Which keys are left out
//!
//! Rules 1 and 2 are applied to whole blocks of keys at once (module [`crate::cover`]), found ones included. For
//! a key of which the same attempt has a read of version `r`, below `to`, exact edges exist, and the rules must
//! not say more than those:
//!
//! - Rule 2 says nothing more: the insertion is not below `to`, hence after `r` in the chain (chains that are not
//!   in the order of their numbers have no positions, see [`crate::ordered`]), and the read-write edge at `r`
//!   begins a path to it.
//! - Rule 1 says nothing more if no deletion lies between `r` and `from`. If `r` was replaced by a version below
//!   `from`, that may fail (a stale read), and the key is left out.
//!
//! A read of a version not below `to` was made after the scan and does not count: the scan did not find the key.
//! Keys that the attempt has written itself are left out: a scan that comes after the write does not look at
//! what others did to the key, and the blocks' auxiliary nodes would lead from the attempt back to itself.
//!
//! What an attempt without effect wanted to write is not recorded, so for those it is assumed that they have read
//! each key of the object before they wrote it, if only to know whether it existed, as Hotrow's tables do, or that
//! they have said that they would write it (`Event::Intend`).
//!
//! # Keys that were there all the time
//!
//! A key that existed at `from`, did not go until `to`, and was not found, fits no candidate. The index has lost
//! it, or its scanner looked at an old state. If the key was absent at any time before, the scan is taken to
//! have seen that: whatever absent version it was, the insertion that ended the latest absence comes after the
//! scanner. If the key was never absent, this is an anomaly by itself. Only complete histories allow the
//! conclusion that a key existed; in others this is not looked for.

use crate::cover::Cover;
use crate::graph::{Edges, Kind};
use crate::ordered::Ordered;
use crate::versions::{NONE, Versions};
use hotrow_core::history::{Event, History, WriteKind};

/// One range read, in positions and ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan {
    pub(crate) attempt: u32,
    /// The first position and the one after the last.
    pub(crate) keys: (u32, u32),
    /// The rank of the first version not below the stamp before the scan, and of that after it.
    pub(crate) window: (u32, u32),
    /// Where the positions that the attempt has touched begin and end in [`Ranges::touched`].
    pub(crate) touched: (usize, usize),
}

/// A position that an attempt has read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    position: u32,
    /// The rank of the version that was read, plus one; 0 for the initial one.
    read: u32,
    written: bool,
}

/// All range reads of a history, and those of the attempt at hand.
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

/// A key that was there and was not found by a range read.
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

    /// Takes up an event of an attempt. Attempts come one after the other.
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

    /// The attempt at hand is complete: adds the edges of its range reads.
    pub(crate) fn end_attempt(&mut self, edges: &mut Edges) {
        if !self.pending.is_empty() {
            self.touches.sort_unstable();
            // A scan that is repeated finds the same again and again.
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

    /// What the attempt did with a position.
    fn touches(&self, position: u32) -> &[Touch] {
        let begin = self.touches.partition_point(|touch| touch.position < position);
        let end = begin + self.touches[begin..].partition_point(|touch| touch.position == position);
        &self.touches[begin..end]
    }

    /// Rule 3.
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

    /// Rules 1 and 2, for the positions between those that are left out.
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

    /// Whether what was read had been replaced before the scan.
    fn is_stale(&self, touch: &Touch, scan: Scan) -> bool {
        let next = match touch.read.checked_sub(1) {
            None => self.versions.first(self.ordered.key(touch.position)),
            Some(rank) => self.versions.get(rank).next,
        };
        next != NONE && next < scan.window.0
    }

    /// Looks for keys that were there all the time and were not found. Adds edges to whoever inserted them, and
    /// returns those that nobody did.
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

/// So many lost keys of one range read are looked at.
const LOST_MAX: usize = 8;

/// Which positions are there: a bit each, and a bit for each word that is not empty.
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

    /// The first position from this one on that is there.
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
