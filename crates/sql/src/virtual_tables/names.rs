//! Names of the catalog's things as numbers, and numbers as names: `'t'::regclass` and its like.

use super::parentheses::without_parentheses;
use super::reference::{NAMESPACES, procedure_names};
use super::server::OWNER_NAME;
use super::{DATABASE_OWNER, OWNER, VirtualTable, definitions, find, schema};
use crate::catalog::{Catalog, Entry};
use crate::error::SqlError;
use crate::functions::CatalogNames;
use crate::values::Type;

/// The number of what has this name: a table, index or sequence (`regclass`), a type, a function or a schema. A number stands for
/// itself, and `-` for 0.
///
/// # Errors
///
/// 42P01, 42704, 42883 or 3F000 if there is none; 42725 if there are several functions; 42602 if the text is no name.
pub(crate) fn number_of(text: &str, ty: Type, catalog: &Catalog) -> Result<u32, SqlError> {
    let trimmed = text.trim();
    if trimmed == "-" {
        return Ok(0);
    }
    if !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
        return trimmed.parse().map_err(|_| {
            SqlError::new("22003", format!("value \"{trimmed}\" is out of range for type oid"))
        });
    }
    match ty {
        Type::Regtype => type_number(trimmed),
        Type::Regnamespace => {
            let (_, name) = parts_of(trimmed)?;
            schema_number(&name)
        }
        Type::Regproc => {
            let (schema, name) = parts_of(trimmed)?;
            let shown = with_schema(schema.as_deref(), &name);
            let is_known = schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
            let mut found = procedure_names().filter(|(_, known)| is_known && *known == name);
            match (found.next(), found.next()) {
                (None, _) => Err(SqlError::new("42883", format!("function \"{shown}\" does not exist"))),
                (Some((oid, _)), None) => Ok(oid),
                _ => Err(SqlError::new("42725", format!("more than one function named \"{shown}\""))),
            }
        }
        _ => {
            let (schema, name) = parts_of(trimmed)?;
            if let Some(schema) = &schema {
                schema_number(schema)?;
            }
            relation_number(schema.as_deref(), &name, catalog).ok_or_else(|| {
                let shown = with_schema(schema.as_deref(), &name);
                SqlError::new("42P01", format!("relation \"{shown}\" does not exist"))
            })
        }
    }
}

/// The name of what has this number, in quotes and with its schema where it needs them. None if there is nothing.
pub(crate) fn name_of(oid: u32, ty: Type, catalog: &Catalog) -> Option<String> {
    if oid == 0 {
        return Some("-".to_owned());
    }
    match ty {
        Type::Regtype => Type::of_oid(oid).map(|ty| ty.name().to_owned()),
        Type::Regnamespace => {
            NAMESPACES.iter().find(|(number, ..)| *number == oid).map(|(_, name, _)| quoted(name))
        }
        Type::Regproc => {
            let (_, name) = procedure_names().find(|(number, _)| *number == oid)?;
            let is_one = procedure_names().filter(|(_, other)| *other == name).count() == 1;
            Some(if is_one { quoted(name) } else { format!("pg_catalog.{}", quoted(name)) })
        }
        _ => {
            if let Some(name) = name_of_users(oid, catalog) {
                return Some(quoted(name));
            }
            let table = system_table(oid)?;
            Some(match table.schema {
                "pg_catalog" => quoted(table.name),
                schema => format!("{schema}.{}", quoted(table.name)),
            })
        }
    }
}

fn system_table(oid: u32) -> Option<&'static VirtualTable> {
    schema::tables().find(|table| table.oid == oid)
}

/// The name, unquoted, of a table, an index or a sequence.
fn class_name(oid: u32, catalog: &Catalog) -> Option<&str> {
    // Functions take what has a name for visible without its schema; `information_schema` is not searched.
    let system = || system_table(oid).filter(|table| table.schema == "pg_catalog");
    name_of_users(oid, catalog).or_else(|| system().map(|table| table.name))
}

/// The name of a user's table, index or sequence.
fn name_of_users(oid: u32, catalog: &Catalog) -> Option<&str> {
    if let Some(entry) = catalog.get(oid) {
        return Some(entry.name());
    }
    let mut indexes = catalog.relations().flat_map(|relation| relation.index_names());
    indexes.find(|(_, number)| *number == oid).map(|(name, _)| name)
}

/// The number of a table, an index or a sequence.
fn relation_number(schema: Option<&str>, name: &str, catalog: &Catalog) -> Option<u32> {
    if schema.is_none_or(|schema| schema == "public")
        && let Some(entry) = catalog.find(name)
    {
        return match entry {
            Entry::Relation(relation) if relation.name != name => {
                relation.index_names().find(|(index, _)| *index == name).map(|(_, oid)| oid)
            }
            entry => Some(entry.oid()),
        };
    }
    find(schema, name).map(|table| table.oid)
}

