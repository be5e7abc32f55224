//! Columns of `CREATE TABLE` and `ALTER TABLE … ADD COLUMN`, and the keys and conditions among their options.

use super::Run;
use super::naming::Names;
use super::sequence::SequenceShape;
use crate::catalog::{Catalog, Column, Index, PrimaryKey, Relation, Sequence};
use crate::error::SqlError;
use crate::plan::binder::{fold, serial_type, split_name, type_of};
use crate::values::Type;
use sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, DataType, Expr, GeneratedAs, Ident, IndexColumn,
    NullsDistinctOption, TableConstraint,
};

/// The largest number of columns.
const COLUMNS_MAX: usize = 1_600;

/// The largest number of columns of a key.
const KEY_COLUMNS_MAX: usize = 32;

/// A primary key or a unique constraint that is to be made.
pub(super) struct NewKey {
    name: Option<String>,
    columns: Vec<String>,
    is_primary: bool,
}

/// The rest of a definition, besides its columns. It is made when all columns are known.
#[derive(Default)]
pub(super) struct Pending<'a> {
    pub(super) keys: Vec<NewKey>,
    pub(super) checks: Vec<CheckConstraint>,
    /// Defaults, by the places of their columns.
    pub(super) defaults: Vec<(usize, &'a Expr)>,
    /// The sequences of columns.
    pub(super) sequences: Vec<Sequence>,
}

/// The type of a `serial` column.
fn serial_of(data_type: &DataType) -> Option<Type> {
    let DataType::Custom(name, _) = data_type else { return None };
    serial_type(&split_name(name).ok()?.1)
}

fn conflicting(what: &str, column: &str, table: &str) -> SqlError {
    SqlError::new("42601", format!("{what} for column \"{column}\" of table \"{table}\""))
}

impl<'a> Pending<'a> {
    /// Adds a constraint of the table.
    pub(super) fn add(&mut self, constraint: &TableConstraint) -> Result<(), SqlError> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                self.keys.push(NewKey {
                    name: key.name.as_ref().map(fold),
                    columns: column_names(&key.columns)?,
                    is_primary: true,
                });
                Ok(())
            }
            TableConstraint::Unique(key) => {
                if matches!(key.nulls_distinct, NullsDistinctOption::NotDistinct) {
                    return Err(SqlError::not_supported("NULLS NOT DISTINCT"));
                }
                self.keys.push(NewKey {
                    name: key.name.as_ref().map(fold),
                    columns: column_names(&key.columns)?,
                    is_primary: false,
                });
                Ok(())
            }
            TableConstraint::Check(check) => {
                self.checks.push(check.clone());
                Ok(())
            }
            TableConstraint::ForeignKey(_) => Err(SqlError::not_supported("FOREIGN KEY")),
            TableConstraint::Exclude(_) => Err(SqlError::not_supported("EXCLUDE")),
            TableConstraint::PrimaryKeyUsingIndex(_) | TableConstraint::UniqueUsingIndex(_) => {
                Err(SqlError::not_supported("USING INDEX"))
            }
            other => Err(SqlError::not_supported(other)),
        }
    }
}

impl Pending<'_> {
    /// The keys in the order in which they are made: the primary key first, and none twice but under two names.
    pub(super) fn ordered_keys(&mut self) -> Vec<NewKey> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.sort_by_key(|key| !key.is_primary);
        let mut ordered: Vec<NewKey> = Vec::new();
        for key in keys {
            let same = ordered.iter_mut().find(|known| {
                known.columns == key.columns
                    && !key.is_primary
                    && (known.name.is_none() || key.name.is_none())
            });
            match same {
                Some(known) => known.name = known.name.take().or(key.name),
                None => ordered.push(key),
            }
        }
        ordered
    }
}

/// The names of a key's columns.
pub(super) fn column_names(columns: &[IndexColumn]) -> Result<Vec<String>, SqlError> {
    let name = |column: &IndexColumn| match &column.column.expr {
        // There is one order of keys; it is read in both directions.
        Expr::Identifier(name) => Ok(fold(name)),
        _ => Err(SqlError::not_supported("an index on an expression")),
    };
    columns.iter().map(name).collect()
}

