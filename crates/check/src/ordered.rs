//! Keys of the objects with range reads, in their order, with their insertions and deletions.
//!
//! Positions number these keys, object by object, sorted by their order bytes. An *event* of a key is an effective
//! version that changed whether the key exists, so insertions and deletions alternate. (A transaction that inserts
//! a key and deletes it again may leave a deletion of an absent key. This is not an event.) Odd keys have no
//! position, and range reads tell nothing about them. A key is odd if its chain does not follow the order of its
//! versions' numbers, has gaps or versions without effect, or inserts a key that is present.

use crate::attempts::walk;
use crate::versions::{NONE, Versions};
use hotrow_core::history::{Event, History, ReadKind, WriteKind};
use std::ops::Bound;

/// Evidence from reads on the initial version of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Unknown,
    There,
    Absent,
}

/// Keys in order, with their events.
#[derive(Debug)]
pub(crate) struct Ordered {
    /// Position of each key, or `NONE`.
    position: Vec<u32>,
    /// Key at each position.
    keys: Vec<u32>,
    /// Prefix of the key's order bytes at each position, so that few comparisons read the key itself.
    prefixes: Vec<u64>,
    /// Range of positions of each object.
    objects: Vec<(u32, u32)>,
    /// Start of each position's events in `events`, and the end of the last.
    heads: Vec<u32>,
    /// Ranks of the events' versions, by position and then by rank.
    events: Vec<u32>,
    /// Ranks of the events' versions, by rank alone.
    by_time: Vec<u32>,
    /// Per position: true if the key was present before the history.
    initially: Vec<bool>,
}

