//! The rows that a part of the log leaves, by key.

use crate::Stamp;
use crate::entry::{Change, Entry};
use hotrow_sync::prefetch::{prefetch, prefetch_bytes};

/// Bytes after which the processor goes on loading by itself.
const PREFETCHED_BYTES_MAX: usize = 256;

/// Newest value of one part of a row.
struct Overlay {
    part: u32,
    stamp: Stamp,
    value: Box<[u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Only parts have come so far.
    Missing,
    Present,
    Deleted,
}

struct Row {
    hash: u64,
    structure: u32,
    key_bytes: u32,
    state: State,
    /// Stamp of the newest change of the whole row.
    stamp: Stamp,
    /// The key, and behind it the value.
    bytes: Vec<u8>,
    overlays: Vec<Overlay>,
}

impl Row {
    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes as usize]
    }
}

/// Rows by structure and key: a hash table with linear probing, whose slots point into a dense list of rows.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// 0 for an empty slot, otherwise the row's index and one. The number of slots is a power of two.
    slots: Vec<u32>,
    /// Rows that may have to be taken out when the round ends, with the place of the entry that has made them so.
    unsettled: Vec<(usize, usize)>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Makes the change of an entry. `at` is its place, for errors.
    ///
    /// Changes of one row may come in any order, except that of two with the same stamp the later one comes later.
    pub(super) fn apply(&mut self, hash: u64, stamp: Stamp, entry: &Entry<'_>, at: usize) {
        let index = self.find_or_insert(hash, entry);
        let row = &mut self.rows[index];
        match entry.change {
            Change::PutParts(parts) => {
                if row.state != State::Missing && stamp < row.stamp {
                    return;
                }
                if row.state != State::Present {
                    self.unsettled.push((index, at));
                }
                parts.for_each(|(part, value)| {
                    match row.overlays.iter_mut().find(|overlay| overlay.part == part) {
                        Some(overlay) if overlay.stamp > stamp => {}
                        Some(overlay) if overlay.value.len() == value.len() => {
                            overlay.stamp = stamp;
                            overlay.value.copy_from_slice(value);
                        }
                        Some(overlay) => *overlay = Overlay { part, stamp, value: value.into() },
                        None => row.overlays.push(Overlay { part, stamp, value: value.into() }),
                    }
                });
            }
            Change::Put(value) => {
                if row.state != State::Missing && stamp < row.stamp {
                    return;
                }
                row.state = State::Present;
                row.stamp = stamp;
                row.bytes.truncate(row.key_bytes as usize);
                row.bytes.reserve_exact(value.len());
                row.bytes.extend_from_slice(value);
                row.overlays.retain(|overlay| overlay.stamp > stamp);
            }
            Change::Delete => {
                if row.state != State::Missing && stamp < row.stamp {
                    return;
                }
                row.state = State::Deleted;
                row.stamp = stamp;
                row.bytes.truncate(row.key_bytes as usize);
                row.bytes.shrink_to_fit();
                row.overlays.retain(|overlay| overlay.stamp > stamp);
                self.unsettled.push((index, at));
            }
        }
    }

    /// Takes out deleted rows, once no change with a smaller stamp can come any more. Returns the place of an entry that
    /// changes a part of a row that does not exist, if there is one.
    pub(super) fn settle(&mut self) -> Option<usize> {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        // From the last row on: what moves into a gap has been settled.
        unsettled.sort_unstable_by(|one, other| other.cmp(one));
        unsettled.dedup_by_key(|(index, _)| *index);
        let mut fault = None;
        for &(index, at) in &unsettled {
            let row = &self.rows[index];
            if row.state == State::Present {
                continue;
            }
            if !row.overlays.is_empty() || row.state == State::Missing {
                fault = Some(at);
            }
            self.remove(index);
        }
        unsettled.clear();
        self.unsettled = unsettled;
        fault
    }

    /// Calls `look` for each row with structure, key, value and the parts that are newer, in the order of their numbers.
    pub(super) fn for_each(&mut self, mut look: impl FnMut(u32, &[u8], &[u8], &[(u32, &[u8])])) {
        for row in &mut self.rows {
            row.overlays.sort_unstable_by_key(|overlay| overlay.part);
            let overlays: Vec<(u32, &[u8])> =
                row.overlays.iter().map(|overlay| (overlay.part, &*overlay.value)).collect();
            let (key, value) = row.bytes.split_at(row.key_bytes as usize);
            look(row.structure, key, value, &overlays);
        }
    }

    /// Has the processor load the slot that a search for the hash begins at.
    #[inline]
    pub(super) fn prefetch_slot(&self, hash: u64) {
        if let Some(slot) = self.slots.get(hash as usize & self.slots.len().wrapping_sub(1)) {
            prefetch(slot);
        }
    }

    /// The row that a search for the hash finds first, if there is one.
    #[inline]
    fn first_row(&self, hash: u64) -> Option<&Row> {
        let slot = self.slots.get(hash as usize & self.slots.len().wrapping_sub(1))?;
        self.rows.get((*slot as usize).wrapping_sub(1))
    }

    /// Has the processor load that row, once the slot is there.
    #[inline]
    pub(super) fn prefetch_row(&self, hash: u64) {
        if let Some(row) = self.first_row(hash) {
            prefetch(&row.hash);
            prefetch(&row.overlays);
        }
    }

    /// Has the processor load that row's key and value, once the row is there.
    #[inline]
    pub(super) fn prefetch_bytes(&self, hash: u64) {
        if let Some(row) = self.first_row(hash) {
            prefetch_bytes(row.bytes.as_ptr(), row.bytes.len().min(PREFETCHED_BYTES_MAX));
        }
    }

    fn find_or_insert(&mut self, hash: u64, entry: &Entry<'_>) -> usize {
        if self.slots.len() < self.rows.len() * 2 + 2 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                0 => break,
                taken => {
                    let index = taken as usize - 1;
                    let row = &self.rows[index];
                    if row.hash == hash && row.structure == entry.structure && row.key() == entry.key {
                        return index;
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
        let value_bytes = match entry.change {
            Change::Put(value) => value.len(),
            _ => 0,
        };
        let mut bytes = Vec::with_capacity(entry.key.len() + value_bytes);
        bytes.extend_from_slice(entry.key);
        self.rows.push(Row {
            hash,
            structure: entry.structure,
            key_bytes: entry.key.len() as u32,
            state: State::Missing,
            stamp: Stamp::default(),
            bytes,
            overlays: Vec::new(),
        });
        self.slots[slot] = self.rows.len() as u32;
        self.rows.len() - 1
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(16);
        self.slots.clear();
        self.slots.resize(slots, 0);
        for (index, row) in self.rows.iter().enumerate() {
            let mut slot = row.hash as usize & (slots - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = index as u32 + 1;
        }
    }

    /// The slot that points to a row.
    fn slot_of(&self, index: usize) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.rows[index].hash as usize & mask;
        while self.slots[slot] as usize != index + 1 {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn remove(&mut self, index: usize) {
        let mask = self.slots.len() - 1;
        let mut gap = self.slot_of(index);
        let last = self.rows.len() - 1;
        if index != last {
            let moved = self.slot_of(last);
            self.slots[moved] = index as u32 + 1;
        }
        // Moves those behind the gap forward whose search would end at it.
        let mut slot = gap;
        self.slots[gap] = 0;
        loop {
            slot = (slot + 1) & mask;
            let taken = self.slots[slot] as usize;
            if taken == 0 {
                break;
            }
            // The last row is known by its new index already, but still in its old place.
            let row = if taken == index + 1 && index != last { last } else { taken - 1 };
            let home = self.rows[row].hash as usize & mask;
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(gap) & mask {
                self.slots[gap] = taken as u32;
                self.slots[slot] = 0;
                gap = slot;
            }
        }
        self.rows.swap_remove(index);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::entry::Parts;
    use std::collections::BTreeMap;

    fn entry<'a>(key: &'a [u8], change: Change<'a>) -> Entry<'a> {
        Entry { structure: 1, key, change }
    }

    #[test]
    fn rows_are_those_of_a_plain_map_after_many_changes_with_colliding_hashes() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut rows = Rows::default();
        let mut model = BTreeMap::new();
        for order in 0..20_000 {
            let key = random.u8(..64);
            let stamp = Stamp { epoch: 1, order };
            // Four hashes for all keys, so that runs of slots are long and wrap around.
            let hash = u64::from(key % 4).wrapping_mul(u64::MAX / 3);
            if random.bool() {
                let value = order.to_le_bytes();
                rows.apply(hash, stamp, &entry(&[key], Change::Put(&value)), 0);
                model.insert(key, value.to_vec());
            } else {
                rows.apply(hash, stamp, &entry(&[key], Change::Delete), 0);
                model.remove(&key);
            }
            if random.u8(..4) == 0 {
                assert_eq!(rows.settle(), None);
                assert_eq!(rows.len(), model.len());
            }
        }
        assert_eq!(rows.settle(), None);
        let mut found = BTreeMap::new();
        rows.for_each(|_, key, value, _| drop(found.insert(key[0], value.to_vec())));
        assert_eq!(found, model);
    }

    #[test]
    fn parts_count_if_they_are_newer_than_the_row_in_whatever_order_they_come() {
        let stamp = |order| Stamp { epoch: 1, order };
        let changes = [
            (stamp(1), Change::Put(b"old")),
            (stamp(2), Change::PutParts(Parts::of(b"\x04lost"))),
            (stamp(3), Change::Put(b"new")),
            (stamp(4), Change::PutParts(Parts::of(b"\x09a\x01x"))),
            (stamp(5), Change::PutParts(Parts::of(b"\x09b"))),
            (stamp(6), Change::PutParts(Parts::of(b"\x01c"))),
        ];
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let mut order: Vec<usize> = (0..changes.len()).collect();
            random.shuffle(&mut order);
            let mut rows = Rows::default();
            order.iter().for_each(|&i| rows.apply(9, changes[i].0, &entry(b"k", changes[i].1), i));
            assert_eq!(rows.settle(), None);
            let mut seen = 0;
            rows.for_each(|structure, key, value, overlays| {
                assert_eq!((structure, key, value), (1, &b"k"[..], &b"new"[..]), "{order:?}");
                assert_eq!(overlays, [(0, &b"c"[..]), (1, &b"b"[..])], "{order:?}");
                seen += 1;
            });
            assert_eq!(seen, 1);
        }
    }

    #[test]
    fn a_part_without_a_row_is_told() {
        let mut rows = Rows::default();
        rows.apply(0, Stamp::default(), &entry(b"k", Change::PutParts(Parts::of(b"\x19v"))), 42);
        assert_eq!(rows.settle(), Some(42));
        let later = Stamp { epoch: 2, order: 0 };
        rows.apply(0, Stamp::default(), &entry(b"k", Change::Delete), 0);
        rows.apply(0, later, &entry(b"k", Change::PutParts(Parts::of(b"\x19v"))), 43);
        assert_eq!(rows.settle(), Some(43));
    }
}
