//! `ALTER TABLE`: its constraints and its name.

use super::check::has_constraint;
use super::columns::Pending;
use super::naming::Names;
use super::{Run, Stop, index};
use crate::catalog::Relation;
use crate::error::SqlError;
use crate::plan::binder::{fold, split_name};
use sqlparser::ast::{
    AlterTable, AlterTableOperation, Ident, ObjectName, RenameTableNameKind, TableConstraint,
};
use std::sync::Arc;

impl Run<'_, '_> {
    /// Changes a table, by one operation after the other.
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<(), Stop> {
        let sequence = split_name(&alter.name)?.1;
        let is_of_sequence = self.catalog.sequence(&sequence).is_some();
        if is_of_sequence {
            return self.alter_sequence_as_table(&sequence, &alter.operations);
        }
        let Some(relation) = self.table_to_change(&alter.name, alter.if_exists)? else { return Ok(()) };
        for operation in &alter.operations {
            // The table as the operations before have left it.
            let Some(crate::catalog::Entry::Relation(current)) = self.catalog.get(relation.oid) else {
                break;
            };
            let current = current.clone();
            self.alter(current, operation)?;
        }
        Ok(())
    }

    fn alter(&mut self, relation: Arc<Relation>, operation: &AlterTableOperation) -> Result<(), Stop> {
        match operation {
            AlterTableOperation::AddConstraint { constraint, .. } => {
                self.add_constraint(relation, constraint)
            }
            AlterTableOperation::DropConstraint { if_exists, name, .. } => {
                self.drop_constraint(relation, *if_exists, &fold(name))
            }
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(relation, &fold(old_name), &fold(new_name))
            }
            AlterTableOperation::AddColumn { if_not_exists, column_def, .. } => {
                self.alter_add_column(relation, *if_not_exists, column_def)
            }
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                self.alter_drop_columns(relation, column_names, *if_exists, drop_behavior.as_ref())
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                self.rename_column(relation, &fold(old_column_name), &fold(new_column_name))
            }
            AlterTableOperation::RenameTable { table_name } => {
                let (RenameTableNameKind::To(name) | RenameTableNameKind::As(name)) = table_name;
                self.rename_table(relation, name)
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                self.alter_column(relation, column_name, op)
            }
            // There is one user, and a table is kept in one way.
            AlterTableOperation::OwnerTo { .. }
            | AlterTableOperation::SetLogged
            | AlterTableOperation::SetUnlogged
            | AlterTableOperation::ReplicaIdentity { .. } => Ok(()),
            other => Err(SqlError::not_supported(format!("ALTER TABLE {other}")).into()),
        }
    }

    /// `ALTER SEQUENCE` is parsed as `ALTER TABLE` where both have the same form.
    fn alter_sequence_as_table(
        &mut self,
        name: &str,
        operations: &[AlterTableOperation],
    ) -> Result<(), Stop> {
        let Some(sequence) = self.catalog.sequence(name).cloned() else { return Ok(()) };
        for operation in operations {
            match operation {
                AlterTableOperation::OwnerTo { .. } => {}
                other => {
                    return Err(
                        SqlError::not_supported(format!("ALTER SEQUENCE {} {other}", sequence.name)).into()
                    );
                }
            }
        }
        Ok(())
    }

    fn add_constraint(&mut self, old: Arc<Relation>, constraint: &TableConstraint) -> Result<(), Stop> {
        let mut pending = Pending::default();
        pending.add(constraint)?;
        let mut catalog = (*self.catalog).clone();
        let mut relation = (*old).clone();
        if let TableConstraint::Check(check) = constraint {
            self.add_check(&mut relation, &mut catalog, check)?;
            let table = self.source(old)?;
            self.check_rows(&table, &relation)?;
            return self.replace_relation(catalog, relation);
        }
        let named = match constraint {
            TableConstraint::PrimaryKey(key) => key.name.as_ref(),
            TableConstraint::Unique(key) => key.name.as_ref(),
            _ => None,
        };
        self.check_new_constraint(&relation, named)?;
        let has_rows_to_move = matches!(constraint, TableConstraint::PrimaryKey(_));
        let current = self.catalog.clone();
        let mut names = Names::new(&current);
        for key in pending.ordered_keys() {
            self.add_key(&mut relation, &key, &mut catalog, &mut names)?;
        }
        if has_rows_to_move {
            self.rewrite(&old, &mut relation, &mut |_, values| Ok(values))?;
        } else {
            self.fill_last_index(&relation)?;
        }
        self.replace_relation(catalog, relation)
    }

    fn check_new_constraint(&self, relation: &Relation, name: Option<&Ident>) -> Result<(), SqlError> {
        let Some(name) = name.map(fold) else { return Ok(()) };
        if relation.checks.iter().any(|check| check.name == name) {
            let table = &relation.name;
            let message = format!("constraint \"{name}\" for relation \"{table}\" already exists");
            return Err(SqlError::new("42710", message));
        }
        Ok(())
    }

    fn drop_constraint(&mut self, old: Arc<Relation>, if_exists: bool, name: &str) -> Result<(), Stop> {
        let mut relation = (*old).clone();
        if relation.primary_key.as_ref().is_some_and(|key| key.name == name) {
            // Its columns keep having no nulls.
            relation.primary_key = None;
            self.rewrite(&old, &mut relation, &mut |_, values| Ok(values))?;
        } else if let Some(place) =
            relation.indexes.iter().position(|index| index.constraint.is_some() && index.name == name)
        {
            let index = relation.indexes.remove(place);
            self.changes.borrow_mut().touch(index.storage);
        } else if let Some(place) = relation.checks.iter().position(|check| check.name == name) {
            relation.checks.remove(place);
        } else {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", relation.name);
            if !if_exists {
                return Err(SqlError::new("42704", message).into());
            }
            self.skip("00000", format!("{message}, skipping"));
            return Ok(());
        }
        self.replace_relation((*self.catalog).clone(), relation)
    }

    fn rename_constraint(&mut self, old: Arc<Relation>, name: &str, new: &str) -> Result<(), Stop> {
        let mut relation = (*old).clone();
        let table = &old.name;
        if !has_constraint(&relation, name) {
            let message = format!("constraint \"{name}\" for table \"{table}\" does not exist");
            return Err(SqlError::new("42704", message).into());
        }
        if has_constraint(&relation, new) {
            let message = format!("constraint \"{new}\" for relation \"{table}\" already exists");
            return Err(SqlError::new("42710", message).into());
        }
        match relation.checks.iter_mut().find(|check| check.name == name) {
            Some(check) => check.name = new.to_owned(),
            None => {
                self.check_free(new)?;
                index::rename(&mut relation, name, new);
            }
        }
        self.replace_relation((*self.catalog).clone(), relation)
    }

    fn rename_table(&mut self, old: Arc<Relation>, name: &ObjectName) -> Result<(), Stop> {
        let name = self.new_name(name)?;
        self.check_free(&name)?;
        let relation = Relation { name, ..(*old).clone() };
        self.replace_relation((*self.catalog).clone(), relation)
    }
}
