//! `ALTER TABLE`: its columns.

use super::columns::Pending;
use super::naming::Names;
use super::rewrite::contains_nulls;
use super::{Run, Stop, no_column};
use crate::catalog::{Entry, Relation};
use crate::error::SqlError;
use crate::plan::binder::{Binder, fold};
use crate::run::scan::{Flow, Keys};
use crate::values::{Datum, apply_modifier};
use crate::virtual_tables::quoted;
use sqlparser::ast::{AlterColumnOperation, ColumnDef, DropBehavior, Ident};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::sync::Arc;

impl Run<'_, '_> {
    pub(super) fn alter_add_column(
        &mut self,
        old: Arc<Relation>,
        if_not_exists: bool,
        column: &ColumnDef,
    ) -> Result<(), Stop> {
        let name = fold(&column.name);
        if old.column(&name).is_some() {
            let message = format!("column \"{name}\" of relation \"{}\" already exists", old.name);
            if !if_not_exists {
                return Err(SqlError::new("42701", message).into());
            }
            self.skip("42701", format!("{message}, skipping"));
            return Ok(());
        }
        let mut catalog = (*self.catalog).clone();
        let current = self.catalog.clone();
        let mut names = Names::new(&current);
        let mut relation = (*old).clone();
        let mut pending = Pending::default();
        self.add_column(&mut relation, column, &mut pending, &mut catalog, &mut names)?;
        self.settle(&mut relation, &pending, &mut catalog)?;
        for key in pending.ordered_keys() {
            self.add_key(&mut relation, &key, &mut catalog, &mut names)?;
        }
        let mut changed = vec![relation.oid];
        for sequence in pending.sequences {
            changed.push(sequence.oid);
            catalog.put(Entry::Sequence(Arc::new(sequence)));
        }
        // The default may draw from the sequence, so it is in the catalog before.
        self.replace_catalog(catalog, changed)?;
        let at = old.columns.len();
        let binder = Binder::new(&self.catalog, self.session, &[]);
        let default = binder.default_of(&relation, at)?;
        let checks = if pending.checks.is_empty() { Vec::new() } else { binder.checks(&relation)? };
        let new_column = relation.columns[at].clone();
        let table = relation.name.clone();
        self.rewrite(&old, &mut relation, &mut |run, mut values| {
            let mut value = run.evaluate(&default, &[])?;
            if new_column.modifier >= 0 && !value.is_null() {
                value = apply_modifier(value, new_column.ty, new_column.modifier)?;
            }
            values.push(value);
            if !checks.is_empty() {
                let row = crate::row::Row::new(values.clone());
                for (name, check) in &checks {
                    if run.evaluate(check, std::slice::from_ref(&row))? == Datum::Bool(false) {
                        return Err(super::check::violated(name, &table).into());
                    }
                }
            }
            Ok(values)
        })?;
        self.replace_relation((*self.catalog).clone(), relation)
    }

    pub(super) fn alter_drop_columns(
        &mut self,
        old: Arc<Relation>,
        columns: &[Ident],
        if_exists: bool,
        behavior: Option<&DropBehavior>,
    ) -> Result<(), Stop> {
        let cascade = matches!(behavior, Some(DropBehavior::Cascade));
        let mut current = old;
        for column in columns {
            let name = fold(column);
            let Some(at) = current.column(&name) else {
                let error = no_column(&name, &current);
                if !if_exists {
                    return Err(error.into());
                }
                self.skip("00000", format!("{}, skipping", error.message));
                continue;
            };
            self.drop_column(&current, at, cascade)?;
            if let Some(Entry::Relation(relation)) = self.catalog.get(current.oid) {
                current = relation.clone();
            }
        }
        Ok(())
    }

    /// Removes a column with the indexes, keys and conditions that it is a part of.
    fn drop_column(&mut self, old: &Arc<Relation>, at: usize, _cascade: bool) -> Result<(), Stop> {
        let place = at as u32;
        let mut relation = (**old).clone();
        let column = relation.columns.remove(at);
        if relation.primary_key.as_ref().is_some_and(|key| key.columns.contains(&place)) {
            relation.primary_key = None;
        }
        // The storages of the indexes that go are given up with all others.
        relation.indexes.retain(|index| !index.columns.contains(&place));
        relation.checks.retain(|check| !names_column(&check.text, &column.name));
        let keys = relation.primary_key.iter_mut().map(|key| &mut key.columns);
        for columns in keys.chain(relation.indexes.iter_mut().map(|index| &mut index.columns)) {
            columns.iter_mut().filter(|column| **column > place).for_each(|column| *column -= 1);
        }
        self.rewrite(old, &mut relation, &mut |_, mut values| {
            values.remove(at);
            Ok(values)
        })?;
        let mut catalog = (*self.catalog).clone();
        let mut changed = vec![relation.oid];
        for sequence in self.catalog.sequences() {
            let Some((table, owner)) = sequence.owner.filter(|(table, _)| *table == old.oid) else {
                continue;
            };
            if owner == place {
                self.remove_sequence(&mut catalog, sequence.oid, sequence.storage, &mut changed);
            } else if owner > place {
                let mut moved = (**sequence).clone();
                moved.owner = Some((table, owner - 1));
                changed.push(moved.oid);
                catalog.put(Entry::Sequence(Arc::new(moved)));
            }
        }
        catalog.put(Entry::Relation(Arc::new(relation)));
        self.replace_catalog(catalog, changed)
    }

