//! `CREATE TABLE` and `CREATE TABLE … AS`.

use super::columns::Pending;
use super::naming::Names;
use super::{Run, Stop};
use crate::catalog::{Catalog, Column, Entry, Relation};
use crate::error::SqlError;
use crate::plan::binder::{Binder, fold};
use crate::plan::select::Query;
use crate::row::Row;
use crate::values::Type;
use sqlparser::ast::{CreateTable, DataType, OnCommit};
use std::sync::Arc;

/// Refuses clauses that are not supported. Those on where and how rows are kept mean nothing here.
fn check_clauses(create: &CreateTable) -> Result<(), SqlError> {
    let refused = [
        (create.or_replace, "OR REPLACE"),
        (create.like.is_some(), "LIKE"),
        (create.inherits.is_some(), "INHERITS"),
        (create.partition_by.is_some(), "PARTITION BY"),
        (create.partition_of.is_some(), "PARTITION OF"),
        (create.clone.is_some(), "CLONE"),
        (create.external, "EXTERNAL"),
        (matches!(create.on_commit, Some(OnCommit::Drop | OnCommit::DeleteRows)), "ON COMMIT"),
    ];
    refused
        .iter()
        .find(|(is_there, _)| *is_there)
        .map_or(Ok(()), |(_, clause)| Err(SqlError::not_supported(clause)))
}

impl Run<'_, '_> {
    /// Makes a table. The tag of the command.
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<String, Stop> {
        check_clauses(create)?;
        let has_query = create.query.is_some();
        let tag = if has_query { "CREATE TABLE AS" } else { "CREATE TABLE" };
        let name = self.new_name(&create.name)?;
        if create.if_not_exists && self.catalog.find(&name).is_some() {
            self.skip("42P07", format!("relation \"{name}\" already exists, skipping"));
            return Ok(tag.to_owned());
        }
        self.check_free(&name)?;
        if create.temporary {
            let text = format!("temporary table \"{name}\" is kept as an ordinary table");
            self.session.notice("WARNING", SqlError::new("01000", text));
        }
        let with_data = create.with_data.as_ref().is_none_or(|with| with.data);
        let query = match &create.query {
            None => None,
            Some(query) => Some(Binder::new(&self.catalog, self.session, &[]).query(query, None)?),
        };
        let mut catalog = (*self.catalog).clone();
        let relation = match &query {
            None => self.new_table(create, name, &mut catalog)?,
            Some(query) => self.table_of_query(create, name, &mut catalog, query)?,
        };
        let relation = Arc::new(relation);
        let mut changed = vec![relation.oid];
        changed.extend(relation.columns.iter().filter_map(|column| column.sequence));
        catalog.put(Entry::Relation(relation.clone()));
        self.replace_catalog(catalog, changed)?;
        match query {
            Some(query) if with_data => Ok(format!("SELECT {}", self.fill(relation, &query)?)),
            _ => Ok(tag.to_owned()),
        }
    }

    fn empty_table(&self, name: String, catalog: &mut Catalog) -> Result<Relation, SqlError> {
        Ok(Relation {
            oid: catalog.draw_oid(),
            name,
            columns: Vec::new(),
            primary_key: None,
            indexes: Vec::new(),
            checks: Vec::new(),
            storage: self.fresh_rows()?,
        })
    }

    /// A table by its columns and constraints. Its sequences are put into the catalog.
    fn new_table(
        &self,
        create: &CreateTable,
        name: String,
        catalog: &mut Catalog,
    ) -> Result<Relation, SqlError> {
        let mut names = Names::new(&self.catalog);
        names.take(&name);
        let mut relation = self.empty_table(name, catalog)?;
        let mut pending = Pending::default();
        for column in &create.columns {
            self.add_column(&mut relation, column, &mut pending, catalog, &mut names)?;
        }
        for constraint in &create.constraints {
            pending.add(constraint)?;
        }
        self.settle(&mut relation, &pending, catalog)?;
        for key in pending.ordered_keys() {
            self.add_key(&mut relation, &key, catalog, &mut names)?;
        }
        for sequence in pending.sequences {
            catalog.put(Entry::Sequence(Arc::new(sequence)));
        }
        Ok(relation)
    }

    /// A table with the columns of a query.
    fn table_of_query(
        &self,
        create: &CreateTable,
        name: String,
        catalog: &mut Catalog,
        query: &Query,
    ) -> Result<Relation, SqlError> {
        let given = &create.columns;
        if given.len() > query.outputs.len() {
            return Err(SqlError::new("42601", "too many column names were specified"));
        }
        if given.iter().any(|column| column.data_type != DataType::Unspecified || !column.options.is_empty())
        {
            return Err(SqlError::not_supported("CREATE TABLE AS with types of columns"));
        }
        let mut relation = self.empty_table(name, catalog)?;
        for (at, output) in query.outputs.iter().enumerate() {
            let name = given.get(at).map_or_else(|| output.name.to_string(), |column| fold(&column.name));
            if relation.column(&name).is_some() {
                return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
            }
            let ty = if output.ty == Type::Unknown { Type::Text } else { output.ty };
            relation.columns.push(Column {
                name,
                ty,
                modifier: output.modifier,
                not_null: false,
                default: None,
                identity: None,
                sequence: None,
            });
        }
        Ok(relation)
    }

    /// Stores a query's rows in a new table: their number.
    fn fill(&mut self, relation: Arc<Relation>, query: &Query) -> Result<usize, Stop> {
        let width = relation.columns.len();
        let table = self.source(relation)?;
        let rows = self.query(query)?;
        let count = rows.len();
        for row in rows {
            self.step()?;
            self.add(&table, Row::new(row[..width].to_vec()))?;
        }
        Ok(count)
    }
}
