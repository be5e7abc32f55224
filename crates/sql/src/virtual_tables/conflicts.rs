//! The conflict report as tables: the rows over which most attempts were lost, and who lost them to whom.

use super::text;
use crate::catalog::{Catalog, Relation};
use crate::row::Row;
use crate::run::Run;
use crate::values::{Datum, Type, decode_key};
use hotrow::HotKey;

/// The largest number of keys in a report.
const KEYS_MAX: usize = 1_000;

/// `hotrow_hot_rows`: table, key, lost attempts; the most first.
pub(super) fn hot_rows(run: &Run<'_, '_>) -> Vec<Row> {
    let hot = run.shared.database.hot_keys(KEYS_MAX);
    let row = |hot: &HotKey| {
        let (table, key) = named(&hot.object, &hot.key, &run.catalog);
        Row::new(vec![text(table), text(key), count(hot.conflicts)])
    };
    hot.iter().map(row).collect()
}

/// `hotrow_conflicts`: table, key, loser, winner, lost attempts. It is empty until the database reports both sides.
pub(super) fn conflicts(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for hot in run.shared.database.hot_keys(KEYS_MAX) {
        let (table, key) = named(&hot.object, &hot.key, &run.catalog);
        for rivalry in &hot.rivalries {
            let side = |origin: Option<hotrow::Origin>| {
                origin.map_or(Datum::Null, |origin| text(origin.to_string()))
            };
            rows.push(Row::new(vec![
                text(table.as_str()),
                text(key.as_str()),
                side(rivalry.loser),
                side(rivalry.winner),
                count(rivalry.conflicts),
            ]));
        }
    }
    rows
}

fn count(conflicts: u64) -> Datum {
    Datum::Int8(i64::try_from(conflicts).unwrap_or(i64::MAX))
}

/// The names of a table or an index, and of a key, as SQL has them; those of the report, if nothing in the catalog has its storage.
pub(crate) fn named(object: &str, key: &str, catalog: &Catalog) -> (String, String) {
    let storage = object.strip_prefix("rows ").and_then(|number| number.parse::<u32>().ok());
    let known = storage.and_then(|storage| {
        catalog.relations().find_map(|relation| {
            if relation.storage == storage {
                let key = relation.primary_key.as_ref();
                return Some((relation.name.clone(), relation, key.map(|key| key.columns.as_slice())));
            }
            let index = relation.indexes.iter().find(|index| index.storage == storage)?;
            Some((index.name.clone(), relation, Some(index.columns.as_slice())))
        })
    });
    let Some((name, relation, columns)) = known else {
        let is_catalog = object == "catalog";
        let name = if is_catalog { "pg_class".to_owned() } else { object.to_owned() };
        return (name, key.to_owned());
    };
    let shown = bytes_of(key).and_then(|bytes| key_text(&bytes, relation, columns));
    (name, shown.unwrap_or_else(|| key.to_owned()))
}

/// The bytes that a report shows as a list of numbers.
fn bytes_of(shown: &str) -> Option<Vec<u8>> {
    let numbers = shown.strip_prefix('[')?.strip_suffix(']')?;
    numbers.split(',').map(|number| number.trim().parse().ok()).collect()
}

/// A key's values, as in the detail of an error: `(a, b)=(1, x)`; a row's own number, if its table has no primary key.
fn key_text(bytes: &[u8], relation: &Relation, columns: Option<&[u32]>) -> Option<String> {
    let Some(columns) = columns else {
        let (number, _) = decode_key(bytes, Type::Int8)?;
        return Some(format!("row {}", number.to_text(Type::Int8)));
    };
    let mut rest = bytes;
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in columns {
        let column = relation.columns.get(*column as usize)?;
        let (value, left) = decode_key(rest, column.ty)?;
        rest = left;
        names.push(column.name.as_str());
        values.push(if value.is_null() { "null".to_owned() } else { value.to_text(column.ty) });
    }
    Some(format!("({})=({})", names.join(", "), values.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn a_list_of_numbers_is_read_as_bytes() {
        assert_eq!(bytes_of("[1, 128, 0]"), Some(vec![1, 128, 0]));
        assert_eq!(bytes_of("row 7"), None);
    }
}