    pub(super) fn rename_column(&mut self, old: Arc<Relation>, name: &str, new: &str) -> Result<(), Stop> {
        let Some(at) = old.column(name) else {
            return Err(SqlError::new("42703", format!("column \"{name}\" does not exist")).into());
        };
        if old.column(new).is_some() {
            let message = format!("column \"{new}\" of relation \"{}\" already exists", old.name);
            return Err(SqlError::new("42701", message).into());
        }
        let mut relation = (*old).clone();
        relation.columns[at].name = new.to_owned();
        for check in &mut relation.checks {
            check.text = with_column_renamed(&check.text, name, new);
        }
        self.replace_relation((*self.catalog).clone(), relation)
    }

    pub(super) fn alter_column(
        &mut self,
        old: Arc<Relation>,
        column: &Ident,
        operation: &AlterColumnOperation,
    ) -> Result<(), Stop> {
        let name = fold(column);
        let at = old.column(&name).ok_or_else(|| no_column(&name, &old))?;
        let mut relation = (*old).clone();
        match operation {
            AlterColumnOperation::SetNotNull => {
                self.check_no_nulls(&old, at)?;
                relation.columns[at].not_null = true;
            }
            AlterColumnOperation::DropNotNull => {
                if relation.primary_key.as_ref().is_some_and(|key| key.columns.contains(&(at as u32))) {
                    let message = format!("column \"{name}\" is in a primary key");
                    return Err(SqlError::new("42P16", message).into());
                }
                if relation.columns[at].identity.is_some() {
                    return Err(is_identity(&name, &relation).into());
                }
                relation.columns[at].not_null = false;
            }
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault
                if relation.columns[at].identity.is_some() =>
            {
                let hint = "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.";
                let error = is_identity(&name, &relation);
                let drops = matches!(operation, AlterColumnOperation::DropDefault);
                return Err(if drops { error.hint(hint) } else { error }.into());
            }
            AlterColumnOperation::SetDefault { value } => {
                relation.columns[at].default = self.default_text(&relation, at, value)?;
                relation.columns[at].sequence = None;
            }
            AlterColumnOperation::DropDefault => {
                relation.columns[at].default = None;
                relation.columns[at].sequence = None;
            }
            other => {
                return Err(SqlError::not_supported(format!("ALTER COLUMN {other}")).into());
            }
        }
        self.replace_relation((*self.catalog).clone(), relation)
    }

    fn check_no_nulls(&mut self, relation: &Arc<Relation>, at: usize) -> Result<(), Stop> {
        if relation.columns[at].not_null {
            return Ok(());
        }
        let table = self.source(relation.clone())?;
        let _ = self.table_rows(&table, Keys::All, &mut |run, row| {
            run.step()?;
            if row[at].is_null() {
                return Err(contains_nulls(relation, &relation.columns[at].name).into());
            }
            Ok(Flow::Continue(()))
        })?;
        Ok(())
    }
}

fn is_identity(name: &str, relation: &Relation) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{}\" is an identity column", relation.name);
    SqlError::new("42601", message)
}

/// The tokens of a condition.
fn tokens(text: &str) -> Vec<Token> {
    Tokenizer::new(&PostgreSqlDialect {}, text).tokenize().unwrap_or_default()
}

/// True if a token is a column's name: a condition of the catalog has no other names than columns, functions, types and words of SQL.
fn is_name(tokens: &[Token], at: usize, name: &str) -> bool {
    let is_called = matches!(tokens.get(at + 1), Some(Token::LParen));
    let is_type = at > 0 && matches!(tokens[at - 1], Token::DoubleColon);
    matches!(&tokens[at], Token::Word(word) if word.value == name && quoted(name) == word.to_string())
        && !is_called
        && !is_type
}

fn names_column(text: &str, name: &str) -> bool {
    let tokens = tokens(text);
    (0..tokens.len()).any(|at| is_name(&tokens, at, name))
}

fn with_column_renamed(text: &str, old: &str, new: &str) -> String {
    let tokens = tokens(text);
    let part = |at: usize| if is_name(&tokens, at, old) { quoted(new) } else { tokens[at].to_string() };
    (0..tokens.len()).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::{names_column, with_column_renamed};

    #[test]
    fn a_column_is_told_from_words_functions_and_texts() {
        let text = "((length(name) > 3) AND (name <> 'name'::name) AND (\"order\" > 0))";
        assert!(names_column(text, "order"));
        assert!(!names_column(text, "length") && !names_column(text, "and"));
        let renamed = "((length(\"Name\") > 3) AND (\"Name\" <> 'name'::name) AND (\"order\" > 0))";
        assert_eq!(with_column_renamed(text, "name", "Name"), renamed);
    }
}
