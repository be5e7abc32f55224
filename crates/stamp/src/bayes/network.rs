//! The network that is learned: a graph without cycles.

use super::records::{Variables, members};
use crate::encode::Encode;
use crate::store::{Store, Vector};

/// A change of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Adds an edge.
    Insert,
    /// Removes an edge.
    Remove,
    /// Turns an edge around.
    Reverse,
}

impl Encode for Operation {
    fn encode(&self, words: &mut Vec<u64>) {
        words.push(*self as u64);
    }

    fn decode<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        Ok(match next()? {
            0 => Self::Insert,
            1 => Self::Remove,
            _ => Self::Reverse,
        })
    }
}

/// The parents and the children of each variable.
pub(crate) struct Network<S: Store> {
    pub(crate) parents: S::Vector<Variables>,
    pub(crate) children: S::Vector<Variables>,
}

/// The set of one variable.
pub(crate) fn only(variable: usize) -> Variables {
    1 << variable
}

impl<S: Store> Network<S> {
    /// Makes a network without edges.
    pub(crate) fn new(store: &S, variables: usize) -> Self {
        let none = || store.vector((0..variables).map(|_| 0));
        Self { parents: none(), children: none() }
    }

    /// Returns the variables to which a path of at least one edge leads from `from`, other than by the edges from
    /// `from` to `without`.
    pub(crate) fn descendants(
        &self,
        tx: &mut S::Tx<'_>,
        from: usize,
        without: Variables,
    ) -> Result<Variables, S::Abort> {
        let mut found = self.children.get(tx, from)? & !without;
        let mut waiting = found;
        while waiting != 0 {
            let variable = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            let new = self.children.get(tx, variable)? & !found;
            found |= new;
            waiting |= new;
        }
        Ok(found)
    }

    /// Changes the edge from `from` to `to` and returns true, or returns false if a cycle would arise.
    pub(crate) fn change(
        &self,
        tx: &mut S::Tx<'_>,
        operation: Operation,
        from: usize,
        to: usize,
    ) -> Result<bool, S::Abort> {
        match operation {
            Operation::Insert => {
                if self.descendants(tx, to, 0)? & only(from) != 0 {
                    return Ok(false);
                }
                self.toggle(tx, from, to)?;
            }
            Operation::Remove => self.toggle(tx, from, to)?,
            Operation::Reverse => {
                if self.descendants(tx, from, only(to))? & only(to) != 0 {
                    return Ok(false);
                }
                self.toggle(tx, from, to)?;
                self.toggle(tx, to, from)?;
            }
        }
        Ok(true)
    }

    /// Adds an edge, or removes it if it is there.
    fn toggle(&self, tx: &mut S::Tx<'_>, from: usize, to: usize) -> Result<(), S::Abort> {
        self.parents.update(tx, to, |parents| *parents ^= only(from))?;
        self.children.update(tx, from, |children| *children ^= only(to))
    }
}

/// True if a graph, given by the parents of each variable, has a cycle.
pub(crate) fn has_cycle(parents: &[Variables]) -> bool {
    let mut done: Variables = 0;
    loop {
        let ready = (0..parents.len())
            .find(|variable| done & only(*variable) == 0 && parents[*variable] & !done == 0);
        match ready {
            Some(variable) => done |= only(variable),
            None => return members(done).count() < parents.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::Sequential;

    #[test]
    fn no_cycle_arises() {
        let network = Network::new(&Sequential::default(), 3);
        let change = |operation, from, to| {
            let Ok(is_done) = network.change(&mut (), operation, from, to);
            is_done
        };
        assert!(change(Operation::Insert, 0, 1) && change(Operation::Insert, 1, 2));
        assert!(!change(Operation::Insert, 2, 0));
        assert!(change(Operation::Insert, 0, 2));
        assert!(!change(Operation::Reverse, 0, 2));
        assert!(change(Operation::Remove, 0, 1) && change(Operation::Reverse, 0, 2));
        let Ok(parents) =
            (0..3).map(|variable| network.parents.get(&mut (), variable)).collect::<Result<Vec<_>, _>>();
        assert_eq!(parents, [0b100, 0, 0b010]);
    }

    #[test]
    fn cycles_are_seen() {
        assert!(!has_cycle(&[0b110, 0b100, 0]));
        assert!(has_cycle(&[0b010, 0b100, 0b001]));
        assert!(has_cycle(&[0, 0b010]));
    }
}
