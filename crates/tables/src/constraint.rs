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
use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::{Protocol, Value};

/// A condition that each row of a table meets.
pub(crate) struct Constraint<K, R> {
    pub(crate) name: Box<str>,
    pub(crate) holds: Box<dyn Fn(&K, &R) -> bool + Send + Sync>,
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Judges a row by all constraints, in the order of their declarations.
    pub(crate) fn judge(&self, key: &K, row: &R) -> Result<(), ConstraintViolated> {
        match self.constraints.iter().find(|constraint| !(constraint.holds)(key, row)) {
            None => Ok(()),
            Some(broken) => Err(self.violated(key, broken)),
        }
    }

    #[cold]
    fn violated(&self, key: &K, broken: &Constraint<K, R>) -> ConstraintViolated {
        ConstraintViolated {
            table: self.meta.name().to_owned(),
            key: format!("{key:?}"),
            constraint: broken.name.to_string(),
        }
    }
}
