//! `DROP` and `TRUNCATE`.

use super::{Run, Stop, is_schema};
use crate::catalog::{Catalog, Entry, Relation, Sequence};
use crate::error::SqlError;
use crate::plan::binder::split_name;
use crate::run::scan::{Flow, Keys};
use sqlparser::ast::{ObjectName, ObjectType, Truncate, TruncateIdentityOption};
use std::sync::Arc;

/// A kind of objects as commands and messages call it.
fn words(object: ObjectType) -> (&'static str, &'static str) {
    match object {
        ObjectType::Table => ("TABLE", "table"),
        ObjectType::Index => ("INDEX", "index"),
        ObjectType::Sequence => ("SEQUENCE", "sequence"),
        ObjectType::View => ("VIEW", "view"),
        ObjectType::MaterializedView => ("MATERIALIZED VIEW", "materialized view"),
        ObjectType::ForeignTable => ("FOREIGN TABLE", "foreign table"),
        ObjectType::Schema => ("SCHEMA", "schema"),
        ObjectType::Database => ("DATABASE", "database"),
        ObjectType::Type => ("TYPE", "type"),
        ObjectType::Collation => ("COLLATION", "collation"),
        ObjectType::Role | ObjectType::Group | ObjectType::User => ("ROLE", "role"),
        _ => ("OBJECT", "object"),
    }
}

/// The kind of an entry as messages call it, with its article.
fn kind_of(entry: &Entry, name: &str) -> (&'static str, &'static str) {
    match entry {
        Entry::Sequence(_) => ("SEQUENCE", "a sequence"),
        Entry::Relation(relation) if relation.name == name => ("TABLE", "a table"),
        Entry::Relation(_) => ("INDEX", "an index"),
    }
}

fn depended_on(message: String) -> SqlError {
    SqlError::new("2BP01", message)
}

impl Run<'_, '_> {
    /// Drops objects of one kind. The tag of the command.
    pub(super) fn drop_objects(
        &mut self,
        object: ObjectType,
        if_exists: bool,
        names: &[ObjectName],
        cascade: bool,
    ) -> Result<String, Stop> {
        let (command, kind) = words(object);
        let mut catalog = (*self.catalog).clone();
        let mut changed = Vec::new();
        for name in names {
            let (schema, last) = split_name(name)?;
            if object == ObjectType::Schema {
                if is_schema(&last) {
                    return Err(SqlError::not_supported(format!("DROP SCHEMA {last}")).into());
                }
                self.missing(if_exists, "3F000", format!("schema \"{last}\" does not exist"))?;
                continue;
            }
            let is_public = schema.as_deref().is_none_or(|schema| schema == "public");
            let found = if is_public { catalog.find(&last).cloned() } else { None };
            match (object, found) {
                (ObjectType::Table, Some(Entry::Relation(relation))) if relation.name == last => {
                    self.drop_table(&mut catalog, &relation, &mut changed);
                }
                (ObjectType::Sequence, Some(Entry::Sequence(sequence))) => {
                    self.drop_sequence(&mut catalog, &sequence, cascade, &mut changed)?;
                }
                (ObjectType::Index, Some(Entry::Relation(relation))) if relation.name != last => {
                    self.drop_index(&mut catalog, &relation, &last, &mut changed)?;
                }
                (ObjectType::Role | ObjectType::Group | ObjectType::User | ObjectType::Database, _) => {
                    let code = if object == ObjectType::Database { "3D000" } else { "42704" };
                    self.missing(if_exists, code, format!("{kind} \"{last}\" does not exist"))?;
                }
                (
                    ObjectType::Table
                    | ObjectType::Index
                    | ObjectType::Sequence
                    | ObjectType::View
                    | ObjectType::MaterializedView
                    | ObjectType::ForeignTable,
                    Some(entry),
                ) => {
                    let (its_command, its_kind) = kind_of(&entry, &last);
                    let article = if object == ObjectType::Index { "an" } else { "a" };
                    let message = format!("\"{last}\" is not {article} {kind}");
                    let hint = format!("Use DROP {its_command} to remove {its_kind}.");
                    return Err(SqlError::new("42809", message).hint(hint).into());
                }
                _ => {
                    let code =
                        if matches!(object, ObjectType::Type | ObjectType::Collation | ObjectType::Index) {
                            "42704"
                        } else {
                            "42P01"
                        };
                    if crate::virtual_tables::find(schema.as_deref(), &last).is_some() {
                        let message = format!("permission denied: \"{last}\" is a system catalog");
                        return Err(SqlError::new("42501", message).into());
                    }
                    if let Some(schema) = schema.filter(|schema| !is_schema(schema)) {
                        self.missing(if_exists, "3F000", format!("schema \"{schema}\" does not exist"))?;
                        continue;
                    }
                    self.missing(if_exists, code, format!("{kind} \"{last}\" does not exist"))?;
                }
            }
        }
        if !changed.is_empty() {
            self.replace_catalog(catalog, changed)?;
        }
        Ok(format!("DROP {command}"))
    }

    /// Tells the client of something that need not exist, or refuses.
    fn missing(&self, if_exists: bool, code: &'static str, message: String) -> Result<(), SqlError> {
        if !if_exists {
            return Err(SqlError::new(code, message));
        }
        self.skip("00000", format!("{message}, skipping"));
        Ok(())
    }

