//! Hash maps and ordered maps in words.

use super::{Memory, Words};
use crate::store::{self, Element, Key};
use foldhash::fast::FixedState;
use hotrow::{Abort, Protocol, Transaction};
use std::hash::BuildHasher;
use std::marker::PhantomData;

type Tx<'t, P> = Transaction<'t, P>;

/// Chains of nodes: a word for each bucket, with the address of its first node. The number of buckets stays.
///
/// A node is the address of the next one, a key, and what belongs to it.
pub(super) struct Chains<K, P: Protocol> {
    pub(super) memory: Memory<P>,
    first: u64,
    /// The number of buckets less 1: a power of two less 1.
    mask: u64,
    keys: PhantomData<fn(K)>,
}

/// A node that was found.
pub(super) struct Node {
    /// The address of the word that has the node's address.
    link: u64,
    address: u64,
    /// The address of what belongs to the key.
    pub(super) content: u64,
}

fn hash(key: &impl Key) -> u64 {
    FixedState::default().hash_one(key)
}

impl<K: Key, P: Protocol> Chains<K, P> {
    pub(super) fn new(store: &Words<P>, capacity: usize) -> Self {
        let buckets = capacity.next_power_of_two() as u64;
        let memory = store.memory.clone();
        let first = memory.0.allocate(buckets);
        Self { memory, first, mask: buckets - 1, keys: PhantomData }
    }

    fn bucket(&self, key: &K) -> u64 {
        self.first + (hash(key) & self.mask)
    }

    pub(super) fn find(&self, tx: &mut Tx<'_, P>, key: &K) -> Result<Option<Node>, Abort> {
        let mut link = self.bucket(key);
        loop {
            let address = self.memory.read(tx, link)?;
            if address == 0 {
                return Ok(None);
            }
            let (found, content) = self.memory.load::<K>(tx, address + 1)?;
            if found == *key {
                return Ok(Some(Node { link, address, content }));
            }
            link = address;
        }
    }

    /// Inserts an absent key before all others of its bucket.
    pub(super) fn insert(&self, tx: &mut Tx<'_, P>, key: &K, content: &[u64]) -> Result<(), Abort> {
        let link = self.bucket(key);
        let mut words = vec![self.memory.read(tx, link)?];
        key.encode(&mut words);
        words.extend_from_slice(content);
        let node = self.memory.store(tx, &words)?;
        self.memory.write(tx, link, node)
    }

    pub(super) fn remove(&self, tx: &mut Tx<'_, P>, node: &Node) -> Result<(), Abort> {
        let next = self.memory.read(tx, node.address)?;
        self.memory.write(tx, node.link, next)
    }
}

/// A hash map.
pub struct WordHashMap<K, V, P: Protocol> {
    chains: Chains<K, P>,
    values: PhantomData<fn() -> V>,
}

impl<K: Key, V: Element, P: Protocol> WordHashMap<K, V, P> {
    pub(super) fn new(store: &Words<P>, capacity: usize, entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let map = Self { chains: Chains::new(store, capacity), values: PhantomData };
        store.fill_with(entries, |tx, (key, value)| map.chains.insert(tx, &key, &super::words_of(&value)));
        map
    }
}

