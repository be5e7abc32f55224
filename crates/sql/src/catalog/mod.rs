//! The catalog: what tables, indexes and sequences there are.
//!
//! It is one transactional value. A transaction reads it before it plans, so whoever changes it conflicts with those who have planned by
//! what it was: definitions are as serializable as rows.

mod definition;
mod storage;

pub(crate) use definition::{Check, Column, Entry, Index, PrimaryKey, Relation, Sequence};
pub(crate) use storage::{CatalogChanges, Rows, Storages, numbers};

use hotrow::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first number that PostgreSQL gives to what users define.
const FIRST_OID: u32 = 16_384;

/// All definitions at one moment.
#[derive(Clone)]
pub(crate) struct Catalog {
    /// A number that no other state of the process has.
    pub(crate) version: u64,
    /// The number that the next thing gets.
    pub(crate) next_oid: u32,
    by_oid: BTreeMap<u32, Entry>,
    by_name: BTreeMap<Arc<str>, u32>,
}

impl Catalog {
    /// The catalog with these entries, which have names of their own.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let mut catalog =
            Self { version: 0, next_oid: FIRST_OID, by_oid: BTreeMap::new(), by_name: BTreeMap::new() };
        entries.into_iter().for_each(|entry| catalog.put(entry));
        catalog
    }

    fn renew(&mut self) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only uniqueness matters.
        self.version = NEXT.fetch_add(1, Ordering::Relaxed);
    }

    /// A number for something new.
    pub(crate) fn draw_oid(&mut self) -> u32 {
        let oid = self.next_oid;
        self.next_oid += 1;
        oid
    }

    /// Adds an entry, or replaces the one with its number.
    pub(crate) fn put(&mut self, entry: Entry) {
        self.remove(entry.oid());
        self.next_oid = self.next_oid.max(entry.last_oid() + 1);
        self.by_name.insert(entry.name().into(), entry.oid());
        if let Entry::Relation(relation) = &entry {
            for (name, _) in relation.index_names() {
                self.by_name.insert(name.into(), relation.oid);
            }
        }
        self.by_oid.insert(entry.oid(), entry);
        self.renew();
    }

    /// Removes the entry with this number.
    pub(crate) fn remove(&mut self, oid: u32) {
        if let Some(entry) = self.by_oid.remove(&oid) {
            self.by_name.retain(|_, named| *named != entry.oid());
            self.renew();
        }
    }

    /// The entry that has this name, or the table that has the index of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Entry> {
        self.by_oid.get(self.by_name.get(name)?)
    }

    /// The table of this name.
    pub(crate) fn relation(&self, name: &str) -> Option<&Arc<Relation>> {
        match self.find(name)? {
            Entry::Relation(relation) if relation.name == name => Some(relation),
            _ => None,
        }
    }

    /// The sequence of this name.
    pub(crate) fn sequence(&self, name: &str) -> Option<&Arc<Sequence>> {
        match self.find(name)? {
            Entry::Sequence(sequence) => Some(sequence),
            Entry::Relation(_) => None,
        }
    }

    /// The entry with this number.
    pub(crate) fn get(&self, oid: u32) -> Option<&Entry> {
        self.by_oid.get(&oid)
    }

    /// All entries, by number.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.by_oid.values()
    }

    /// All tables, by number.
    pub(crate) fn relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.entries().filter_map(|entry| match entry {
            Entry::Relation(relation) => Some(relation),
            Entry::Sequence(_) => None,
        })
    }

    /// All sequences, by number.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.entries().filter_map(|entry| match entry {
            Entry::Sequence(sequence) => Some(sequence),
            Entry::Relation(_) => None,
        })
    }

    /// True if this storage belongs to a table, an index or a sequence.
    fn uses(&self, storage: u32) -> bool {
        self.entries().any(|entry| match entry {
            Entry::Relation(relation) => {
                relation.storage == storage || relation.indexes.iter().any(|index| index.storage == storage)
            }
            Entry::Sequence(sequence) => sequence.storage == storage,
        })
    }
}
