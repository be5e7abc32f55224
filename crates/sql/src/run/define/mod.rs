//! Statements on definitions: `CREATE`, `ALTER`, `DROP`, `TRUNCATE` and their like.
//!
//! A definition is a part of its transaction like any row. The storages of a new table or index are made at once, but nobody looks at
//! them before the catalog names them; and the catalog is a transactional value, read by everyone who plans. A table is rewritten into
//! new storages ([`rewrite`]), and the old ones are dropped when the transaction has committed.

mod alter;
mod alter_column;
mod check;
mod columns;
mod create_table;
mod deparse;
mod drop;
mod index;
mod naming;
mod rewrite;
mod sequence;
#[cfg(test)]
mod tests;

use super::{Run, Stop};
use crate::catalog::Relation;
use crate::error::SqlError;
use crate::plan::binder::split_name;
use sqlparser::ast::{ObjectName, SchemaName, Statement};
use std::sync::Arc;

impl Run<'_, '_> {
    /// Runs a statement on definitions: the tag of its command.
    pub(crate) fn define(&mut self, statement: &Statement) -> Result<String, Stop> {
        let tag = match statement {
            Statement::CreateTable(create) => return self.create_table(create),
            Statement::CreateIndex(create) => {
                self.create_index(create)?;
                "CREATE INDEX"
            }
            Statement::AlterTable(alter) => {
                self.alter_table(alter)?;
                "ALTER TABLE"
            }
            Statement::AlterIndex { name, operation } => {
                self.rename_index(name, operation)?;
                "ALTER INDEX"
            }
            Statement::Drop { object_type, if_exists, names, cascade, .. } => {
                return self.drop_objects(*object_type, *if_exists, names, *cascade);
            }
            Statement::Truncate(truncate) => {
                self.truncate(truncate)?;
                "TRUNCATE TABLE"
            }
            Statement::CreateSequence { temporary, if_not_exists, name, sequence_options } => {
                self.create_sequence(*temporary, *if_not_exists, name, sequence_options)?;
                "CREATE SEQUENCE"
            }
            Statement::CreateSchema { schema_name, if_not_exists, .. } => {
                self.create_schema(schema_name, *if_not_exists)?;
                "CREATE SCHEMA"
            }
            // There is one user, who may do everything, and comments are not kept.
            Statement::Comment { .. } => "COMMENT",
            Statement::Grant(_) | Statement::GrantRole(_) => "GRANT",
            Statement::Revoke(_) | Statement::RevokeRole(_) => "REVOKE",
            Statement::AlterDefaultPrivileges(_) => "ALTER DEFAULT PRIVILEGES",
            other => return Err(not_supported(other).into()),
        };
        Ok(tag.to_owned())
    }

    /// Tells the client that something was not done, because it is so already.
    fn skip(&self, code: &'static str, message: String) {
        self.session.notice("NOTICE", SqlError::new(code, message));
    }

    fn create_schema(&mut self, name: &SchemaName, if_not_exists: bool) -> Result<(), SqlError> {
        let name = match name {
            SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => split_name(name)?.1,
            SchemaName::UnnamedAuthorization(user) => user.value.clone(),
        };
        if !is_schema(&name) {
            return Err(SqlError::not_supported("a schema besides \"public\""));
        }
        let message = format!("schema \"{name}\" already exists");
        if !if_not_exists {
            return Err(SqlError::new("42P06", message));
        }
        self.skip("42P06", format!("{message}, skipping"));
        Ok(())
    }

    /// The name of something new, which is in the schema `public`.
    fn new_name(&self, name: &ObjectName) -> Result<String, SqlError> {
        match split_name(name)? {
            (None, name) => Ok(name),
            (Some(schema), name) if schema == "public" => Ok(name),
            (Some(schema), name) if is_schema(&schema) => {
                let message = format!("permission denied to create \"{schema}.{name}\"");
                Err(SqlError::new("42501", message)
                    .detail("System catalog modifications are currently disallowed."))
            }
            (Some(schema), _) => Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist"))),
        }
    }

    /// Refuses a name that a table, an index or a sequence has.
    fn check_free(&self, name: &str) -> Result<(), SqlError> {
        match self.catalog.find(name) {
            None => Ok(()),
            Some(_) => Err(SqlError::new("42P07", format!("relation \"{name}\" already exists"))),
        }
    }

    /// The table of this name, to be changed. None if it need not exist and does not: the client is told.
    fn table_to_change(&self, name: &ObjectName, if_exists: bool) -> Result<Option<Arc<Relation>>, SqlError> {
        let (schema, table) = split_name(name)?;
        let is_public = schema.as_deref().is_none_or(|schema| schema == "public");
        if is_public && let Some(relation) = self.catalog.relation(&table) {
            return Ok(Some(relation.clone()));
        }
        if crate::virtual_tables::find(schema.as_deref(), &table).is_some() {
            let message = format!("permission denied: \"{table}\" is a system catalog");
            return Err(SqlError::new("42501", message));
        }
        if is_public && self.catalog.find(&table).is_some() {
            return Err(SqlError::new("42809", format!("\"{table}\" is not a table")));
        }
        let shown = schema.map_or(table.clone(), |schema| format!("{schema}.{table}"));
        let message = format!("relation \"{shown}\" does not exist");
        if !if_exists {
            return Err(SqlError::new("42P01", message));
        }
        self.skip("00000", format!("{message}, skipping"));
        Ok(None)
    }
}

/// True if there is a schema of this name.
fn is_schema(name: &str) -> bool {
    matches!(name, "public" | "pg_catalog" | "information_schema")
}

/// The error of a statement that is not supported, by its first words.
fn not_supported(statement: &Statement) -> SqlError {
    let text = statement.to_string();
    let is_keyword = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let words: Vec<&str> = text.split(' ').take(3).take_while(is_keyword).collect();
    SqlError::not_supported(words.join(" "))
}

/// The error of a column that a table does not have.
fn no_column(name: &str, relation: &Relation) -> SqlError {
    let table = &relation.name;
    SqlError::new("42703", format!("column \"{name}\" of relation \"{table}\" does not exist"))
}
