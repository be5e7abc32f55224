//! The views of `information_schema` about schemas, tables, columns, constraints and sequences.

use super::constraints::{AnyConstraint, constraints_of};
use super::reference::NAMESPACES;
use super::server::OWNER_NAME;
use super::{DATABASE_OWNER, PUBLIC, column_number, schema, text, yes_or_no};
use crate::catalog::{Column, Relation};
use crate::row::Row;
use crate::run::Run;
use crate::values::{Datum, Type};

const NOTHING: Datum = Datum::Null;

/// The database, the schema `public` and a name: the full name of a user's thing.
fn full(run: &Run<'_, '_>, name: &str) -> Vec<Datum> {
    vec![text(run.session.database.as_str()), text("public"), text(name)]
}

/// `tables`.
pub(super) fn tables(run: &Run<'_, '_>) -> Vec<Row> {
    let row = |schema: &str, name: &str, kind: &str| {
        Row::new(vec![
            text(run.session.database.as_str()),
            text(schema),
            text(name),
            text(kind),
            NOTHING,
            NOTHING,
            NOTHING,
            NOTHING,
            NOTHING,
            yes_or_no(schema == "public"),
            text("NO"),
            NOTHING,
        ])
    };
    let system = schema::tables().map(|table| {
        let kind = if table.kind == 'r' { "BASE TABLE" } else { "VIEW" };
        row(table.schema, table.name, kind)
    });
    let mut rows: Vec<Row> = system.collect();
    rows.extend(run.catalog.relations().map(|relation| row("public", &relation.name, "BASE TABLE")));
    rows
}

/// `schemata`.
pub(super) fn schemata(run: &Run<'_, '_>) -> Vec<Row> {
    let row = |(_, name, owner): (u32, &'static str, u32)| {
        let owner = if owner == DATABASE_OWNER { "pg_database_owner" } else { OWNER_NAME };
        let database = text(run.session.database.as_str());
        Row::new(vec![database, text(name), text(owner), NOTHING, NOTHING, NOTHING, NOTHING])
    };
    NAMESPACES.map(row).to_vec()
}

/// The length in characters and in bytes that a type's values may have.
fn lengths(ty: Type, modifier: i32) -> (Datum, Datum) {
    match ty {
        Type::Char | Type::Varchar if modifier >= 4 => {
            let length = modifier - 4;
            (Datum::Int4(length), Datum::Int4(length.saturating_mul(4)))
        }
        Type::Char | Type::Varchar | Type::Text => (NOTHING, Datum::Int4(1 << 30)),
        _ => (NOTHING, NOTHING),
    }
}

/// The precision of a number, its radix and its scale.
fn precision(ty: Type, modifier: i32) -> (Datum, Datum, Datum) {
    let all = |precision, radix, scale: Option<i32>| {
        (Datum::Int4(precision), Datum::Int4(radix), scale.map_or(NOTHING, Datum::Int4))
    };
    match ty {
        Type::Int2 => all(16, 2, Some(0)),
        Type::Int4 => all(32, 2, Some(0)),
        Type::Int8 => all(64, 2, Some(0)),
        Type::Float4 => all(24, 2, None),
        Type::Float8 => all(53, 2, None),
        Type::Numeric if modifier >= 4 => all((modifier - 4) >> 16, 10, Some((modifier - 4) & 0x7FF)),
        Type::Numeric => (NOTHING, Datum::Int4(10), NOTHING),
        _ => (NOTHING, NOTHING, NOTHING),
    }
}

/// The digits of a second's fraction.
fn fraction(ty: Type, modifier: i32) -> Datum {
    match ty {
        Type::Date => Datum::Int4(0),
        Type::Time | Type::Timestamp | Type::TimestampTz => {
            Datum::Int4(if modifier < 0 { 6 } else { modifier })
        }
        Type::Interval => Datum::Int4(6),
        _ => NOTHING,
    }
}

/// `columns`.
pub(super) fn columns(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in schema::tables() {
        for (place, (name, ty)) in table.columns.iter().enumerate() {
            let column = Column {
                name: (*name).to_owned(),
                ty: *ty,
                modifier: -1,
                not_null: false,
                default: None,
                identity: None,
                sequence: None,
            };
            rows.push(column_row(run, (table.schema, table.name), place, &column));
        }
    }
    for relation in run.catalog.relations() {
        for (place, column) in relation.columns.iter().enumerate() {
            rows.push(column_row(run, ("public", &relation.name), place, column));
        }
    }
    rows
}

