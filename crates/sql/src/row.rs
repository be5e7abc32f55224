//! Rows as tables store them.

use crate::values::Datum;
use hotrow::{Stored, Value};
use std::ops::Deref;
use std::sync::Arc;

/// A row: one value for each column of its table. A clone shares them.
#[derive(Debug, Clone, PartialEq, Stored, Value)]
pub(crate) struct Row(Arc<[Datum]>);

impl Row {
    /// A row of these values.
    pub(crate) fn new(values: Vec<Datum>) -> Self {
        Self(values.into())
    }

    /// A row of so many nulls.
    pub(crate) fn nulls(columns: usize) -> Self {
        Self::new(vec![Datum::Null; columns])
    }

    /// The values, to be changed. They are copied if another row shares them.
    pub(crate) fn values_mut(&mut self) -> &mut [Datum] {
        Arc::make_mut(&mut self.0)
    }
}

impl Deref for Row {
    type Target = [Datum];

    fn deref(&self) -> &[Datum] {
        &self.0
    }
}

impl FromIterator<Datum> for Row {
    fn from_iter<I: IntoIterator<Item = Datum>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl From<Vec<Datum>> for Row {
    fn from(values: Vec<Datum>) -> Self {
        Self::new(values)
    }
}