fn type_number(text: &str) -> Result<u32, SqlError> {
    let mut name = text.to_ascii_lowercase();
    // A length does not count.
    if let (Some(open), Some(close)) = (name.find('('), name.rfind(')'))
        && open < close
    {
        name.replace_range(open..=close, "");
    }
    let name = name.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let words: Vec<&str> = name.split_ascii_whitespace().collect();
    let found = Type::of_name(&words.join(" ")).map(Type::oid);
    found.ok_or_else(|| SqlError::new("42704", format!("type \"{text}\" does not exist")))
}

fn schema_number(name: &str) -> Result<u32, SqlError> {
    let found = NAMESPACES.iter().find(|(_, known, _)| *known == name).map(|(number, ..)| *number);
    found.ok_or_else(|| SqlError::new("3F000", format!("schema \"{name}\" does not exist")))
}

fn with_schema(schema: Option<&str>, name: &str) -> String {
    schema.map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"))
}

/// Cuts a name into its schema and itself, as SQL reads it: in lower case, unless it is in quotes.
fn parts_of(text: &str) -> Result<(Option<String>, String), SqlError> {
    let invalid = || SqlError::new("42602", "invalid name syntax");
    let mut parts = Vec::new();
    let mut characters = text.chars().peekable();
    loop {
        let mut part = String::new();
        if characters.next_if_eq(&'"').is_some() {
            loop {
                match characters.next() {
                    None => return Err(invalid()),
                    Some('"') if characters.next_if_eq(&'"').is_none() => break,
                    Some(character) => part.push(character),
                }
            }
        } else {
            while let Some(character) = characters.next_if(|character| *character != '.' && *character != '"')
            {
                part.extend(character.to_lowercase());
            }
        }
        if part.trim().is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        match characters.next() {
            None => break,
            Some('.') => {}
            Some(_) => return Err(invalid()),
        }
    }
    let name = parts.pop().ok_or_else(invalid)?;
    match parts.len() {
        0 => Ok((None, name)),
        1 => Ok((parts.pop(), name)),
        _ => Err(SqlError::not_supported(format!("the name {text}"))),
    }
}

/// Words that are no names without quotes.
const KEYWORDS: &str = " all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean \
    both case cast char character check coalesce collate collation column concurrently constraint create cross current_catalog \
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default deferrable desc \
    distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group grouping having \
    ilike in initially inner inout int integer intersect interval into is isnull join lateral leading least left like limit \
    localtime localtimestamp national natural nchar none normalize not notnull null nullif numeric offset on only or order out \
    outer overlaps overlay placing position precision primary real references returning right row select session_user setof \
    similar smallint some substring symmetric table tablesample then time timestamp to trailing treat trim true union unique user \
    using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest \
    xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable ";

/// A name as SQL writes it: in quotes if it needs them.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && !KEYWORDS.contains(&format!(" {name} "));
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

impl CatalogNames for Catalog {
    fn relation_name(&self, oid: u32) -> Option<String> {
        class_name(oid, self).map(str::to_owned)
    }

    fn relation_oid(&self, name: &str) -> Option<u32> {
        number_of(name, Type::Regclass, self).ok()
    }

    fn index_definition(&self, index: u32, column: Option<i32>) -> Option<String> {
        definitions::index_definition(index, column.unwrap_or(0), self)
    }

    fn constraint_definition(&self, constraint: u32) -> Option<String> {
        definitions::constraint_definition(constraint, true, self)
    }

    fn schema_name(&self, oid: u32) -> Option<String> {
        NAMESPACES.iter().find(|(number, ..)| *number == oid).map(|(_, name, _)| (*name).to_owned())
    }

    fn expression_text(&self, stored: &str) -> Option<String> {
        Some(without_parentheses(stored))
    }

    fn user_name(&self, oid: u32) -> Option<String> {
        match oid {
            OWNER => Some(OWNER_NAME.to_owned()),
            DATABASE_OWNER => Some("pg_database_owner".to_owned()),
            _ => None,
        }
    }

    fn sequence_of_column(&self, table: &str, column: &str) -> Option<String> {
        let oid = number_of(table, Type::Regclass, self).ok()?;
        let Some(Entry::Relation(relation)) = self.get(oid) else { return None };
        let sequence = relation.columns[relation.column(column)?].sequence?;
        Some(format!("public.{}", quoted(self.get(sequence)?.name())))
    }
}