fn column_row(run: &Run<'_, '_>, (schema, table): (&str, &str), place: usize, column: &Column) -> Row {
    let database = || text(run.session.database.as_str());
    let number = Datum::Int4(i32::from(column_number(place)));
    let (characters, bytes) = lengths(column.ty, column.modifier);
    let (precision, radix, scale) = precision(column.ty, column.modifier);
    let is_array = column.ty.element().is_some();
    let default = column.default.as_deref().filter(|_| column.identity.is_none());
    let sequence = column.sequence.filter(|_| column.identity.is_some());
    let sequence = run.catalog.sequences().find(|known| Some(known.oid) == sequence);
    let of_sequence = |value: Option<i64>| value.map_or(NOTHING, |value| text(value.to_string()));
    let mut values = vec![
        database(),
        text(schema),
        text(table),
        text(column.name.as_str()),
        number.clone(),
        default.map_or(NOTHING, text),
        yes_or_no(!column.not_null),
        text(if is_array { "ARRAY" } else { column.ty.name() }),
        characters,
        bytes,
        precision,
        radix,
        scale,
        fraction(column.ty, column.modifier),
    ];
    values.extend(std::iter::repeat_n(NOTHING, 11));
    values.extend([database(), text("pg_catalog"), text(column.ty.internal_name())]);
    values.extend(std::iter::repeat_n(NOTHING, 4));
    values.extend([
        text(number.to_text(Type::Int4)),
        text("NO"),
        yes_or_no(column.identity.is_some()),
        column.identity.map_or(NOTHING, |kind| text(if kind == 'a' { "ALWAYS" } else { "BY DEFAULT" })),
        of_sequence(sequence.map(|sequence| sequence.start)),
        of_sequence(sequence.map(|sequence| sequence.increment)),
        of_sequence(sequence.map(|sequence| sequence.max)),
        of_sequence(sequence.map(|sequence| sequence.min)),
        text("NO"),
        text("NEVER"),
        NOTHING,
        yes_or_no(schema == "public"),
    ]);
    Row::new(values)
}

/// Calls a function for each constraint of each table.
fn each_constraint(run: &Run<'_, '_>, mut each: impl FnMut(&Relation, &AnyConstraint<'_>)) {
    for relation in run.catalog.relations() {
        for constraint in constraints_of(relation) {
            each(relation, &constraint);
        }
    }
}

/// The names that the conditions on columns without nulls have here, with the columns.
fn not_null_names(relation: &Relation) -> impl Iterator<Item = (String, &Column)> {
    let columns = relation.columns.iter().enumerate().filter(|(_, column)| column.not_null);
    columns.map(|(place, column)| (format!("{PUBLIC}_{}_{}_not_null", relation.oid, place + 1), column))
}

/// `table_constraints`.
pub(super) fn table_constraints(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |relation: &Relation, name: &str, kind: char| {
        let shown = match kind {
            'p' => "PRIMARY KEY",
            'u' => "UNIQUE",
            _ => "CHECK",
        };
        let mut values = full(run, name);
        values.extend(full(run, &relation.name));
        values.extend([text(shown), text("NO"), text("NO"), text("YES")]);
        values.push(if kind == 'u' { text("YES") } else { NOTHING });
        rows.push(Row::new(values));
    };
    each_constraint(run, |relation, constraint| add(relation, constraint.name, constraint.kind));
    for relation in run.catalog.relations() {
        not_null_names(relation).for_each(|(name, _)| add(relation, &name, 'c'));
    }
    rows
}

/// `check_constraints`.
pub(super) fn check_constraints(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: &str, clause: String| {
        let mut values = full(run, name);
        values.push(text(clause));
        rows.push(Row::new(values));
    };
    each_constraint(run, |_, constraint| {
        if let Some(condition) = constraint.condition {
            add(constraint.name, format!("({condition})"));
        }
    });
    for relation in run.catalog.relations() {
        for (name, column) in not_null_names(relation) {
            add(&name, format!("{} IS NOT NULL", column.name));
        }
    }
    rows
}

/// `key_column_usage`.
pub(super) fn key_columns(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    each_constraint(run, |relation, constraint| {
        if constraint.kind == 'c' {
            return;
        }
        for (at, column) in constraint.columns.iter().enumerate() {
            let mut values = full(run, constraint.name);
            values.extend(full(run, &relation.name));
            values.push(text(relation.columns[*column as usize].name.as_str()));
            values.extend([Datum::Int4(i32::from(column_number(at))), NOTHING]);
            rows.push(Row::new(values));
        }
    });
    rows
}

/// `constraint_column_usage`.
pub(super) fn constraint_columns(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    each_constraint(run, |relation, constraint| {
        for column in &constraint.columns {
            let mut values = full(run, &relation.name);
            values.push(text(relation.columns[*column as usize].name.as_str()));
            values.extend(full(run, constraint.name));
            rows.push(Row::new(values));
        }
    });
    rows
}

/// `sequences`: but for those of identities.
pub(super) fn sequences(run: &Run<'_, '_>) -> Vec<Row> {
    let is_of_identity = |oid: u32| {
        let mut columns = run.catalog.relations().flat_map(|relation| &relation.columns);
        columns.any(|column| column.sequence == Some(oid) && column.identity.is_some())
    };
    let shown = run.catalog.sequences().filter(|sequence| !is_of_identity(sequence.oid));
    let rows = shown.map(|sequence| {
        let (precision, radix, scale) = precision(sequence.ty, -1);
        let mut values = full(run, &sequence.name);
        values.extend([text(sequence.ty.name()), precision, radix, scale]);
        values.extend(
            [sequence.start, sequence.min, sequence.max, sequence.increment]
                .map(|value| text(value.to_string())),
        );
        values.push(text("NO"));
        Row::new(values)
    });
    rows.collect()
}
