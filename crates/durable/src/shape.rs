//! The shape of a table or an object: what the log's catalog keeps of it, to recognise it when it is opened again.

use hotrow_core::Misuse;
use hotrow_stored::{Change, Difference, Malformed, Plan, Reader, Schema, Stored, Writer};

/// The kind of tables.
pub(crate) const TABLE: &str = "table";

/// The schemas of a structure's keys and rows.
#[derive(Debug, Clone, PartialEq, Eq, Stored)]
#[hotrow(crate = "hotrow_stored::facade")]
pub(crate) struct Shape {
    /// The kind of the structure.
    pub(crate) kind: String,
    pub(crate) key: Schema,
    pub(crate) row: Schema,
}

/// The way from the shape that a structure had to the one that it has.
pub(crate) enum Converted {
    /// The same bytes. True if names or variants have changed.
    Same(bool),
    /// Other bytes, of keys, rows or both.
    Other(Conversion),
}

/// Makes keys and rows of an earlier shape those of the present one.
#[derive(Default)]
pub(crate) struct Conversion {
    key: Option<Plan>,
    row: Option<Plan>,
}

impl Shape {
    /// The shape of a structure with these schemas of its keys and rows.
    pub(crate) fn of(kind: &str, (key, row): (Schema, Schema)) -> Self {
        Self { kind: kind.to_owned(), key, row }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Misuse> {
        let mut bytes = Vec::new();
        Writer::write(&mut bytes, |to| self.put(to)).map_err(Misuse::Unsupported)?;
        Ok(bytes)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let shape = Reader::read(bytes, Self::get)?;
        shape.key.check()?;
        shape.row.check()?;
        Ok(shape)
    }

    /// Compares it with an earlier one.
    ///
    /// # Errors
    ///
    /// The difference, if it is no safe change.
    pub(crate) fn change_from(&self, earlier: &Self) -> Result<Converted, Difference> {
        if self.kind != earlier.kind {
            let words = format!("{} was {}", self.kind, earlier.kind);
            return Err(Difference { place: "its kind".to_owned(), words });
        }
        let (mut conversion, mut has_changed, mut changes_bytes) = (Conversion::default(), false, false);
        let parts = [
            (&self.key, &earlier.key, "key", &mut conversion.key),
            (&self.row, &earlier.row, "row", &mut conversion.row),
        ];
        for (now, earlier, place, plan) in parts {
            match now.change_from(earlier, place)? {
                Change::None => {}
                Change::Names => has_changed = true,
                Change::Bytes(changed) => {
                    changes_bytes = true;
                    *plan = Some(changed);
                }
            }
        }
        Ok(if changes_bytes { Converted::Other(conversion) } else { Converted::Same(has_changed) })
    }
}

impl Conversion {
    /// Converts a key and a row, and hands them over.
    pub(crate) fn convert<T>(
        &self,
        key: &[u8],
        row: &[u8],
        take: impl FnOnce(&[u8], &[u8]) -> Result<T, String>,
    ) -> Result<T, String> {
        let convert = |plan: &Option<Plan>, bytes: &[u8]| match plan {
            None => Ok(None),
            Some(plan) => plan.convert(bytes).map(Some).map_err(|malformed| malformed.to_string()),
        };
        let (new_key, new_row) = (convert(&self.key, key)?, convert(&self.row, row)?);
        take(new_key.as_deref().unwrap_or(key), new_row.as_deref().unwrap_or(row))
    }
}
