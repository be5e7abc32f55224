//! The sorted lists that the lists of the store are made of.

use crate::store::{Element, Key};
use hotrow::Value;
use hotrow::cell::Boxed;

/// A sorted list with a value for each item. A list of one item needs no memory beside itself. A transaction that changes a
/// list copies it, mostly to insert an item, so a copy has room for one more.
pub struct List<I, V> {
    first: Option<(I, V)>,
    /// The items behind the first one.
    others: Vec<(I, V)>,
}

impl<I: Key, V: Element> Clone for List<I, V> {
    fn clone(&self) -> Self {
        let mut others = Vec::new();
        if self.first.is_some() {
            others.reserve_exact(self.others.len() + 1);
            others.extend_from_slice(&self.others);
        }
        Self { first: self.first.clone(), others }
    }
}

impl<I: Key, V: Element> Value for List<I, V> {
    type Cell = Boxed<Self>;

    fn heap_bytes(&self) -> usize {
        self.others.capacity() * size_of::<(I, V)>()
    }
}

impl<I: Key, V: Element> List<I, V> {
    pub(crate) fn new() -> Self {
        Self { first: None, others: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(crate) fn to_vec(&self) -> Vec<(I, V)> {
        let mut items = Vec::with_capacity(self.len());
        items.extend(self.first.clone());
        items.extend_from_slice(&self.others);
        items
    }

    pub(crate) fn into_vec(mut self) -> Vec<(I, V)> {
        if let Some(first) = self.first {
            self.others.insert(0, first);
        }
        self.others
    }

    /// Inserts an item, unless it is there.
    pub(crate) fn insert(&mut self, item: I, value: V) -> bool {
        match &mut self.first {
            None => self.first = Some((item, value)),
            Some((first, _)) if *first == item => return false,
            Some(first) if first.0 > item => {
                let old = std::mem::replace(first, (item, value));
                self.others.insert(0, old);
            }
            Some(_) => match self.others.binary_search_by_key(&item, |(item, _)| *item) {
                Ok(_) => return false,
                Err(position) => self.others.insert(position, (item, value)),
            },
        }
        true
    }
}
