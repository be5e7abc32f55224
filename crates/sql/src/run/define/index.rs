//! `CREATE INDEX` and `ALTER INDEX`.

use super::columns::{column_names, key_columns};
use super::naming::Names;
use super::{Run, Stop};
use crate::catalog::{Entry, Index, Relation};
use crate::error::SqlError;
use crate::plan::binder::split_name;
use sqlparser::ast::{AlterIndexOperation, CreateIndex, IndexType, ObjectName};

/// Refuses clauses that are not supported.
fn check_clauses(create: &CreateIndex) -> Result<(), SqlError> {
    let refused = [
        (create.predicate.is_some(), "a partial index"),
        (!create.include.is_empty(), "INCLUDE"),
        (create.nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
    ];
    if let Some((_, clause)) = refused.iter().find(|(is_there, _)| *is_there) {
        return Err(SqlError::not_supported(clause));
    }
    match &create.using {
        // An index by hash is a sorted one, which finds equal keys as well.
        None | Some(IndexType::BTree | IndexType::Hash) => Ok(()),
        Some(IndexType::Custom(method)) => {
            let message = format!("access method \"{}\" does not exist", method.value.to_lowercase());
            Err(SqlError::new("42704", message))
        }
        Some(other) => Err(SqlError::not_supported(format!("an index by {other}"))),
    }
}

impl Run<'_, '_> {
    /// Makes an index, with the entries of the rows that there are.
    pub(super) fn create_index(&mut self, create: &CreateIndex) -> Result<(), Stop> {
        check_clauses(create)?;
        // An index has no schema of its own: its name may have that of its table all the same.
        let given = create.name.as_ref().map(|name| self.new_name(name)).transpose()?;
        if create.if_not_exists
            && let Some(name) = &given
            && self.catalog.find(name).is_some()
        {
            self.skip("42P07", format!("relation \"{name}\" already exists, skipping"));
            return Ok(());
        }
        let Some(old) = self.table_to_change(&create.table_name, false)? else { return Ok(()) };
        let columns = column_names(&create.columns)?;
        let places = key_columns(&old, &columns, None)?;
        let name = match given {
            Some(name) => {
                self.check_free(&name)?;
                name
            }
            None => {
                let parts: Vec<&str> = columns.iter().map(String::as_str).collect();
                Names::new(&self.catalog).draw(&old.name, &parts, "idx")
            }
        };
        let mut catalog = (*self.catalog).clone();
        let mut relation = (*old).clone();
        relation.indexes.push(Index {
            oid: catalog.draw_oid(),
            name,
            columns: places,
            is_unique: create.unique,
            constraint: None,
            storage: self.fresh_rows()?,
        });
        self.fill_last_index(&relation)?;
        self.replace_relation(catalog, relation)
    }

    /// `ALTER INDEX … RENAME TO`.
    pub(super) fn rename_index(
        &mut self,
        name: &ObjectName,
        operation: &AlterIndexOperation,
    ) -> Result<(), Stop> {
        let AlterIndexOperation::RenameIndex { index_name } = operation;
        let (_, old_name) = split_name(name)?;
        let new_name = self.new_name(index_name)?;
        let found = match self.catalog.find(&old_name) {
            Some(Entry::Relation(relation)) if relation.name != old_name => relation.clone(),
            Some(_) => return Err(SqlError::new("42809", format!("\"{old_name}\" is not an index")).into()),
            None => {
                return Err(SqlError::new("42P01", format!("relation \"{old_name}\" does not exist")).into());
            }
        };
        self.check_free(&new_name)?;
        let mut relation = (*found).clone();
        rename(&mut relation, &old_name, &new_name);
        self.replace_relation((*self.catalog).clone(), relation)
    }
}

/// Renames an index of a table, with the constraint that it enforces.
pub(super) fn rename(relation: &mut Relation, old: &str, new: &str) {
    if let Some(key) = relation.primary_key.as_mut().filter(|key| key.name == old) {
        key.name = new.to_owned();
    }
    for index in relation.indexes.iter_mut().filter(|index| index.name == old) {
        index.name = new.to_owned();
    }
}
