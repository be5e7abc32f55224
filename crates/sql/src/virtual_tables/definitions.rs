//! Definitions as SQL (`pg_get_indexdef`, `pg_get_constraintdef`), and the views of `pg_catalog` about users' tables.

use super::classes::{AnyIndex, indexes_of};
use super::constraints::{AnyConstraint, constraints_of};
use super::names::quoted;
use super::parentheses::without_parentheses;
use super::server::OWNER_NAME;
use super::{oid, schema, text, truth};
use crate::catalog::{Catalog, Relation};
use crate::row::Row;
use crate::run::Run;
use crate::values::Datum;

/// The command that makes an index, or its column of this number from 1 on.
pub(super) fn index_definition(oid: u32, column: i32, catalog: &Catalog) -> Option<String> {
    let find = |relation: &std::sync::Arc<Relation>| {
        let index = indexes_of(relation).find(|index| index.oid == oid)?;
        if column == 0 {
            return Some(create_index(relation, &index));
        }
        let place = usize::try_from(column).ok()?.checked_sub(1)?;
        Some(index.columns.get(place).map_or_else(String::new, |column| column_name(relation, *column)))
    };
    catalog.relations().find_map(find)
}

/// `CREATE INDEX` for an index.
fn create_index(relation: &Relation, index: &AnyIndex<'_>) -> String {
    let unique = if index.is_unique { "UNIQUE " } else { "" };
    let (name, table) = (quoted(index.name), quoted(&relation.name));
    let columns = columns(relation, index.columns);
    format!("CREATE {unique}INDEX {name} ON public.{table} USING btree ({columns})")
}

fn column_name(relation: &Relation, place: u32) -> String {
    relation.columns.get(place as usize).map_or_else(String::new, |column| quoted(&column.name))
}

fn columns(relation: &Relation, places: &[u32]) -> String {
    let names: Vec<String> = places.iter().map(|place| column_name(relation, *place)).collect();
    names.join(", ")
}

/// A constraint as `CREATE TABLE` has it.
pub(super) fn constraint_definition(oid: u32, pretty: bool, catalog: &Catalog) -> Option<String> {
    catalog.relations().find_map(|relation| {
        let all = constraints_of(relation);
        all.iter()
            .find(|constraint| constraint.oid == oid)
            .map(|found| constraint_text(relation, found, pretty))
    })
}

fn constraint_text(relation: &Relation, constraint: &AnyConstraint<'_>, pretty: bool) -> String {
    match constraint.condition {
        Some(condition) => {
            let text = if pretty { without_parentheses(condition) } else { condition.to_owned() };
            format!("CHECK ({text})")
        }
        None => {
            let kind = if constraint.kind == 'p' { "PRIMARY KEY" } else { "UNIQUE" };
            format!("{kind} ({})", columns(relation, &constraint.columns))
        }
    }
}

/// `pg_tables`.
pub(super) fn tables(run: &Run<'_, '_>) -> Vec<Row> {
    let row = |schema: &str, name: &str, has_indexes: bool| {
        Row::new(vec![
            text(schema),
            text(name),
            text(OWNER_NAME),
            Datum::Null,
            truth(has_indexes),
            truth(false),
            truth(false),
            truth(false),
        ])
    };
    let system = schema::tables().filter(|table| table.kind == 'r');
    let mut rows: Vec<Row> = system.map(|table| row(table.schema, table.name, false)).collect();
    let users = run.catalog.relations();
    rows.extend(users.map(|table| row("public", &table.name, table.index_names().next().is_some())));
    rows
}

/// `pg_indexes`.
pub(super) fn indexes(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in run.catalog.relations() {
        for index in indexes_of(relation) {
            rows.push(Row::new(vec![
                text("public"),
                text(relation.name.as_str()),
                text(index.name),
                Datum::Null,
                text(create_index(relation, &index)),
            ]));
        }
    }
    rows
}

/// `pg_sequences`. The last value is unknown but for those that this connection has drawn.
pub(super) fn sequences(run: &Run<'_, '_>) -> Vec<Row> {
    let drawn = run.session.sequence_values.borrow();
    let rows = run.catalog.sequences().map(|sequence| {
        Row::new(vec![
            text("public"),
            text(sequence.name.as_str()),
            text(OWNER_NAME),
            oid(sequence.ty.oid()),
            Datum::Int8(sequence.start),
            Datum::Int8(sequence.min),
            Datum::Int8(sequence.max),
            Datum::Int8(sequence.increment),
            truth(false),
            Datum::Int8(1),
            drawn.get(&sequence.oid).map_or(Datum::Null, |value| Datum::Int8(*value)),
        ])
    });
    rows.collect()
}

/// `pg_stat_user_tables`: the tables. Nothing is counted for them.
pub(super) fn statistics(run: &Run<'_, '_>) -> Vec<Row> {
    let rows = run.catalog.relations().map(|relation| {
        let zero = || Datum::Int8(0);
        let mut values = vec![oid(relation.oid), text("public"), text(relation.name.as_str())];
        values.extend((0..12).map(|_| zero()));
        values.extend((0..4).map(|_| Datum::Null));
        values.extend((0..4).map(|_| zero()));
        Row::new(values)
    });
    rows.collect()
}
