//! Constraints: conditions that each row of a table meets whenever a transaction commits.
//!
//! A row is judged once, in its final state: when the body has ended and all deferred operations have run, and before the
//! protocol's commit begins. So no lock of the commit is held meanwhile, except the ticket locks of segments with deferred
//! operations, as while those run. A row may be wrong in between. The pending write is what the commit will install, so
//! nothing can change between the two.
//!
//! A violation is a rollback. It counts only if the attempt has seen one consistent state, as if the body itself had
//! returned the error; so a state that never was breaks no constraint.

use crate::errors::ConstraintViolated;
use std::fmt::Debug;

/// A condition that each row of a table meets.
struct Constraint<K, R> {
    name: Box<str>,
    holds: Box<dyn Fn(&K, &R) -> bool + Send + Sync>,
}

/// The constraints of a table, in the order of their declarations.
pub struct Constraints<K, R>(Vec<Constraint<K, R>>);

impl<K, R> std::fmt::Debug for Constraints<K, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|constraint| &constraint.name)).finish()
    }
}

impl<K, R> Default for Constraints<K, R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Debug, R> Constraints<K, R> {
    /// No constraints.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a constraint of this name.
    pub fn add(&mut self, name: &str, holds: impl Fn(&K, &R) -> bool + Send + Sync + 'static) {
        self.0.push(Constraint { name: name.into(), holds: Box::new(holds) });
    }

    /// True if every row is accepted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Judges a row of a table by all constraints.
    ///
    /// # Errors
    ///
    /// [`ConstraintViolated`] by the first one that does not hold.
    #[inline]
    pub fn judge(&self, table: &str, key: &K, row: &R) -> Result<(), ConstraintViolated> {
        match self.0.iter().find(|constraint| !(constraint.holds)(key, row)) {
            None => Ok(()),
            Some(broken) => Err(broken.violated(table, key)),
        }
    }
}

impl<K: Debug, R> Constraint<K, R> {
    #[cold]
    fn violated(&self, table: &str, key: &K) -> ConstraintViolated {
        ConstraintViolated {
            table: table.to_owned(),
            key: format!("{key:?}"),
            constraint: self.name.to_string(),
        }
    }
}
