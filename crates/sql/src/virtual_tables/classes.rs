//! `pg_class`, `pg_attribute` and `pg_attrdef`: tables, indexes and sequences, the columns of each, and the defaults of columns.

use super::reference::type_facts;
use super::{OWNER, PUBLIC, column_number, letter, no_letter, oid, schema, text, truth};
use crate::catalog::{Column, Relation};
use crate::row::Row;
use crate::run::Run;
use crate::values::{Datum, Type};
use std::sync::OnceLock;

/// The access methods of tables and of indexes.
const HEAP: u32 = 2;
const BTREE: u32 = 403;

/// The differences between rows of `pg_class`.
struct Class<'a> {
    oid: u32,
    name: &'a str,
    schema: u32,
    method: u32,
    file: u32,
    /// The number of rows, or -1 if it is not known.
    rows: f32,
    has_indexes: bool,
    kind: char,
    columns: usize,
    checks: usize,
}

impl Class<'_> {
    fn row(self) -> Row {
        let is_table = self.kind == 'r';
        let (zero, no) = (|| oid(0), || truth(false));
        Row::new(vec![
            oid(self.oid),
            text(self.name),
            oid(self.schema),
            zero(),
            zero(),
            oid(OWNER),
            oid(self.method),
            oid(self.file),
            zero(),
            Datum::Int4(0),
            Datum::Float4(self.rows),
            Datum::Int4(0),
            zero(),
            truth(self.has_indexes),
            no(),
            letter('p'),
            letter(self.kind),
            Datum::Int2(i16::try_from(self.columns).unwrap_or(i16::MAX)),
            Datum::Int2(i16::try_from(self.checks).unwrap_or(i16::MAX)),
            no(),
            no(),
            no(),
            no(),
            no(),
            truth(true),
            letter(if is_table && self.schema == PUBLIC { 'd' } else { 'n' }),
            no(),
            zero(),
            zero(),
            zero(),
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ])
    }
}

/// `pg_class`.
pub(super) fn classes(run: &Run<'_, '_>) -> Vec<Row> {
    static SYSTEM: OnceLock<Vec<Row>> = OnceLock::new();
    let system = SYSTEM.get_or_init(|| {
        let class = |table: &super::VirtualTable| Class {
            oid: table.oid,
            name: table.name,
            schema: table.schema_oid(),
            method: if table.kind == 'r' { HEAP } else { 0 },
            file: 0,
            rows: -1.0,
            has_indexes: false,
            kind: table.kind,
            columns: table.columns.len(),
            checks: 0,
        };
        schema::tables().map(|table| class(table).row()).collect()
    });
    let mut rows = system.clone();
    for relation in run.catalog.relations() {
        let has_indexes = relation.index_names().next().is_some();
        let class = Class {
            oid: relation.oid,
            name: &relation.name,
            schema: PUBLIC,
            method: HEAP,
            file: relation.storage,
            rows: -1.0,
            has_indexes,
            kind: 'r',
            columns: relation.columns.len(),
            checks: relation.checks.len(),
        };
        rows.push(class.row());
        for index in indexes_of(relation) {
            let class = Class {
                oid: index.oid,
                name: index.name,
                schema: PUBLIC,
                method: BTREE,
                file: index.oid,
                rows: 0.0,
                has_indexes: false,
                kind: 'i',
                columns: index.columns.len(),
                checks: 0,
            };
            rows.push(class.row());
        }
    }
    for sequence in run.catalog.sequences() {
        let class = Class {
            oid: sequence.oid,
            name: &sequence.name,
            schema: PUBLIC,
            method: 0,
            file: sequence.storage,
            rows: 1.0,
            has_indexes: false,
            kind: 'S',
            columns: SEQUENCE_COLUMNS.len(),
            checks: 0,
        };
        rows.push(class.row());
    }
    rows
}

/// An index of a table, that of the primary key included.
pub(super) struct AnyIndex<'a> {
    pub(super) oid: u32,
    pub(super) name: &'a str,
    pub(super) columns: &'a [u32],
    pub(super) is_unique: bool,
    pub(super) is_primary: bool,
    /// The constraint that it enforces.
    pub(super) constraint: Option<u32>,
}

