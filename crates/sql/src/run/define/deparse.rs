//! Bound expressions as the SQL that PostgreSQL shows for them, as `(a > 0)` or `'x'::character varying`.

use crate::catalog::Relation;
use crate::plan::expression::{Expression, Kind};
use crate::plan::is_registered;
use crate::values::{Datum, Type, type_text};
use crate::virtual_tables::quoted;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Writes expressions on the columns of a table.
pub(super) struct Deparser<'r> {
    relation: &'r Relation,
    /// The places of the columns that were named.
    columns: RefCell<BTreeSet<usize>>,
}

/// A text in quotes.
fn quoted_text(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if doubled.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}

/// The name of a type that is cast to. A `char` without a length has a name of its own: `character` has the length 1.
fn type_name(ty: Type, modifier: i32) -> String {
    if ty == Type::Char && modifier < 0 { "bpchar".to_owned() } else { type_text(ty, modifier) }
}

/// A constant. Whole numbers that an operator takes as fractions show that they were cast, unless they are the whole expression.
pub(super) fn constant(value: &Datum, ty: Type, is_whole: bool) -> String {
    let text = value.to_text(ty);
    let name = type_name(ty, -1);
    match value {
        Datum::Null => format!("NULL::{name}"),
        Datum::Bool(value) => value.to_string(),
        _ if text.starts_with('-') && ty.is_number() => format!("'{text}'::{name}"),
        Datum::Int8(number) if i32::try_from(*number).is_err() => format!("'{text}'::{name}"),
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => text,
        Datum::Numeric(_) | Datum::Float8(_) | Datum::Float4(_)
            if text.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            let is_own = ty == Type::Numeric && text.parse::<i32>().is_err();
            if is_whole || is_own { text } else { format!("({text})::{name}") }
        }
        _ => format!("{}::{name}", quoted_text(&text)),
    }
}

impl<'r> Deparser<'r> {
    pub(super) fn new(relation: &'r Relation) -> Self {
        Self { relation, columns: RefCell::default() }
    }

    /// The places of the columns that were named.
    pub(super) fn into_columns(self) -> BTreeSet<usize> {
        self.columns.into_inner()
    }

    fn list(&self, all: &[Expression]) -> Option<String> {
        let shown: Option<Vec<String>> = all.iter().map(|one| self.text(one)).collect();
        Some(shown?.join(", "))
    }

    fn joined(&self, all: &[Expression], word: &str) -> Option<String> {
        let shown: Option<Vec<String>> = all.iter().map(|one| self.text(one)).collect();
        Some(format!("({})", shown?.join(word)))
    }

    /// A value against all or any of some others.
    fn among(&self, value: &Expression, others: &[Expression], word: &str) -> Option<String> {
        Some(format!("({} {word} (ARRAY[{}]))", self.text(value)?, self.list(others)?))
    }

    /// The text of an expression; none if it has a form that is not written here, as that of a query.
    pub(super) fn text(&self, expression: &Expression) -> Option<String> {
        Some(match &expression.kind {
            Kind::Constant(value) => constant(value, expression.ty, false),
            Kind::Column(place) => {
                self.columns.borrow_mut().insert(place.column);
                quoted(&self.relation.columns.get(place.column)?.name)
            }
            Kind::Call(function, arguments) => match (function.name(), arguments.as_slice()) {
                (
                    name @ ("current_timestamp" | "current_date" | "localtimestamp" | "current_time"
                    | "localtime" | "current_user" | "session_user"),
                    [],
                ) => name.to_ascii_uppercase(),
                (name, arguments) => format!("{}({})", quoted(name), self.list(arguments)?),
            },
            Kind::Operator(operation, both) => {
                format!("({} {} {})", self.text(&both[0])?, operation.operator.name(), self.text(&both[1])?)
            }
            Kind::Prefix(operation, inner) => {
                format!("({} {})", operation.operator.name(), self.text(inner)?)
            }
            Kind::And(parts) => self.joined(parts, " AND ")?,
            Kind::Or(parts) => self.joined(parts, " OR ")?,
            Kind::Not(inner) => match &inner.kind {
                Kind::IsNull(value) => format!("({} IS NOT NULL)", self.text(value)?),
                Kind::In(_, value, others) => self.among(value, others, "<> ALL")?,
                _ => format!("(NOT {})", self.text(inner)?),
            },
            Kind::IsNull(value) => format!("({} IS NULL)", self.text(value)?),
            Kind::IsTrue(value, truth) => {
                format!("({} IS {})", self.text(value)?, if *truth { "TRUE" } else { "FALSE" })
            }
            Kind::IsDistinct(_, both) => {
                format!("({} IS DISTINCT FROM {})", self.text(&both[0])?, self.text(&both[1])?)
            }
            Kind::Case(branches, otherwise) => {
                let mut text = String::from("\nCASE\n");
                for (condition, value) in branches {
                    text += &format!("    WHEN {} THEN {}\n", self.text(condition)?, self.text(value)?);
                }
                match otherwise {
                    Some(value) => text += &format!("    ELSE {}\n", self.text(value)?),
                    None => text += &format!("    ELSE NULL::{}\n", type_name(expression.ty, -1)),
                }
                text + "END"
            }
            Kind::Coalesce(all) => format!("COALESCE({})", self.list(all)?),
            Kind::Extreme(all, largest) => {
                format!("{}({})", if *largest { "GREATEST" } else { "LEAST" }, self.list(all)?)
            }
            Kind::NullIf(_, both) => format!("NULLIF({})", self.list(&both[..])?),
            Kind::Cast(inner) => match &inner.kind {
                Kind::Constant(Datum::Text(text)) if is_registered(expression.ty) => {
                    format!("{}::{}", quoted_text(text), expression.ty.name())
                }
                _ => format!("({})::{}", self.text(inner)?, type_name(expression.ty, expression.modifier)),
            },
            Kind::Array(elements) if elements.is_empty() => format!("ARRAY[]::{}", expression.ty.name()),
            Kind::Array(elements) => format!("ARRAY[{}]", self.list(elements)?),
            Kind::Subscript(both) => format!("({})[{}]", self.text(&both[0])?, self.text(&both[1])?),
            Kind::Quantified(operation, both, all) => {
                let (value, array) = (self.text(&both[0])?, self.text(&both[1])?);
                format!(
                    "({value} {} {} ({array}))",
                    operation.operator.name(),
                    if *all { "ALL" } else { "ANY" }
                )
            }
            Kind::In(_, value, others) => self.among(value, others, "= ANY")?,
            Kind::NextValue(sequence) => format!("nextval({})", self.text(sequence)?),
            Kind::CurrentValue(sequence) => format!("currval({})", self.text(sequence)?),
            _ => return None,
        })
    }
}
