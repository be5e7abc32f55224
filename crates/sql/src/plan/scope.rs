//! Names and what they stand for.

use super::expression::{Expression, Kind, Place};
use super::select::Output;
use crate::error::SqlError;
use crate::values::Type;
use std::sync::Arc;

/// A column that can be named.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: Arc<str>,
    pub(crate) place: Place,
    pub(crate) ty: Type,
    pub(crate) modifier: i32,
    pub(crate) origin: Option<(u32, i16)>,
    /// True if it is found with its table's name only: a column that a `USING` has merged with another one.
    pub(crate) is_merged: bool,
    /// Where its value is instead if it is null here: columns that the `USING` of a full join has merged with it.
    pub(crate) others: Vec<Place>,
}

impl Named {
    /// Its value, for a query so many levels further in.
    pub(crate) fn value(&self, level: usize) -> Expression {
        let at = |place: Place| {
            let kind = if level == 0 { Kind::Column(place) } else { Kind::Outer(level, place) };
            Expression { kind, ty: self.ty, modifier: self.modifier }
        };
        let first = at(self.place);
        if self.others.is_empty() {
            return first;
        }
        let all = std::iter::once(first).chain(self.others.iter().map(|other| at(*other)));
        Expression { kind: Kind::Coalesce(all.collect()), ty: self.ty, modifier: self.modifier }
    }
}

/// A table that can be named.
#[derive(Debug, Clone)]
pub(crate) struct NamedTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<Named>,
}

/// The names of a query, and of those around it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope<'p> {
    pub(crate) tables: Vec<NamedTable>,
    pub(crate) parent: Option<&'p Scope<'p>>,
}

impl<'p> Scope<'p> {
    /// A query without tables inside of another one.
    pub(crate) fn inside(parent: Option<&'p Scope<'p>>) -> Self {
        Self { tables: Vec::new(), parent }
    }

    /// Adds a table.
    pub(crate) fn add(&mut self, name: String, source: usize, outputs: &[Output]) -> Result<(), SqlError> {
        if !name.is_empty() && self.tables.iter().any(|table| table.name == name) {
            return Err(SqlError::new("42712", format!("table name \"{name}\" specified more than once")));
        }
        let named = |(column, output): (usize, &Output)| Named {
            name: output.name.clone(),
            place: Place { source, column },
            ty: output.ty,
            modifier: output.modifier,
            origin: output.origin,
            is_merged: false,
            others: Vec::new(),
        };
        self.tables.push(NamedTable { name, columns: outputs.iter().enumerate().map(named).collect() });
        Ok(())
    }

    /// Finds a column by its name, and by its table's if there is one.
    pub(crate) fn resolve(&self, table: Option<&str>, column: &str) -> Result<Expression, SqlError> {
        let mut level = 0;
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(named) = here.find(table, column)? {
                return Ok(named.value(level));
            }
            scope = here.parent;
            level += 1;
        }
        Err(match table {
            Some(table) if !self.knows(table) => {
                SqlError::new("42P01", format!("missing FROM-clause entry for table \"{table}\""))
            }
            Some(table) => SqlError::new("42703", format!("column {table}.{column} does not exist")),
            None => SqlError::new("42703", format!("column \"{column}\" does not exist")),
        })
    }

    fn find(&self, table: Option<&str>, column: &str) -> Result<Option<&Named>, SqlError> {
        let mut found = None;
        for named_table in &self.tables {
            if table.is_some_and(|table| table != named_table.name) {
                continue;
            }
            for named in &named_table.columns {
                if *named.name != *column || (table.is_none() && named.is_merged) {
                    continue;
                }
                if found.replace(named).is_some() {
                    return Err(SqlError::new(
                        "42702",
                        format!("column reference \"{column}\" is ambiguous"),
                    ));
                }
            }
        }
        Ok(found)
    }

    fn knows(&self, table: &str) -> bool {
        self.tables.iter().any(|known| known.name == table)
            || self.parent.is_some_and(|outer| outer.knows(table))
    }

    /// The columns that `*` stands for, or `table.*`.
    pub(crate) fn all(&self, table: Option<&str>) -> Result<Vec<&Named>, SqlError> {
        let mut all = Vec::new();
        for named_table in &self.tables {
            match table {
                Some(table) if table != named_table.name => {}
                Some(_) => return Ok(named_table.columns.iter().collect()),
                None => all.extend(named_table.columns.iter().filter(|column| !column.is_merged)),
            }
        }
        match table {
            Some(table) => {
                Err(SqlError::new("42P01", format!("missing FROM-clause entry for table \"{table}\"")))
            }
            None if self.tables.is_empty() => {
                Err(SqlError::new("42601", "SELECT * with no tables specified is not valid"))
            }
            None => Ok(all),
        }
    }
}
