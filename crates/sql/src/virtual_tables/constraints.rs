//! `pg_index`, `pg_constraint`, `pg_sequence` and `pg_depend`.

use super::classes::{AnyIndex, default_oid, has_default, indexes_of};
use super::reference::type_facts;
use super::{PUBLIC, find, letter, oid, oids, shorts, text, truth};
use crate::catalog::Relation;
use crate::row::Row;
use crate::run::Run;
use crate::values::Datum;

fn numbers(columns: &[u32]) -> Datum {
    shorts(columns.iter().map(|column| super::column_number(*column as usize)))
}

/// `pg_index`.
pub(super) fn indexes(run: &Run<'_, '_>) -> Vec<Row> {
    let all = run.catalog.relations().flat_map(|relation| {
        indexes_of(relation).map(|index| index_row(relation, &index)).collect::<Vec<_>>()
    });
    all.collect()
}

fn index_row(relation: &Relation, index: &AnyIndex<'_>) -> Row {
    let count = Datum::Int2(i16::try_from(index.columns.len()).unwrap_or(i16::MAX));
    let facts: Vec<_> =
        index.columns.iter().map(|column| type_facts(relation.columns[*column as usize].ty)).collect();
    Row::new(vec![
        oid(index.oid),
        oid(relation.oid),
        count.clone(),
        count,
        truth(index.is_unique),
        truth(false),
        truth(index.is_primary),
        truth(false),
        truth(true),
        truth(false),
        truth(true),
        truth(false),
        truth(true),
        truth(true),
        truth(false),
        numbers(index.columns),
        oids(facts.iter().map(|facts| facts.collation)),
        oids(facts.iter().map(|facts| facts.operator_class)),
        shorts(index.columns.iter().map(|_| 0)),
        Datum::Null,
        Datum::Null,
    ])
}

/// A constraint of a table.
pub(super) struct AnyConstraint<'a> {
    pub(super) oid: u32,
    pub(super) name: &'a str,
    /// `p`, `u` or `c`, as `contype`.
    pub(super) kind: char,
    pub(super) columns: Vec<u32>,
    /// The index that enforces it, or 0.
    pub(super) index: u32,
    /// The condition, if it is one.
    pub(super) condition: Option<&'a str>,
}

/// The constraints of a table.
pub(super) fn constraints_of(relation: &Relation) -> Vec<AnyConstraint<'_>> {
    let keys = indexes_of(relation).filter_map(|index| {
        Some(AnyConstraint {
            oid: index.constraint?,
            name: index.name,
            kind: if index.is_primary { 'p' } else { 'u' },
            columns: index.columns.to_vec(),
            index: index.oid,
            condition: None,
        })
    });
    let checks = relation.checks.iter().map(|check| AnyConstraint {
        oid: check.oid,
        name: &check.name,
        kind: 'c',
        columns: columns_of(relation, &check.text),
        index: 0,
        condition: Some(&check.text),
    });
    keys.chain(checks).collect()
}

/// The columns that a condition names, in the table's order.
fn columns_of(relation: &Relation, condition: &str) -> Vec<u32> {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::{Token, Tokenizer};
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, condition).tokenize().unwrap_or_default();
    let names =
        |column: &str| tokens.iter().any(|token| matches!(token, Token::Word(word) if word.value == column));
    let columns = relation.columns.iter().enumerate().filter(|(_, column)| names(&column.name));
    columns.map(|(place, _)| place as u32).collect()
}

/// `pg_constraint`.
pub(super) fn constraints(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in run.catalog.relations() {
        for constraint in constraints_of(relation) {
            let (zero, no, nothing) = (|| oid(0), || truth(false), || Datum::Null);
            rows.push(Row::new(vec![
                oid(constraint.oid),
                text(constraint.name),
                oid(PUBLIC),
                letter(constraint.kind),
                no(),
                no(),
                truth(true),
                oid(relation.oid),
                zero(),
                oid(constraint.index),
                zero(),
                zero(),
                letter(' '),
                letter(' '),
                letter(' '),
                truth(true),
                Datum::Int4(0),
                truth(constraint.kind != 'c'),
                if constraint.columns.is_empty() { Datum::Null } else { numbers(&constraint.columns) },
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                constraint.condition.map_or(Datum::Null, text),
            ]));
        }
    }
    rows
}

/// `pg_sequence`.
pub(super) fn sequences(run: &Run<'_, '_>) -> Vec<Row> {
    let row = |sequence: &std::sync::Arc<crate::catalog::Sequence>| {
        Row::new(vec![
            oid(sequence.oid),
            oid(sequence.ty.oid()),
            Datum::Int8(sequence.start),
            Datum::Int8(sequence.increment),
            Datum::Int8(sequence.max),
            Datum::Int8(sequence.min),
            Datum::Int8(1),
            truth(false),
        ])
    };
    run.catalog.sequences().map(row).collect()
}

/// The number of one of the system's tables.
fn number_of_table(name: &str) -> u32 {
    find(None, name).map_or(0, |table| table.oid)
}

/// `pg_depend`: sequences belong to their columns, defaults to their columns and sequences, indexes to their constraints or columns.
pub(super) fn dependencies(run: &Run<'_, '_>) -> Vec<Row> {
    let class = number_of_table("pg_class");
    let default = number_of_table("pg_attrdef");
    let constraint = number_of_table("pg_constraint");
    let mut rows = Vec::new();
    let mut add = |(from_class, from), (to_class, to, column): (u32, u32, i32), kind| {
        rows.push(Row::new(vec![
            oid(from_class),
            oid(from),
            Datum::Int4(0),
            oid(to_class),
            oid(to),
            Datum::Int4(column),
            letter(kind),
        ]));
    };
    let column_number = |place: u32| i32::try_from(place + 1).unwrap_or(i32::MAX);
    for relation in run.catalog.relations() {
        for (place, column) in relation.columns.iter().enumerate() {
            let number = column_number(place as u32);
            if has_default(column) {
                let this = (default, default_oid(relation.oid, place));
                add(this, (class, relation.oid, number), 'a');
                if let Some(sequence) = column.sequence {
                    add(this, (class, sequence, 0), 'n');
                }
            }
        }
        for index in indexes_of(relation) {
            if let Some(number) = index.constraint {
                add((class, index.oid), (constraint, number, 0), 'i');
                continue;
            }
            for column in index.columns {
                add((class, index.oid), (class, relation.oid, column_number(*column)), 'a');
            }
        }
        for one in constraints_of(relation) {
            for column in &one.columns {
                add((constraint, one.oid), (class, relation.oid, column_number(*column)), 'a');
            }
        }
    }
    for sequence in run.catalog.sequences() {
        let Some((table, place)) = sequence.owner else { continue };
        let is_identity = run.catalog.relations().any(|relation| {
            relation.oid == table
                && relation.columns.get(place as usize).is_some_and(|column| column.identity.is_some())
        });
        let kind = if is_identity { 'i' } else { 'a' };
        add((class, sequence.oid), (class, table, column_number(place)), kind);
    }
    rows
}
