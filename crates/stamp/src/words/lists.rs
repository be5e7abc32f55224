//! Sorted lists by their keys, in words.

use super::Words;
use super::maps::Chains;
use crate::store::{self, Element, Key};
use hotrow::{Abort, Protocol, Transaction};
use std::marker::PhantomData;

type Tx<'t, P> = Transaction<'t, P>;

/// A hash map of linked lists. What belongs to a key is the address of its list's first node, and the number of nodes. A
/// node is the address of the next one, an item and a value.
pub struct WordLists<K, I, V, P: Protocol> {
    chains: Chains<K, P>,
    items: PhantomData<fn(I) -> V>,
}

impl<K: Key, I: Key, V: Element, P: Protocol> WordLists<K, I, V, P> {
    pub(super) fn new(store: &Words<P>, capacity: usize, keys: impl IntoIterator<Item = K>) -> Self {
        let chains = Chains::new(store, capacity);
        store.fill_with(keys, |tx, key| chains.insert(tx, &key, &[0, 0]));
        Self { chains, items: PhantomData }
    }

    /// Copies the list that begins at the node whose address is at `link`.
    fn copy(&self, tx: &mut Tx<'_, P>, mut link: u64) -> Result<Vec<(I, V)>, Abort> {
        let memory = &self.chains.memory;
        let mut list = Vec::new();
        loop {
            let node = memory.read(tx, link)?;
            if node == 0 {
                return Ok(list);
            }
            let (item, value) = memory.load::<I>(tx, node + 1)?;
            list.push((item, memory.load(tx, value)?.0));
            link = node;
        }
    }
}

impl<K: Key, I: Key, V: Element, P: Protocol> store::Lists<Words<P>, K, I, V> for WordLists<K, I, V, P> {
    fn open(&self, tx: &mut Tx<'_, P>, key: K) -> Result<bool, Abort> {
        if self.chains.find(tx, &key)?.is_some() {
            return Ok(false);
        }
        self.chains.insert(tx, &key, &[0, 0])?;
        Ok(true)
    }

    fn insert(&self, tx: &mut Tx<'_, P>, key: K, item: I, value: V) -> Result<bool, Abort> {
        let memory = &self.chains.memory;
        let Some(list) = self.chains.find(tx, &key)? else {
            let mut words = vec![0];
            item.encode(&mut words);
            value.encode(&mut words);
            let node = memory.store(tx, &words)?;
            self.chains.insert(tx, &key, &[node, 1])?;
            return Ok(true);
        };
        let mut link = list.content;
        let next = loop {
            let node = memory.read(tx, link)?;
            if node == 0 {
                break node;
            }
            let (found, _) = memory.load::<I>(tx, node + 1)?;
            if found == item {
                return Ok(false);
            }
            if found > item {
                break node;
            }
            link = node;
        };
        let mut words = vec![next];
        item.encode(&mut words);
        value.encode(&mut words);
        let node = memory.store(tx, &words)?;
        memory.write(tx, link, node)?;
        let length = memory.read(tx, list.content + 1)?;
        memory.write(tx, list.content + 1, length + 1)?;
        Ok(true)
    }

    fn len(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<usize>, Abort> {
        let Some(list) = self.chains.find(tx, &key)? else { return Ok(None) };
        Ok(Some(self.chains.memory.read(tx, list.content + 1)? as usize))
    }

    fn get(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<Vec<(I, V)>>, Abort> {
        let Some(list) = self.chains.find(tx, &key)? else { return Ok(None) };
        self.copy(tx, list.content).map(Some)
    }

    fn take(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<Vec<(I, V)>>, Abort> {
        let Some(list) = self.chains.find(tx, &key)? else { return Ok(None) };
        let items = self.copy(tx, list.content)?;
        self.chains.remove(tx, &list)?;
        Ok(Some(items))
    }
}
