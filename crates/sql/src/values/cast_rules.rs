//! The casts that there are: PostgreSQL's `pg_cast`, and those by way of the values' text.

use super::sql_type::Type;

/// The places in which a cast happens. Each allows the casts of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// In an expression, without being asked for.
    Implicit,
    /// Where a value goes into a column.
    Assignment,
    /// Where it is asked for.
    Explicit,
}

/// The context that a cast needs at least; none if there is no such cast.
fn least_context(from: Type, to: Type) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use Type::{
        Bool, Char, Date, Float4, Float8, Int2, Int4, Int8, Interval, Json, Letter, Name, NodeTree, Numeric,
        Oid, Regclass, Regnamespace, Regproc, Regtype, Text, Time, Timestamp, TimestampTz, Unknown, Varchar,
    };
    if from == to || from == Unknown {
        return Some(Implicit);
    }
    if let (Some(left), Some(right)) = (from.element(), to.element()) {
        // The vectors of the catalog are arrays to all that reads them.
        if matches!((from, to), (Type::Int2Vector, Type::Int2Array) | (Type::OidVector, Type::OidArray)) {
            return Some(Implicit);
        }
        return if matches!(to, Type::Int2Vector | Type::OidVector) {
            None
        } else {
            least_context(left, right)
        };
    }
    let is_string = |ty: Type| matches!(ty, Text | Varchar | Char | Name);
    Some(match (from, to) {
        (Int2, Int4 | Int8 | Float4 | Float8 | Numeric) => Implicit,
        (Int4, Int8 | Float4 | Float8 | Numeric) => Implicit,
        (Int8, Float4 | Float8 | Numeric) => Implicit,
        (Numeric, Float4 | Float8) | (Float4, Float8) => Implicit,
        (Int2 | Int4 | Int8, Oid | Regproc | Regclass | Regtype | Regnamespace) => Implicit,
        (Oid, Regproc | Regclass | Regtype | Regnamespace) => Implicit,
        (Regproc | Regclass | Regtype | Regnamespace, Oid) => Implicit,
        (Oid | Regproc | Regclass | Regtype | Regnamespace, Int4 | Int8) => Assignment,
        (Int4, Int2) | (Int8, Int2 | Int4) | (Numeric, Int2 | Int4 | Int8) => Assignment,
        (Float4 | Float8, Int2 | Int4 | Int8 | Numeric) | (Float8, Float4) => Assignment,
        (Bool, Int4) | (Int4, Bool) | (Letter, Int4) | (Int4, Letter) => Explicit,
        (Text | Varchar, Char | Name | Text | Varchar | Regclass) => Implicit,
        (Char, Name | Text | Varchar) => Implicit,
        (Name, Text) | (NodeTree, Text) | (Letter, Text) => Implicit,
        (Name, Char | Varchar) | (Letter, Char | Varchar) | (Text | Varchar | Char, Letter) => Assignment,
        (Date, Timestamp | TimestampTz) | (Timestamp, TimestampTz) | (Time, Interval) => Implicit,
        (Timestamp | TimestampTz, Date | Time) | (TimestampTz, Timestamp) | (Interval, Time) => Assignment,
        // All others go by way of their texts.
        (NodeTree, _) | (_, NodeTree | Type::Void | Unknown) => return None,
        (_, to) if is_string(to) => Assignment,
        (Json, _) | (_, Json) if is_string(from) => Explicit,
        (from, _) if is_string(from) => Explicit,
        _ => return None,
    })
}

/// True if there is a cast that this context allows.
pub fn can_cast(from: Type, to: Type, context: CastContext) -> bool {
    least_context(from, to).is_some_and(|least| least <= context)
}

/// True if values are cast in expressions without being asked for.
pub fn implicit_cast(from: Type, to: Type) -> bool {
    can_cast(from, to, CastContext::Implicit)
}

/// True if values are cast when they go into a column.
pub fn assignment_cast(from: Type, to: Type) -> bool {
    can_cast(from, to, CastContext::Assignment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_need_the_context_that_postgresql_asks_for() {
        assert!(implicit_cast(Type::Int4, Type::Int8) && !implicit_cast(Type::Int8, Type::Int4));
        assert!(assignment_cast(Type::Int8, Type::Int4) && !assignment_cast(Type::Int4, Type::Bool));
        assert!(can_cast(Type::Int4, Type::Bool, CastContext::Explicit));
        assert!(assignment_cast(Type::Date, Type::Text) && !implicit_cast(Type::Date, Type::Text));
        assert!(
            !assignment_cast(Type::Text, Type::Int4)
                && can_cast(Type::Text, Type::Int4, CastContext::Explicit)
        );
        assert!(!can_cast(Type::Bool, Type::Int8, CastContext::Explicit));
        assert!(implicit_cast(Type::Int2Vector, Type::Int2Array));
        assert!(
            implicit_cast(Type::Int4Array, Type::Int8Array)
                && !implicit_cast(Type::Int4Array, Type::TextArray)
        );
    }
}