/// The indexes of a table, that of the primary key first.
pub(super) fn indexes_of(relation: &Relation) -> impl Iterator<Item = AnyIndex<'_>> {
    let primary = relation.primary_key.iter().map(|key| AnyIndex {
        oid: key.oid,
        name: &key.name,
        columns: &key.columns,
        is_unique: true,
        is_primary: true,
        constraint: Some(key.constraint),
    });
    primary.chain(relation.indexes.iter().map(|index| AnyIndex {
        oid: index.oid,
        name: &index.name,
        columns: &index.columns,
        is_unique: index.is_unique,
        is_primary: false,
        constraint: index.constraint,
    }))
}

/// The columns that a sequence has when it is read as a table.
const SEQUENCE_COLUMNS: [(&str, Type); 3] =
    [("last_value", Type::Int8), ("log_cnt", Type::Int8), ("is_called", Type::Bool)];

/// The differences between rows of `pg_attribute`.
struct Attribute<'a> {
    table: u32,
    name: &'a str,
    ty: Type,
    number: i16,
    modifier: i32,
    not_null: bool,
    has_default: bool,
    identity: Option<char>,
}

impl<'a> Attribute<'a> {
    fn new(table: u32, place: usize, name: &'a str, ty: Type) -> Self {
        let number = column_number(place);
        Self { table, name, ty, number, modifier: -1, not_null: false, has_default: false, identity: None }
    }

    fn row(self) -> Row {
        let facts = type_facts(self.ty);
        Row::new(vec![
            oid(self.table),
            text(self.name),
            oid(self.ty.oid()),
            Datum::Int4(-1),
            Datum::Int2(self.ty.length()),
            Datum::Int2(self.number),
            Datum::Int4(i32::from(is_array(self.ty))),
            Datum::Int4(-1),
            Datum::Int4(self.modifier),
            facts.is_by_value,
            facts.alignment,
            facts.storage,
            no_letter(),
            truth(self.not_null),
            truth(self.has_default),
            truth(false),
            self.identity.map_or_else(no_letter, letter),
            no_letter(),
            truth(false),
            truth(true),
            Datum::Int4(0),
            oid(facts.collation),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ])
    }
}

fn is_array(ty: Type) -> bool {
    ty.element().is_some() && !matches!(ty, Type::Int2Vector | Type::OidVector)
}

/// True if a column has a row in `pg_attrdef`: identities have none.
pub(super) fn has_default(column: &Column) -> bool {
    column.default.is_some() && column.identity.is_none()
}

/// `pg_attribute`.
pub(super) fn attributes(run: &Run<'_, '_>) -> Vec<Row> {
    static SYSTEM: OnceLock<Vec<Row>> = OnceLock::new();
    let system = SYSTEM.get_or_init(|| {
        let columns = schema::tables().flat_map(|table| {
            let columns = table.columns.iter().enumerate();
            columns.map(|(place, (name, ty))| Attribute::new(table.oid, place, name, *ty).row())
        });
        columns.collect()
    });
    let mut rows = system.clone();
    for relation in run.catalog.relations() {
        for (place, column) in relation.columns.iter().enumerate() {
            let attribute = Attribute {
                modifier: column.modifier,
                not_null: column.not_null,
                has_default: has_default(column),
                identity: column.identity,
                ..Attribute::new(relation.oid, place, &column.name, column.ty)
            };
            rows.push(attribute.row());
        }
        for index in indexes_of(relation) {
            for (place, column) in index.columns.iter().enumerate() {
                let column = &relation.columns[*column as usize];
                let modifier = column.modifier;
                let attribute =
                    Attribute { modifier, ..Attribute::new(index.oid, place, &column.name, column.ty) };
                rows.push(attribute.row());
            }
        }
    }
    for sequence in run.catalog.sequences() {
        for (place, (name, ty)) in SEQUENCE_COLUMNS.iter().enumerate() {
            let attribute = Attribute { not_null: true, ..Attribute::new(sequence.oid, place, name, *ty) };
            rows.push(attribute.row());
        }
    }
    rows
}

/// The number of a default in `pg_attrdef`: a table has at most 1,600 columns.
pub(super) fn default_oid(table: u32, place: usize) -> u32 {
    (table << 11) | (place as u32 + 1)
}

/// `pg_attrdef`.
pub(super) fn defaults(run: &Run<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in run.catalog.relations() {
        for (place, column) in relation.columns.iter().enumerate() {
            let Some(default) = column.default.as_deref().filter(|_| has_default(column)) else { continue };
            rows.push(Row::new(vec![
                oid(default_oid(relation.oid, place)),
                oid(relation.oid),
                Datum::Int2(column_number(place)),
                text(default),
            ]));
        }
    }
    rows
}
