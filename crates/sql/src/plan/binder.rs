//! The binding of a statement, and the types of its parts.

use super::expression::{Expression, Kind};
use super::scope::Scope;
use super::select::{AggregateCall, Output, TableSource};
use crate::catalog::{Catalog, Relation};
use crate::connection::SessionState;
use crate::error::SqlError;
use crate::values::{self, Datum, Type};
use sqlparser::ast::{DataType, Ident, ObjectName};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Binds one statement.
pub(crate) struct Binder<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) session: &'a SessionState,
    /// The types of the statement's parameters, as far as they are known.
    pub(crate) parameters: RefCell<Vec<Option<Type>>>,
    /// Queries with names: name, place of the result, columns.
    pub(crate) with: RefCell<Vec<(String, usize, Arc<[Output]>)>>,
    pub(crate) with_places: Cell<usize>,
    /// The places of those that were used.
    pub(crate) used: RefCell<Vec<usize>>,
    pub(crate) hash_tables: Cell<usize>,
    /// True if the statement writes, or draws from a sequence.
    pub(crate) writes: Cell<bool>,
}

/// Where an expression stands.
#[derive(Clone, Copy)]
pub(crate) struct Context<'s> {
    pub(crate) scope: &'s Scope<'s>,
    /// Calls of aggregates go here; none where they are not allowed.
    pub(crate) aggregates: Option<&'s RefCell<Vec<AggregateCall>>>,
    /// Functions that give rows go here; none where they are not allowed.
    pub(crate) series: Option<&'s RefCell<Vec<(super::select::SeriesKind, Vec<Expression>, Output)>>>,
    /// The clause, as messages call it.
    pub(crate) clause: &'static str,
}

impl<'s> Context<'s> {
    pub(crate) fn new(scope: &'s Scope<'s>, clause: &'static str) -> Self {
        Self { scope, aggregates: None, series: None, clause }
    }
}

/// When a value of one type may become one of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coercion {
    Implicit,
    Assignment,
    Explicit,
}