    /// Removes a table with the sequences that its columns own.
    fn drop_table(&self, catalog: &mut Catalog, relation: &Arc<Relation>, changed: &mut Vec<u32>) {
        self.give_up(relation);
        catalog.remove(relation.oid);
        changed.push(relation.oid);
        let owned =
            self.catalog.sequences().filter(|one| one.owner.is_some_and(|(table, _)| table == relation.oid));
        for sequence in owned {
            self.remove_sequence(catalog, sequence.oid, sequence.storage, changed);
        }
    }

    /// Removes a sequence.
    pub(super) fn remove_sequence(
        &self,
        catalog: &mut Catalog,
        oid: u32,
        storage: u32,
        changed: &mut Vec<u32>,
    ) {
        self.changes.borrow_mut().touch(storage);
        catalog.remove(oid);
        changed.push(oid);
    }

    fn drop_sequence(
        &self,
        catalog: &mut Catalog,
        sequence: &Sequence,
        cascade: bool,
        changed: &mut Vec<u32>,
    ) -> Result<(), SqlError> {
        let name = &sequence.name;
        let user = sequence.owner.and_then(|(table, place)| match catalog.get(table) {
            Some(Entry::Relation(relation)) => Some((relation.clone(), place as usize)),
            _ => None,
        });
        if let Some((relation, place)) = user
            && relation.columns.get(place).is_some_and(|column| column.sequence == Some(sequence.oid))
        {
            let (table, column) = (&relation.name, &relation.columns[place].name);
            if relation.columns[place].identity.is_some() {
                let message = format!(
                    "cannot drop sequence {name} because column {column} of table {table} requires it"
                );
                let hint = format!("You can drop column {column} of table {table} instead.");
                return Err(depended_on(message).hint(hint));
            }
            if !cascade {
                let message = format!("cannot drop sequence {name} because other objects depend on it");
                let detail =
                    format!("default value for column {column} of table {table} depends on sequence {name}");
                let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
                return Err(depended_on(message).detail(detail).hint(hint));
            }
            let message = format!("drop cascades to default value for column {column} of table {table}");
            self.skip("00000", message);
            let mut relation = (*relation).clone();
            relation.columns[place].default = None;
            relation.columns[place].sequence = None;
            changed.push(relation.oid);
            catalog.put(Entry::Relation(Arc::new(relation)));
        }
        self.remove_sequence(catalog, sequence.oid, sequence.storage, changed);
        Ok(())
    }

    fn drop_index(
        &self,
        catalog: &mut Catalog,
        relation: &Relation,
        name: &str,
        changed: &mut Vec<u32>,
    ) -> Result<(), SqlError> {
        let place =
            relation.indexes.iter().position(|index| index.name == name && index.constraint.is_none());
        let Some(place) = place else {
            let table = &relation.name;
            let message =
                format!("cannot drop index {name} because constraint {name} on table {table} requires it");
            let hint = format!("You can drop constraint {name} on table {table} instead.");
            return Err(depended_on(message).hint(hint));
        };
        let mut relation = relation.clone();
        let index = relation.indexes.remove(place);
        self.changes.borrow_mut().touch(index.storage);
        changed.push(relation.oid);
        catalog.put(Entry::Relation(Arc::new(relation)));
        Ok(())
    }
}

/// The largest number of rows that `TRUNCATE` deletes one by one.
const FEW: usize = 1_000;

impl Run<'_, '_> {
    /// Empties tables: those of many rows get new storages.
    pub(super) fn truncate(&mut self, truncate: &Truncate) -> Result<(), Stop> {
        if truncate.partitions.is_some() {
            return Err(SqlError::not_supported("TRUNCATE of partitions").into());
        }
        let mut relations: Vec<Arc<Relation>> = Vec::new();
        for target in &truncate.table_names {
            if let Some(relation) = self.table_to_change(&target.name, false)?
                && !relations.iter().any(|known| known.oid == relation.oid)
            {
                relations.push(relation);
            }
        }
        let restarts = matches!(truncate.identity, Some(TruncateIdentityOption::Restart));
        let mut catalog = (*self.catalog).clone();
        let mut changed = Vec::new();
        for old in relations {
            if !self.delete_few(&old)? {
                let mut relation = (*old).clone();
                self.renew(&mut relation)?;
                self.give_up(&old);
                changed.push(relation.oid);
                catalog.put(Entry::Relation(Arc::new(relation)));
            }
            if restarts {
                let owned = self
                    .catalog
                    .sequences()
                    .filter(|one| one.owner.is_some_and(|(table, _)| table == old.oid));
                for sequence in owned {
                    let storage = self.fresh_storage();
                    self.changes.borrow_mut().touch(sequence.storage);
                    let begun = Sequence { base: sequence.start, storage, ..(**sequence).clone() };
                    changed.push(begun.oid);
                    catalog.put(Entry::Sequence(Arc::new(begun)));
                }
            }
        }
        if changed.is_empty() { Ok(()) } else { self.replace_catalog(catalog, changed) }
    }

    /// Deletes a table's rows if they are few: a database has so many storages, and no number twice. False if they are not.
    fn delete_few(&mut self, relation: &Arc<Relation>) -> Result<bool, Stop> {
        let source = self.source(relation.clone())?;
        let mut rows = Vec::new();
        let flow = self.table_rows(&source, Keys::All, &mut |_, row| {
            rows.push(row);
            Ok(if rows.len() > FEW { Flow::Break(()) } else { Flow::Continue(()) })
        })?;
        if flow.is_break() {
            return Ok(false);
        }
        rows.iter().try_for_each(|row| self.remove(&source, row))?;
        Ok(true)
    }
}