impl Run<'_, '_> {
    /// Adds a column to a table. Its keys, conditions and default are pending.
    pub(super) fn add_column<'a>(
        &self,
        relation: &mut Relation,
        column: &'a ColumnDef,
        pending: &mut Pending<'a>,
        catalog: &mut Catalog,
        names: &mut Names<'_>,
    ) -> Result<(), SqlError> {
        let name = fold(&column.name);
        let at = relation.columns.len();
        if at >= COLUMNS_MAX {
            return Err(SqlError::new("54011", format!("tables can have at most {COLUMNS_MAX} columns")));
        }
        if relation.column(&name).is_some() {
            return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
        }
        let serial = serial_of(&column.data_type);
        let (ty, modifier) = type_of(&column.data_type)?;
        if matches!(ty, Type::Unknown | Type::Void) {
            let message = format!("column \"{name}\" has pseudo-type {}", ty.name());
            return Err(SqlError::new("42P16", message));
        }
        let table = relation.name.clone();
        let mut new = Column {
            name: name.clone(),
            ty,
            modifier,
            not_null: false,
            default: None,
            identity: None,
            sequence: None,
        };
        let (mut null, mut has_default, mut shape) = (None, serial.is_some(), None);
        if serial.is_some() {
            shape = Some(SequenceShape::new(ty, &[])?);
        }
        let key = |name: &Option<Ident>, is_primary: bool| NewKey {
            name: name.as_ref().map(fold),
            columns: vec![fold(&column.name)],
            is_primary,
        };
        for option in &column.options {
            match &option.option {
                ColumnOption::Null | ColumnOption::NotNull => {
                    let is_null = matches!(option.option, ColumnOption::Null);
                    if null.is_some_and(|known| known != is_null) {
                        return Err(conflicting("conflicting NULL/NOT NULL declarations", &name, &table));
                    }
                    null = Some(is_null);
                }
                ColumnOption::Default(default) => {
                    if has_default {
                        return Err(conflicting("multiple default values specified", &name, &table));
                    }
                    has_default = true;
                    pending.defaults.push((at, default));
                }
                ColumnOption::PrimaryKey(constraint) => {
                    pending.keys.push(key(&option.name.clone().or(constraint.name.clone()), true));
                }
                ColumnOption::Unique(constraint) => {
                    pending.keys.push(key(&option.name.clone().or(constraint.name.clone()), false));
                }
                ColumnOption::Check(check) => {
                    let name = option.name.clone().or(check.name.clone());
                    pending.checks.push(CheckConstraint { name, ..check.clone() });
                }
                ColumnOption::Generated { generation_expr: Some(_), .. } => {
                    return Err(SqlError::not_supported("a generated column"));
                }
                ColumnOption::Generated { generated_as, sequence_options, .. } => {
                    if new.identity.is_some() {
                        return Err(conflicting("multiple identity specifications", &name, &table));
                    }
                    if has_default {
                        return Err(conflicting("both default and identity specified", &name, &table));
                    }
                    if !matches!(ty, Type::Int2 | Type::Int4 | Type::Int8) {
                        let message = "identity column type must be smallint, integer, or bigint";
                        return Err(SqlError::new("22023", message));
                    }
                    has_default = true;
                    new.identity = Some(if matches!(generated_as, GeneratedAs::Always) { 'a' } else { 'd' });
                    shape = Some(SequenceShape::new(ty, sequence_options.as_deref().unwrap_or_default())?);
                }
                ColumnOption::ForeignKey(_) => return Err(SqlError::not_supported("REFERENCES")),
                // Text is compared by its bytes, in any collation.
                ColumnOption::Collation(_) => {}
                other => return Err(SqlError::not_supported(other)),
            }
        }
        if let Some(shape) = shape {
            if null == Some(true) {
                return Err(conflicting("conflicting NULL/NOT NULL declarations", &name, &table));
            }
            let mut sequence = self.column_sequence(catalog, names, (&table, &name), &shape)?;
            sequence.owner = Some((relation.oid, at as u32));
            let literal = crate::virtual_tables::quoted(&sequence.name).replace('\'', "''");
            new.default = Some(format!("nextval('{literal}'::regclass)"));
            new.sequence = Some(sequence.oid);
            new.not_null = true;
            pending.sequences.push(sequence);
        }
        new.not_null |= null == Some(false);
        relation.columns.push(new);
        Ok(())
    }

    /// Makes the defaults and conditions that are pending.
    pub(super) fn settle(
        &self,
        relation: &mut Relation,
        pending: &Pending<'_>,
        catalog: &mut Catalog,
    ) -> Result<(), SqlError> {
        for (at, default) in &pending.defaults {
            relation.columns[*at].default = self.default_text(relation, *at, default)?;
        }
        for check in &pending.checks {
            self.add_check(relation, catalog, check)?;
        }
        Ok(())
    }

    /// Adds a primary key or a unique constraint to a table. The storage of an index is made, and is empty.
    pub(super) fn add_key(
        &self,
        relation: &mut Relation,
        key: &NewKey,
        catalog: &mut Catalog,
        names: &mut Names<'_>,
    ) -> Result<(), SqlError> {
        let columns = key_columns(relation, &key.columns, Some(key.is_primary))?;
        if key.is_primary && relation.primary_key.is_some() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", relation.name);
            return Err(SqlError::new("42P16", message));
        }
        let name = match &key.name {
            Some(name) => {
                if !names.take(name) {
                    return Err(SqlError::new("42P07", format!("relation \"{name}\" already exists")));
                }
                name.clone()
            }
            None if key.is_primary => names.draw(&relation.name, &[], "pkey"),
            None => {
                let parts: Vec<&str> = key.columns.iter().map(String::as_str).collect();
                names.draw(&relation.name, &parts, "key")
            }
        };
        let (oid, constraint) = (catalog.draw_oid(), catalog.draw_oid());
        if key.is_primary {
            for column in &columns {
                relation.columns[*column as usize].not_null = true;
            }
            relation.primary_key = Some(PrimaryKey { oid, constraint, name, columns });
        } else {
            let storage = self.fresh_rows()?;
            let constraint = Some(constraint);
            relation.indexes.push(Index { oid, name, columns, is_unique: true, constraint, storage });
        }
        Ok(())
    }
}

/// The places of a key's columns: of a primary key, a unique constraint, or an index.
pub(super) fn key_columns(
    relation: &Relation,
    names: &[String],
    is_primary: Option<bool>,
) -> Result<Vec<u32>, SqlError> {
    if names.len() > KEY_COLUMNS_MAX {
        let message = format!("cannot use more than {KEY_COLUMNS_MAX} columns in an index");
        return Err(SqlError::new("54011", message));
    }
    let mut columns: Vec<u32> = Vec::new();
    for name in names {
        let place = relation.column(name).ok_or_else(|| {
            let named = if is_primary.is_some() { " named in key" } else { "" };
            SqlError::new("42703", format!("column \"{name}\"{named} does not exist"))
        })?;
        if let Some(is_primary) = is_primary
            && columns.contains(&(place as u32))
        {
            let kind = if is_primary { "primary key" } else { "unique" };
            return Err(SqlError::new(
                "42701",
                format!("column \"{name}\" appears twice in {kind} constraint"),
            ));
        }
        columns.push(place as u32);
    }
    Ok(columns)
}