/// A name as PostgreSQL folds it.
pub(crate) fn fold(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// The last part of a name, and its schema if there is one.
pub(crate) fn split_name(name: &ObjectName) -> Result<(Option<String>, String), SqlError> {
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
    let mut parts = parts.ok_or_else(|| SqlError::not_supported(format!("the name {name}")))?;
    let last = parts.pop().ok_or_else(|| SqlError::new("42601", "a name is missing"))?;
    Ok((parts.pop(), last))
}

impl<'a> Binder<'a> {
    pub(crate) fn new(
        catalog: &'a Arc<Catalog>,
        session: &'a SessionState,
        declared: &[Option<Type>],
    ) -> Self {
        Self {
            catalog,
            session,
            parameters: RefCell::new(declared.to_vec()),
            with: RefCell::default(),
            with_places: Cell::new(0),
            used: RefCell::default(),
            hash_tables: Cell::new(0),
            writes: Cell::new(false),
        }
    }

    /// Draws the next number of a counter.
    pub(crate) fn draw(counter: &Cell<usize>) -> usize {
        counter.replace(counter.get() + 1)
    }

    /// The table of this name.
    pub(crate) fn relation(&self, name: &ObjectName) -> Result<Arc<Relation>, SqlError> {
        let (schema, table) = split_name(name)?;
        if schema.as_deref().is_none_or(|schema| schema == "public")
            && let Some(relation) = self.catalog.relation(&table)
        {
            return Ok(relation.clone());
        }
        let shown = schema.map_or(table.clone(), |schema| format!("{schema}.{table}"));
        if schema_is_of_system(&shown) || self.catalog.find(&table).is_some() {
            return Err(SqlError::new("42809", format!("\"{table}\" is not a table")));
        }
        Err(SqlError::new("42P01", format!("relation \"{shown}\" does not exist")))
    }

    /// A table with its storages.
    pub(crate) fn table(&self, relation: Arc<Relation>) -> Result<Arc<TableSource>, SqlError> {
        let rows = self.session.shared.storages.rows(relation.storage)?;
        let indexes = relation.indexes.iter().map(|index| self.session.shared.storages.rows(index.storage));
        let indexes = indexes.collect::<Result<_, _>>()?;
        Ok(Arc::new(TableSource { relation, rows, indexes }))
    }

    /// The columns of a table.
    pub(crate) fn outputs(relation: &Relation) -> Vec<Output> {
        let output = |(at, column): (usize, &crate::catalog::Column)| Output {
            name: column.name.as_str().into(),
            ty: column.ty,
            modifier: column.modifier,
            origin: Some((relation.oid, at as i16 + 1)),
        };
        relation.columns.iter().enumerate().map(output).collect()
    }

    /// A parameter by its number from 0 on.
    pub(crate) fn parameter(&self, number: usize) -> Result<Expression, SqlError> {
        if number >= 65_535 {
            return Err(SqlError::new("42P02", format!("there is no parameter ${}", number + 1)));
        }
        let mut parameters = self.parameters.borrow_mut();
        if parameters.len() <= number {
            parameters.resize(number + 1, None);
        }
        Ok(Expression::new(Kind::Parameter(number), parameters[number].unwrap_or(Type::Unknown)))
    }

    /// The types of all parameters; those that nothing has determined are text.
    pub(crate) fn parameter_types(&self) -> Arc<[Type]> {
        self.parameters.borrow().iter().map(|known| known.unwrap_or(Type::Text)).collect()
    }

    /// Makes an expression one of this type.
    pub(crate) fn coerce(
        &self,
        expression: Expression,
        to: Type,
        modifier: i32,
        coercion: Coercion,
    ) -> Result<Expression, SqlError> {
        let from = expression.ty;
        if from == Type::Unknown {
            match expression.kind {
                Kind::Parameter(number) => {
                    let mut parameters = self.parameters.borrow_mut();
                    let known = *parameters[number].get_or_insert(to);
                    drop(parameters);
                    let typed = Expression::new(Kind::Parameter(number), known);
                    return if known == to && modifier < 0 {
                        Ok(typed)
                    } else {
                        self.coerce(typed, to, modifier, coercion)
                    };
                }
                Kind::Constant(Datum::Null) => {
                    return Ok(Expression { kind: Kind::Constant(Datum::Null), ty: to, modifier });
                }
                Kind::Constant(Datum::Text(text)) if !is_registered(to) => {
                    let mut value = Datum::parse(&text, to)?;
                    if modifier >= 0 {
                        value = values::cast(value, to, to, modifier)?;
                    }
                    return Ok(Expression { kind: Kind::Constant(value), ty: to, modifier });
                }
                _ => {}
            }
        }
        if from == to && modifier < 0 {
            return Ok(expression);
        }
        let may = from == to
            || match coercion {
                Coercion::Implicit => values::can_cast(from, to, values::CastContext::Implicit),
                Coercion::Assignment => values::can_cast(from, to, values::CastContext::Assignment),
                Coercion::Explicit => values::can_cast(from, to, values::CastContext::Explicit),
            };
        if !may {
            return Err(SqlError::new("42846", format!("cannot cast type {} to {}", from.name(), to.name())));
        }
        if let Kind::Constant(value) = &expression.kind
            && !is_registered(to)
            && !is_registered(from)
        {
            // One that fails is left to fail when it is run.
            let cast = if value.is_null() {
                Ok(Datum::Null)
            } else {
                values::cast(value.clone(), from, to, modifier)
            };
            if let Ok(value) = cast {
                return Ok(Expression { kind: Kind::Constant(value), ty: to, modifier });
            }
        }
        Ok(Expression { kind: Kind::Cast(Box::new(expression)), ty: to, modifier })
    }

    /// Makes an expression a condition.
    pub(crate) fn condition(&self, expression: Expression, clause: &str) -> Result<Expression, SqlError> {
        match expression.ty {
            Type::Bool => Ok(expression),
            Type::Unknown => self.coerce(expression, Type::Bool, -1, Coercion::Implicit),
            other => Err(SqlError::new(
                "42804",
                format!("argument of {clause} must be type boolean, not type {}", other.name()),
            )),
        }
    }

    /// Gives several expressions one type.
    pub(crate) fn unify(
        &self,
        expressions: Vec<Expression>,
        what: &str,
    ) -> Result<(Vec<Expression>, Type), SqlError> {
        let types: Vec<Type> = expressions.iter().map(|one| one.ty).collect();
        let common = values::common_type(&types).map_err(|_| {
            let mut names = types.iter().filter(|ty| **ty != Type::Unknown).map(|ty| ty.name());
            let first = names.next().unwrap_or("unknown");
            let second = names.find(|name| *name != first).unwrap_or("unknown");
            SqlError::new("42804", format!("{what} types {first} and {second} cannot be matched"))
        })?;
        let common = if common == Type::Unknown { Type::Text } else { common };
        let coerced = expressions.into_iter().map(|one| self.coerce(one, common, -1, Coercion::Implicit));
        Ok((coerced.collect::<Result<_, _>>()?, common))
    }
}

/// True for types whose values are numbers with names in the catalog.
pub(crate) fn is_registered(ty: Type) -> bool {
    matches!(ty, Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace)
}

fn schema_is_of_system(name: &str) -> bool {
    name.starts_with("pg_catalog.") || name.starts_with("information_schema.")
}

/// A type by its SQL name, with its modifier.
pub(crate) fn type_of(data_type: &DataType) -> Result<(Type, i32), SqlError> {
    use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, ExactNumberInfo, TimezoneInfo};
    let length = |length: &Option<CharacterLength>, default: i32| match length {
        None => Ok(default),
        Some(CharacterLength::IntegerLength { length, .. }) if (1..=10_485_760).contains(length) => {
            Ok(*length as i32 + 4)
        }
        Some(_) => Err(SqlError::new("22023", "length for a character type must be between 1 and 10485760")),
    };
    let precision = |precision: &Option<u64>| precision.map_or(-1, |digits| digits.min(6) as i32);
    let scale = |info: &ExactNumberInfo| match info {
        ExactNumberInfo::None => Ok(-1),
        ExactNumberInfo::Precision(digits) if (1..=1000).contains(digits) => Ok(((*digits as i32) << 16) + 4),
        ExactNumberInfo::PrecisionAndScale(digits, scale)
            if (1..=1000).contains(digits) && (0..=*digits as i64).contains(scale) =>
        {
            Ok((((*digits as i32) << 16) | *scale as i32) + 4)
        }
        _ => Err(SqlError::new("22023", "NUMERIC precision must be between 1 and 1000")),
    };
    Ok(match data_type {
        DataType::Boolean | DataType::Bool => (Type::Bool, -1),
        DataType::SmallInt(_) | DataType::Int2(_) => (Type::Int2, -1),
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => (Type::Int4, -1),
        DataType::BigInt(_) | DataType::Int8(_) => (Type::Int8, -1),
        DataType::Real | DataType::Float4 => (Type::Float4, -1),
        DataType::Float(info) => match info {
            ExactNumberInfo::Precision(digits) if *digits <= 24 => (Type::Float4, -1),
            _ => (Type::Float8, -1),
        },
        DataType::DoublePrecision | DataType::Double(_) | DataType::Float8 => (Type::Float8, -1),
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => {
            (Type::Numeric, scale(info)?)
        }
        DataType::Text => (Type::Text, -1),
        DataType::Varchar(size) | DataType::CharacterVarying(size) | DataType::CharVarying(size) => {
            (Type::Varchar, length(size, -1)?)
        }
        DataType::Char(size) | DataType::Character(size) => (Type::Char, length(size, 5)?),
        DataType::Bytea => (Type::Bytea, -1),
        DataType::Date => (Type::Date, -1),
        DataType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            (Type::Time, precision(digits))
        }
        DataType::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            (Type::Timestamp, precision(digits))
        }
        DataType::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            (Type::TimestampTz, precision(digits))
        }
        DataType::Interval { .. } => (Type::Interval, -1),
        DataType::Uuid => (Type::Uuid, -1),
        DataType::JSON => (Type::Json, -1),
        DataType::Regclass => (Type::Regclass, -1),
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => {
            let (element, _) = type_of(element)?;
            let array =
                element.array().ok_or_else(|| SqlError::not_supported(format!("type {data_type}")))?;
            (array, -1)
        }
        DataType::Custom(name, modifiers) => {
            let (_, name) = split_name(name)?;
            let known = Type::ALL.iter().copied().find(|ty| ty.internal_name() == name || ty.name() == name);
            let ty = known
                .or_else(|| serial_type(&name))
                .ok_or_else(|| SqlError::new("42704", format!("type \"{name}\" does not exist")))?;
            let modifier =
                match (ty, modifiers.first().and_then(|first| first.to_string().parse::<i32>().ok())) {
                    (Type::Char | Type::Varchar, Some(length)) => length + 4,
                    (Type::Char, None) if name == "bpchar" => -1,
                    _ => -1,
                };
            (if name == "char" { Type::Letter } else { ty }, modifier)
        }
        other => return Err(SqlError::not_supported(format!("type {other}"))),
    })
}

/// The type of the values of `serial` and its like.
pub(crate) fn serial_type(name: &str) -> Option<Type> {
    Some(match name {
        "serial" | "serial4" => Type::Int4,
        "bigserial" | "serial8" => Type::Int8,
        "smallserial" | "serial2" => Type::Int2,
        _ => return None,
    })
}
