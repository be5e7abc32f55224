//! Order, equality and hashes of values.
//!
//! Values of comparable types are ordered among each other: integers, floats and `numeric`; dates and timestamps; all texts. Floats and
//! other numbers compare as floats, as PostgreSQL casts them. Texts compare by their bytes (collation C). A `char(n)` compares without
//! its trailing blanks, which only its type tells from a text: use the functions with a type where there may be one.

use super::calendar::{
    DAY, INFINITE_DATE, INFINITE_TIMESTAMP, NEGATIVE_INFINITE_DATE, NEGATIVE_INFINITE_TIMESTAMP,
};
use super::datum::Datum;
use super::numeric::Numeric;
use super::sql_type::Type;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The order of floats: NaN equals itself and is the greatest; both zeros are equal.
pub(crate) fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// The microseconds of a date's midnight. Dates beyond the last timestamp keep their order.
pub(crate) fn midnight(days: i32) -> i128 {
    match days {
        INFINITE_DATE => i128::from(INFINITE_TIMESTAMP),
        NEGATIVE_INFINITE_DATE => i128::from(NEGATIVE_INFINITE_TIMESTAMP),
        // A date of the far future is before infinity.
        days => (i128::from(days) * i128::from(DAY)).min(i128::from(INFINITE_TIMESTAMP) - 1),
    }
}

/// A value in one of the families within which values are ordered.
enum Family<'d> {
    Whole(i64),
    Float(f64),
    Decimal(&'d Numeric),
    Moment(i128),
    Other(u8),
}

fn family(datum: &Datum) -> Family<'_> {
    match datum {
        Datum::Int2(number) => Family::Whole(i64::from(*number)),
        Datum::Int4(number) => Family::Whole(i64::from(*number)),
        Datum::Int8(number) => Family::Whole(*number),
        Datum::Oid(number) => Family::Whole(i64::from(*number)),
        Datum::Float4(float) => Family::Float(f64::from(*float)),
        Datum::Float8(float) => Family::Float(*float),
        Datum::Numeric(number) => Family::Decimal(number),
        Datum::Date(days) => Family::Moment(midnight(*days)),
        Datum::Timestamp(microseconds) | Datum::TimestampTz(microseconds) => {
            Family::Moment(i128::from(*microseconds))
        }
        Datum::Bool(_) => Family::Other(0),
        Datum::Text(_) => Family::Other(1),
        Datum::Bytes(_) => Family::Other(2),
        Datum::Uuid(_) => Family::Other(3),
        Datum::Time(_) => Family::Other(4),
        Datum::Interval(_) => Family::Other(5),
        Datum::Array(_) => Family::Other(6),
        Datum::Null => Family::Other(7),
    }
}

/// The place of a family among the others, for values that are not comparable.
fn rank(family: &Family<'_>) -> u8 {
    match family {
        Family::Whole(_) | Family::Float(_) | Family::Decimal(_) => 100,
        Family::Moment(_) => 101,
        Family::Other(rank) => *rank,
    }
}

/// Compares values of the same type, or of comparable ones. Nulls are the caller's: here they are equal to each other.
pub fn compare(left: &Datum, right: &Datum) -> Ordering {
    match (left, right) {
        (Datum::Int4(left), Datum::Int4(right)) => left.cmp(right),
        (Datum::Int8(left), Datum::Int8(right)) => left.cmp(right),
        (Datum::Text(left), Datum::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Datum::Bool(left), Datum::Bool(right)) => left.cmp(right),
        (Datum::Bytes(left), Datum::Bytes(right)) => left.cmp(right),
        (Datum::Uuid(left), Datum::Uuid(right)) => left.cmp(right),
        (Datum::Time(left), Datum::Time(right)) => left.cmp(right),
        (Datum::Date(left), Datum::Date(right)) => left.cmp(right),
        (Datum::Interval(left), Datum::Interval(right)) => left.cmp(right),
        (Datum::Array(left), Datum::Array(right)) => compare_arrays(left, right),
        _ => compare_families(&family(left), &family(right)),
    }
}

