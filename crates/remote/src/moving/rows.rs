//! Rows of tables of which the types are not known, as values of a store ([`crate::rows`]) and as bytes.

use crate::catalog::Shape;
use crate::rows::{Division, Parts, key_bytes};
use hotrow_stored::{Malformed, Plan};

/// The value of a row of a table that was copied.
///
/// # Errors
///
/// The reason for which it cannot be stored.
pub(crate) fn value(key: &[u8], row: &[u8]) -> Result<Vec<u8>, String> {
    Ok(Division::whole().split(key, &[row])?.concat())
}

/// Makes keys and rows from the values of their parts.
pub(crate) struct WholeRows {
    division: Division,
    plan: Plan,
}

impl WholeRows {
    pub(crate) fn of(shape: &Shape) -> Self {
        Self { division: Division::of(&shape.row, &shape.parts), plan: shape.row.plan() }
    }

    /// The key and the row that have these parts, each with its number.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if a part is missing, or has something else.
    pub(crate) fn join(&self, parts: Vec<(usize, Vec<u8>)>) -> Result<(Vec<u8>, Vec<u8>), Malformed> {
        if !parts.iter().map(|(number, _)| *number).eq(0..self.division.parts()) {
            return Err(Malformed::new("a row lacks a part, or has one more"));
        }
        let key = key_bytes(&parts[0].1)?.to_vec();
        let parts: Parts = parts.into_iter().map(|(_, value)| Some(value)).collect();
        let row = self.division.join(&parts, None)?.concat();
        // Only bytes that the type reads are written to a log.
        self.plan.convert(&row)?;
        Ok((key, row))
    }
}