impl Ordered {
    /// Sorts the keys of all objects that have range reads in the history.
    pub(crate) fn read(history: &History, versions: &Versions) -> Self {
        let mut scanned = vec![false; history.objects.len()];
        let mut seen = vec![Before::Unknown; history.keys.len()];
        walk(history, |_, event| match event {
            Event::Range { object, .. } => scanned[object as usize] = true,
            Event::Read { key, version: 0, kind: ReadKind::Value } => seen[key as usize] = Before::There,
            Event::Read { key, version: 0, kind: ReadKind::Absent } => seen[key as usize] = Before::Absent,
            _ => {}
        });
        let mut ordered = Ordered {
            position: vec![NONE; history.keys.len()],
            keys: Vec::new(),
            prefixes: Vec::new(),
            objects: vec![(0, 0); history.objects.len()],
            heads: vec![0],
            events: Vec::new(),
            by_time: Vec::new(),
            initially: Vec::new(),
        };
        let object = |key: u32| history.keys.get(key).map_or(0, |name| name.object as usize);
        let order = |key: u32| history.keys.get(key).map_or(&[][..], |name| name.order);
        let judged = |key: &u32| scanned.get(object(*key)) == Some(&true) && !versions.is_odd(*key);
        let keys = (0..history.keys.len() as u32).filter(judged);
        let mut keys: Vec<_> = keys.map(|key| (object(key), prefix(order(key)), key)).collect();
        keys.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| order(a.2).cmp(order(b.2))));
        for (_, prefix, key) in keys {
            let begin = ordered.events.len();
            let Some(initially) = ordered.push_events(versions, key, seen[key as usize]) else {
                ordered.events.truncate(begin);
                continue;
            };
            let position = ordered.keys.len() as u32;
            ordered.position[key as usize] = position;
            ordered.keys.push(key);
            ordered.prefixes.push(prefix);
            ordered.initially.push(initially);
            ordered.heads.push(ordered.events.len() as u32);
            let place = &mut ordered.objects[object(key)];
            if place.1 == 0 {
                place.0 = position;
            }
            place.1 = position + 1;
        }
        ordered.by_time = ordered.events.clone();
        ordered.by_time.sort_unstable();
        ordered
    }

    /// Appends a key's events. Returns true if the key was present before them, or `None` if they contradict each
    /// other.
    fn push_events(&mut self, versions: &Versions, key: u32, seen: Before) -> Option<bool> {
        let mut rank = versions.first(key);
        let initially = match (rank != NONE).then(|| versions.kind(rank)) {
            Some(WriteKind::Update | WriteKind::Commute) => true,
            Some(WriteKind::Insert) => false,
            Some(WriteKind::Delete) => seen != Before::Absent,
            None => seen == Before::There,
        };
        let mut present = initially;
        while rank != NONE {
            match (versions.kind(rank), present) {
                (WriteKind::Insert, false) | (WriteKind::Delete, true) => {
                    present = !present;
                    self.events.push(rank);
                }
                (WriteKind::Update | WriteKind::Commute, true) | (WriteKind::Delete, false) => {}
                (WriteKind::Insert, true) | (WriteKind::Update | WriteKind::Commute, false) => return None,
            }
            rank = versions.get(rank).next;
        }
        Some(initially)
    }

    pub(crate) fn position(&self, key: u32) -> Option<u32> {
        let position = self.position[key as usize];
        (position != NONE).then_some(position)
    }

    pub(crate) fn key(&self, position: u32) -> u32 {
        self.keys[position as usize]
    }

    /// Returns the number of positions.
    pub(crate) fn len(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Returns the events at a range of positions, by position and then by rank.
    pub(crate) fn events(&self, begin: u32, end: u32) -> &[u32] {
        &self.events[self.heads[begin as usize] as usize..self.heads[end as usize] as usize]
    }

    /// Returns all events by rank.
    pub(crate) fn by_time(&self) -> &[u32] {
        &self.by_time
    }

    pub(crate) fn was_there(&self, position: u32) -> bool {
        self.initially[position as usize]
    }

    /// Returns the positions of an object's keys between two bounds.
    pub(crate) fn range(
        &self,
        history: &History,
        object: u32,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> (u32, u32) {
        let (begin, end) = self.objects[object as usize];
        let compare = |position: &u32, bound: &[u8], short: u64| {
            let key = self.keys[*position as usize];
            let order = || history.keys.get(key).map_or(&[][..], |name| name.order);
            self.prefixes[*position as usize].cmp(&short).then_with(|| order().cmp(bound))
        };
        let count = |below: &dyn Fn(&u32) -> bool| {
            let (mut low, mut high) = (begin, end);
            while low < high {
                let middle = low + (high - low) / 2;
                if below(&middle) { low = middle + 1 } else { high = middle }
            }
            low
        };
        let below = |bound: &[u8]| {
            let short = prefix(bound);
            count(&|position| compare(position, bound, short).is_lt())
        };
        let up_to = |bound: &[u8]| {
            let short = prefix(bound);
            count(&|position| compare(position, bound, short).is_le())
        };
        let first = match low {
            Bound::Unbounded => begin,
            Bound::Included(bound) => below(bound),
            Bound::Excluded(bound) => up_to(bound),
        };
        let last = match high {
            Bound::Unbounded => end,
            Bound::Included(bound) => up_to(bound),
            Bound::Excluded(bound) => below(bound),
        };
        (first, last.max(first))
    }
}

/// Returns the first eight bytes of an order as a number, padded with zeros. Different prefixes compare as their
/// orders do.
fn prefix(order: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = order.len().min(8);
    bytes[..length].copy_from_slice(&order[..length]);
    u64::from_be_bytes(bytes)
}

/// True if a key's order bytes lie between two bounds.
pub(crate) fn within(order: &[u8], low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    let above = match low {
        Bound::Unbounded => true,
        Bound::Included(bound) => order >= bound,
        Bound::Excluded(bound) => order > bound,
    };
    above
        && match high {
            Bound::Unbounded => true,
            Bound::Included(bound) => order <= bound,
            Bound::Excluded(bound) => order < bound,
        }
}