fn compare_families(left: &Family<'_>, right: &Family<'_>) -> Ordering {
    match (left, right) {
        (Family::Whole(left), Family::Whole(right)) => left.cmp(right),
        (Family::Float(left), Family::Float(right)) => compare_floats(*left, *right),
        (Family::Decimal(left), Family::Decimal(right)) => left.cmp(right),
        (Family::Moment(left), Family::Moment(right)) => left.cmp(right),
        (Family::Whole(left), Family::Float(right)) => compare_floats(*left as f64, *right),
        (Family::Float(left), Family::Whole(right)) => compare_floats(*left, *right as f64),
        (Family::Whole(left), Family::Decimal(right)) => Numeric::from(*left).cmp(right),
        (Family::Decimal(left), Family::Whole(right)) => (*left).cmp(&Numeric::from(*right)),
        (Family::Decimal(left), Family::Float(right)) => compare_floats(left.to_f64(), *right),
        (Family::Float(left), Family::Decimal(right)) => compare_floats(*left, right.to_f64()),
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Arrays are ordered by their first elements that differ, then by their lengths. A null element is the greatest.
fn compare_arrays(left: &[Datum], right: &[Datum]) -> Ordering {
    for (left, right) in left.iter().zip(right) {
        let order = match (left.is_null(), right.is_null()) {
            (false, false) => compare(left, right),
            (left, right) => left.cmp(&right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

/// True if values of comparable types are equal.
pub fn equals(left: &Datum, right: &Datum) -> bool {
    compare(left, right) == Ordering::Equal
}

/// A text without the blanks at its end.
pub(crate) fn without_blanks(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Compares values of a type: as [`compare`], but a `char(n)` without its trailing blanks.
pub fn compare_as(ty: Type, left: &Datum, right: &Datum) -> Ordering {
    match (ty, left, right) {
        (Type::Char, Datum::Text(left), Datum::Text(right)) => {
            without_blanks(left).as_bytes().cmp(without_blanks(right).as_bytes())
        }
        _ => compare(left, right),
    }
}

/// Hashes a value so that values that are equal by [`compare`] have equal hashes.
pub fn hash_into(datum: &Datum, state: &mut impl Hasher) {
    // Equal numbers are equal as floats, too.
    let hash_float = |float: f64, state: &mut _| {
        let float = if float == 0.0 {
            0.0
        } else if float.is_nan() {
            f64::NAN
        } else {
            float
        };
        float.to_bits().hash(state);
    };
    match (datum, family(datum)) {
        (_, Family::Whole(number)) => hash_float(number as f64, state),
        (_, Family::Float(float)) => hash_float(float, state),
        (_, Family::Decimal(number)) => hash_float(number.to_f64(), state),
        (_, Family::Moment(moment)) => moment.hash(state),
        (Datum::Bool(value), _) => value.hash(state),
        (Datum::Text(text), _) => text.hash(state),
        (Datum::Bytes(bytes), _) => bytes.hash(state),
        (Datum::Uuid(uuid), _) => uuid.hash(state),
        (Datum::Time(microseconds), _) => microseconds.hash(state),
        (Datum::Interval(interval), _) => interval.hash(state),
        (Datum::Array(elements), _) => {
            elements.len().hash(state);
            for element in elements.iter() {
                hash_into(element, state);
            }
        }
        _ => 0_u8.hash(state),
    }
}

/// Hashes a value of a type so that values that are equal by [`compare_as`] have equal hashes.
pub fn hash_into_as(ty: Type, datum: &Datum, state: &mut impl Hasher) {
    match (ty, datum) {
        (Type::Char, Datum::Text(text)) => without_blanks(text).hash(state),
        _ => hash_into(datum, state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::DefaultHasher;

    fn hash(datum: &Datum) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash_into(datum, &mut hasher);
        hasher.finish()
    }

    fn numeric(text: &str) -> Datum {
        Datum::parse(text, Type::Numeric).unwrap()
    }

    #[test]
    fn numbers_of_all_types_are_equal_and_hash_alike() {
        let ones = [
            Datum::Int2(1),
            Datum::Int4(1),
            Datum::Int8(1),
            Datum::Float4(1.0),
            Datum::Float8(1.0),
            numeric("1.00"),
        ];
        for left in &ones {
            for right in &ones {
                assert!(equals(left, right));
                assert_eq!(hash(left), hash(right));
            }
        }
        assert!(equals(&Datum::Float8(0.0), &Datum::Float8(-0.0)));
        assert_eq!(hash(&Datum::Float8(0.0)), hash(&Datum::Float8(-0.0)));
        assert!(equals(&Datum::Float4(f32::NAN), &numeric("NaN")));
        assert_eq!(compare(&Datum::Int4(2), &numeric("1.5")), Ordering::Greater);
        assert_eq!(compare(&Datum::Float8(f64::NAN), &Datum::Float8(f64::INFINITY)), Ordering::Greater);
    }

    #[test]
    fn dates_compare_with_timestamps() {
        assert!(equals(&Datum::Date(1), &Datum::Timestamp(DAY)));
        assert_eq!(compare(&Datum::Date(i32::MAX), &Datum::TimestampTz(i64::MAX)), Ordering::Equal);
        assert_eq!(compare(&Datum::Date(2_000_000_000), &Datum::Timestamp(i64::MAX)), Ordering::Less);
    }

    #[test]
    fn blanks_at_the_end_of_a_char_do_not_count() {
        let (short, padded) = (Datum::text("a"), Datum::text("a  "));
        assert_eq!(compare_as(Type::Char, &short, &padded), Ordering::Equal);
        assert_eq!(compare_as(Type::Text, &short, &padded), Ordering::Less);
    }

    #[test]
    fn arrays_compare_by_elements_with_null_as_the_greatest() {
        let array = |text: &str| Datum::parse(text, Type::Int4Array).unwrap();
        for pair in ["{}", "{1}", "{1,2}", "{1,NULL}", "{2}"].windows(2) {
            assert_eq!(compare(&array(pair[0]), &array(pair[1])), Ordering::Less, "{pair:?}");
        }
    }
}