impl<K: Key, V: Element, P: Protocol> store::Map<Words<P>, K, V> for WordHashMap<K, V, P> {
    fn get(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<V>, Abort> {
        let Some(node) = self.chains.find(tx, &key)? else { return Ok(None) };
        Ok(Some(self.chains.memory.load(tx, node.content)?.0))
    }

    fn insert_if_absent(&self, tx: &mut Tx<'_, P>, key: K, value: V) -> Result<bool, Abort> {
        if self.chains.find(tx, &key)?.is_some() {
            return Ok(false);
        }
        self.chains.insert(tx, &key, &super::words_of(&value))?;
        Ok(true)
    }

    fn put(&self, tx: &mut Tx<'_, P>, key: K, value: V) -> Result<(), Abort> {
        let words = super::words_of(&value);
        match self.chains.find(tx, &key)? {
            Some(node) => self.chains.memory.write_all(tx, node.content, &words),
            None => self.chains.insert(tx, &key, &words),
        }
    }

    fn remove(&self, tx: &mut Tx<'_, P>, key: K) -> Result<bool, Abort> {
        let Some(node) = self.chains.find(tx, &key)? else { return Ok(false) };
        self.chains.remove(tx, &node)?;
        Ok(true)
    }
}

/// The most levels of a skip list. A level has a quarter of the nodes of the level below.
const LEVELS: usize = 12;

/// A skip list. A node is a key, the addresses of the next nodes on each of its levels, the lowest first, and a value. The
/// head has the addresses of the first nodes.
///
/// The number of a node's levels comes from the hash of its key, so it needs no word.
pub struct WordOrderedMap<K, V, P: Protocol> {
    memory: Memory<P>,
    head: u64,
    entries: PhantomData<fn(K) -> V>,
}

/// Returns the number of levels of a key's node.
fn levels(key: &impl Key) -> usize {
    (1 + hash(key).trailing_zeros() as usize / 2).min(LEVELS)
}

/// The place of a key in a skip list.
struct SkipPlace {
    /// For each level, the address of the word that has the address of the first node that is not less than the key.
    links: [u64; LEVELS],
    /// The addresses of these nodes.
    next: [u64; LEVELS],
    /// The address of the links of the key's node, if the key is there.
    own_links: Option<u64>,
}

impl<K: Key, V: Element, P: Protocol> WordOrderedMap<K, V, P> {
    pub(super) fn new(store: &Words<P>, entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let memory = store.memory.clone();
        let head = memory.0.allocate(LEVELS as u64);
        let map = Self { memory, head, entries: PhantomData };
        store.fill_with(entries, |tx, (key, value)| store::Map::put(&map, tx, key, value));
        map
    }

    fn find(&self, tx: &mut Tx<'_, P>, key: &K) -> Result<SkipPlace, Abort> {
        let mut place = SkipPlace { links: [0; LEVELS], next: [0; LEVELS], own_links: None };
        let mut links = self.head;
        // The last node that was found not to be less, which need not be compared again.
        let mut not_less = 0;
        for level in (0..LEVELS).rev() {
            loop {
                let link = links + level as u64;
                let next = self.memory.read(tx, link)?;
                if next != 0 && next != not_less {
                    let (found, found_links) = self.memory.load::<K>(tx, next)?;
                    if found < *key {
                        links = found_links;
                        continue;
                    }
                    not_less = next;
                    place.own_links = (found == *key).then_some(found_links);
                }
                (place.links[level], place.next[level]) = (link, next);
                break;
            }
        }
        Ok(place)
    }

    fn insert_at(&self, tx: &mut Tx<'_, P>, place: &SkipPlace, key: &K, value: &V) -> Result<(), Abort> {
        let levels = levels(key);
        let mut words = super::words_of(key);
        words.extend_from_slice(&place.next[..levels]);
        value.encode(&mut words);
        let node = self.memory.store(tx, &words)?;
        place.links[..levels].iter().try_for_each(|link| self.memory.write(tx, *link, node))
    }
}

impl<K: Key, V: Element, P: Protocol> store::Map<Words<P>, K, V> for WordOrderedMap<K, V, P> {
    fn get(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<V>, Abort> {
        let Some(links) = self.find(tx, &key)?.own_links else { return Ok(None) };
        Ok(Some(self.memory.load(tx, links + levels(&key) as u64)?.0))
    }

    fn insert_if_absent(&self, tx: &mut Tx<'_, P>, key: K, value: V) -> Result<bool, Abort> {
        let place = self.find(tx, &key)?;
        if place.own_links.is_some() {
            return Ok(false);
        }
        self.insert_at(tx, &place, &key, &value)?;
        Ok(true)
    }

    fn put(&self, tx: &mut Tx<'_, P>, key: K, value: V) -> Result<(), Abort> {
        let place = self.find(tx, &key)?;
        match place.own_links {
            Some(links) => {
                let address = links + levels(&key) as u64;
                self.memory.write_all(tx, address, &super::words_of(&value))
            }
            None => self.insert_at(tx, &place, &key, &value),
        }
    }

    fn remove(&self, tx: &mut Tx<'_, P>, key: K) -> Result<bool, Abort> {
        let place = self.find(tx, &key)?;
        let Some(links) = place.own_links else { return Ok(false) };
        for level in 0..levels(&key) {
            let next = self.memory.read(tx, links + level as u64)?;
            self.memory.write(tx, place.links[level], next)?;
        }
        Ok(true)
    }
}
