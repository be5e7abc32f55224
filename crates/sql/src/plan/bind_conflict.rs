//! Binding of `ON CONFLICT`.

use super::bind_modify::no_column;
use super::binder::{Binder, Context, fold, split_name};
use super::modify::OnConflict;
use super::scope::Scope;
use crate::catalog::Relation;
use crate::error::SqlError;
use sqlparser::ast::{ConflictTarget, OnConflictAction, OnInsert};

impl Binder<'_> {
    pub(super) fn on_conflict(
        &self,
        on: Option<&OnInsert>,
        relation: &Relation,
        alias: &str,
    ) -> Result<Option<OnConflict>, SqlError> {
        let on = match on {
            None => return Ok(None),
            Some(OnInsert::OnConflict(on)) => on,
            Some(other) => return Err(SqlError::not_supported(other)),
        };
        let index = match &on.conflict_target {
            None => None,
            Some(target) => Some(self.arbiter(target, relation)?),
        };
        let update = match &on.action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(update) => {
                if index.is_none() {
                    return Err(SqlError::new(
                        "42601",
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                    ));
                }
                let mut scope = Scope::default();
                let outputs = Self::outputs(relation);
                scope.add(alias.to_owned(), 0, &outputs)?;
                scope.add("excluded".to_owned(), 1, &outputs)?;
                // A name alone is the existing row's.
                let mut alone = scope.clone();
                alone.tables[1].columns.iter_mut().for_each(|column| column.is_merged = true);
                let context = Context::new(&alone, "ON CONFLICT");
                let assignments = self.assignments(&update.assignments, relation, &context)?;
                let filter = match &update.selection {
                    None => None,
                    Some(condition) => Some(self.condition(self.expression(condition, &context)?, "WHERE")?),
                };
                Some((assignments, filter))
            }
        };
        Ok(Some(OnConflict { index, update }))
    }

    /// The unique index that an `ON CONFLICT` names by columns or by its constraint: none for the primary key.
    fn arbiter(&self, target: &ConflictTarget, relation: &Relation) -> Result<Option<usize>, SqlError> {
        match target {
            ConflictTarget::Columns { predicate: Some(_), .. } => {
                Err(SqlError::not_supported("ON CONFLICT with a predicate"))
            }
            ConflictTarget::Columns { columns: names, predicate: None } => {
                let mut wanted = Vec::new();
                for name in names {
                    let name = fold(name);
                    wanted.push(relation.column(&name).ok_or_else(|| no_column(&name, relation))? as u32);
                }
                let same = |columns: &[u32]| {
                    columns.len() == wanted.len() && columns.iter().all(|column| wanted.contains(column))
                };
                if relation.primary_key.as_ref().is_some_and(|key| same(&key.columns)) {
                    return Ok(None);
                }
                let found = relation.indexes.iter().position(|index| index.is_unique && same(&index.columns));
                found.map(Some).ok_or_else(|| {
                    SqlError::new(
                        "42P10",
                        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                    )
                })
            }
            ConflictTarget::OnConstraint(name) => {
                let (_, name) = split_name(name)?;
                if relation.primary_key.as_ref().is_some_and(|key| key.name == name) {
                    return Ok(None);
                }
                let found = relation
                    .indexes
                    .iter()
                    .position(|index| index.constraint.is_some() && index.name == name);
                found.map(Some).ok_or_else(|| {
                    let table = &relation.name;
                    SqlError::new(
                        "42704",
                        format!("constraint \"{name}\" for table \"{table}\" does not exist"),
                    )
                })
            }
        }
    }
}
