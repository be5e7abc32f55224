//! References to tables and indexes, by which procedures name them.

use crate::catalog::PartId;
use std::fmt;
use std::marker::PhantomData;

/// A reference to a table of a database: a number, with the types of its keys and rows. Procedures name tables by it.
///
/// It does not depend on the protocol, so that one procedure works with every protocol.
pub struct TableRef<K, R> {
    pub(crate) part: PartId,
    /// Invariant: a reference must not become one to a table of a subtype or supertype.
    types: PhantomData<fn(K, R) -> (K, R)>,
}

/// A reference to a secondary index of a database, likewise.
pub struct IndexRef<S, K, R> {
    pub(crate) part: PartId,
    types: PhantomData<fn(S, K, R) -> (S, K, R)>,
}

impl<K, R> TableRef<K, R> {
    pub(crate) fn new(part: PartId) -> Self {
        Self { part, types: PhantomData }
    }
}

impl<S, K, R> IndexRef<S, K, R> {
    pub(crate) fn new(part: PartId) -> Self {
        Self { part, types: PhantomData }
    }
}

impl<K, R> Clone for TableRef<K, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, R> Copy for TableRef<K, R> {}
impl<K, R> fmt::Debug for TableRef<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableRef({})", self.part.number())
    }
}

impl<S, K, R> Clone for IndexRef<S, K, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S, K, R> Copy for IndexRef<S, K, R> {}
impl<S, K, R> fmt::Debug for IndexRef<S, K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexRef({})", self.part.number())
    }
}
