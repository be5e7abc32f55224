//! `CREATE SEQUENCE`, and the sequences of `serial` columns and identities.

use super::Run;
use super::Stop;
use super::naming::Names;
use crate::catalog::{Catalog, Entry, Sequence};
use crate::error::SqlError;
use crate::plan::binder::type_of;
use crate::values::Type;
use sqlparser::ast::{Expr, ObjectName, SequenceOptions, UnaryOperator, Value};
use std::sync::Arc;

/// A sequence without a name and a number.
pub(super) struct SequenceShape {
    ty: Type,
    start: i64,
    increment: i64,
    min: i64,
    max: i64,
}

fn invalid(message: String) -> SqlError {
    SqlError::new("22023", message)
}

/// A whole number with its sign.
fn number(expression: &Expr) -> Result<i64, SqlError> {
    let (sign, digits) = match expression {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => ("-", &**expr),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => ("", &**expr),
        other => ("", other),
    };
    match digits {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => format!("{sign}{digits}").parse().map_err(|_| {
                SqlError::new("22003", format!("value \"{sign}{digits}\" is out of range for type bigint"))
            }),
            other => Err(SqlError::new("42601", format!("syntax error at or near \"{other}\""))),
        },
        other => Err(SqlError::new("42601", format!("syntax error at or near \"{other}\""))),
    }
}

/// The least and the largest value of a type.
fn range(ty: Type) -> (i64, i64) {
    match ty {
        Type::Int2 => (i16::MIN.into(), i16::MAX.into()),
        Type::Int4 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

impl SequenceShape {
    /// A sequence of a type, by its options.
    pub(super) fn new(ty: Type, options: &[SequenceOptions]) -> Result<Self, SqlError> {
        let (mut ty, mut increment, mut start, mut min, mut max) = (ty, 1, None, None, None);
        for option in options {
            match option {
                SequenceOptions::DataType(data_type) => {
                    ty = type_of(data_type)?.0;
                    if !matches!(ty, Type::Int2 | Type::Int4 | Type::Int8) {
                        return Err(invalid("sequence type must be smallint, integer, or bigint".to_owned()));
                    }
                }
                SequenceOptions::IncrementBy(value, _) => increment = number(value)?,
                SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
                SequenceOptions::MinValue(Some(value)) => min = Some(number(value)?),
                SequenceOptions::MaxValue(Some(value)) => max = Some(number(value)?),
                SequenceOptions::MinValue(None)
                | SequenceOptions::MaxValue(None)
                | SequenceOptions::Cache(_) => {}
                // The parser says true for NO CYCLE.
                SequenceOptions::Cycle(true) | SequenceOptions::OwnedBy(None) => {}
                SequenceOptions::Cycle(false) => return Err(SqlError::not_supported("CYCLE")),
                SequenceOptions::OwnedBy(Some(name)) => {
                    if !name.to_string().eq_ignore_ascii_case("none") {
                        return Err(SqlError::not_supported("OWNED BY"));
                    }
                }
            }
        }
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".to_owned()));
        }
        let (least, largest) = range(ty);
        let (default_min, default_max) = if increment > 0 { (1, largest) } else { (least, -1) };
        for (word, value) in [("MAXVALUE", max), ("MINVALUE", min)] {
            if let Some(value) = value.filter(|value| !(least..=largest).contains(value)) {
                let name = ty.name();
                return Err(invalid(format!(
                    "{word} ({value}) is out of range for sequence data type {name}"
                )));
            }
        }
        let (min, max) = (min.unwrap_or(default_min), max.unwrap_or(default_max));
        if min >= max {
            return Err(invalid(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})")));
        }
        let start = start.unwrap_or(if increment > 0 { min } else { max });
        if start < min {
            return Err(invalid(format!("START value ({start}) cannot be less than MINVALUE ({min})")));
        }
        if start > max {
            return Err(invalid(format!("START value ({start}) cannot be greater than MAXVALUE ({max})")));
        }
        Ok(Self { ty, start, increment, min, max })
    }
}

impl Run<'_, '_> {
    /// Makes a sequence with a number and a storage of its own.
    pub(super) fn new_sequence(
        &self,
        catalog: &mut Catalog,
        name: String,
        shape: &SequenceShape,
    ) -> Result<Sequence, SqlError> {
        let SequenceShape { ty, start, increment, min, max } = *shape;
        let storage = self.fresh_storage();
        self.shared.storages.sequence(storage)?;
        let oid = catalog.draw_oid();
        Ok(Sequence { oid, name, ty, start, base: start, storage, increment, min, max, owner: None })
    }

    /// `CREATE SEQUENCE`.
    pub(super) fn create_sequence(
        &mut self,
        temporary: bool,
        if_not_exists: bool,
        name: &ObjectName,
        options: &[SequenceOptions],
    ) -> Result<(), Stop> {
        let name = self.new_name(name)?;
        if temporary {
            return Err(SqlError::not_supported("a temporary sequence").into());
        }
        if if_not_exists && self.catalog.find(&name).is_some() {
            self.skip("42P07", format!("relation \"{name}\" already exists, skipping"));
            return Ok(());
        }
        self.check_free(&name)?;
        let shape = SequenceShape::new(Type::Int8, options)?;
        let mut catalog = (*self.catalog).clone();
        let sequence = self.new_sequence(&mut catalog, name, &shape)?;
        let oid = sequence.oid;
        catalog.put(Entry::Sequence(Arc::new(sequence)));
        self.replace_catalog(catalog, vec![oid])
    }

    /// Makes a sequence for a column: `t_c_seq`.
    pub(super) fn column_sequence(
        &self,
        catalog: &mut Catalog,
        names: &mut Names<'_>,
        (table, column): (&str, &str),
        shape: &SequenceShape,
    ) -> Result<Sequence, SqlError> {
        let name = names.draw(table, &[column], "seq");
        self.new_sequence(catalog, name, shape)
    }
}
