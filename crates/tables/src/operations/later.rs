//! Values that are known now or later.

use crate::data::Data;
use hotrow_core::operations::Results;
use hotrow_core::{Abort, Deferred, Input, Protocol, Transaction};

/// A value that is known now, or will be when the transaction commits.
#[derive(Debug, Clone)]
pub enum Later<T> {
    /// Known now.
    Known(T),
    /// Known at the commit.
    Deferred(Deferred<T>),
}

impl<T> From<T> for Later<T> {
    #[inline(always)]
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Data> Later<T> {
    /// Returns the value now, running recorded operations if necessary.
    #[doc(hidden)]
    #[inline(always)]
    pub fn force<P: Protocol>(self, tx: &mut Transaction<'_, P>) -> Result<T, Abort> {
        match self {
            Later::Known(value) => Ok(value),
            Later::Deferred(deferred) => tx.force(deferred),
        }
    }
}

impl<T: 'static> Later<T> {
    /// Converts the value into a deferred one, whether it is known now or not.
    #[doc(hidden)]
    pub fn into_deferred<P: Protocol>(self, tx: &mut Transaction<'_, P>) -> Deferred<T> {
        match self {
            Later::Known(value) => tx.known(value),
            Later::Deferred(deferred) => deferred,
        }
    }
}

impl<T: Clone + 'static> Input for Later<T> {
    type Value = T;

    fn get(&self, results: &Results) -> Option<T> {
        match self {
            Later::Known(value) => Some(value.clone()),
            Later::Deferred(deferred) => deferred.get(results),
        }
    }

    fn is_known(&self, results: &Results) -> bool {
        match self {
            Later::Known(_) => true,
            Later::Deferred(deferred) => deferred.is_known(results),
        }
    }

    fn belongs_to(&self, results: &Results) -> bool {
        match self {
            Later::Known(_) => true,
            Later::Deferred(deferred) => deferred.belongs_to(results),
        }
    }

    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        if let Later::Deferred(deferred) = self {
            deferred.each_slot(visit);
        }
    }
}
