//! Operators of texts, bytes and arrays.

use super::numbers::wrong_operands;
use crate::error::SqlError;
use crate::values::Datum;
use crate::values::compare::equals;
use std::sync::Arc;

/// The most bytes of a text or of bytes.
pub(crate) const BYTES_MAX: usize = 1 << 30;

/// The error of a result that is too long.
pub(crate) fn too_long() -> SqlError {
    SqlError::new("54000", "requested length too large")
}

pub(super) fn concatenate(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Text(left), Datum::Text(right)) => {
            if left.len() + right.len() > BYTES_MAX {
                return Err(too_long());
            }
            let mut text = String::with_capacity(left.len() + right.len());
            text.push_str(left);
            text.push_str(right);
            Ok(Datum::text(text))
        }
        (Datum::Bytes(left), Datum::Bytes(right)) => {
            if left.len() + right.len() > BYTES_MAX {
                return Err(too_long());
            }
            Ok(Datum::Bytes([&left[..], &right[..]].concat().into()))
        }
        _ => Err(wrong_operands()),
    }
}

pub(super) fn concatenate_arrays(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Array(left), Datum::Array(right)) => {
            Ok(Datum::array(left.iter().chain(right.iter()).cloned().collect()))
        }
        _ => Err(wrong_operands()),
    }
}

pub(super) fn append(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    let Datum::Array(elements) = left else { return Err(wrong_operands()) };
    let mut elements = Vec::clone(elements);
    elements.push(right.clone());
    Ok(Datum::array(elements))
}

pub(super) fn prepend(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    let Datum::Array(elements) = right else { return Err(wrong_operands()) };
    Ok(Datum::array([left].into_iter().chain(elements.iter()).cloned().collect()))
}

fn arrays<'d>(
    left: &'d Datum,
    right: &'d Datum,
) -> Result<(&'d Arc<Vec<Datum>>, &'d Arc<Vec<Datum>>), SqlError> {
    match (left, right) {
        (Datum::Array(left), Datum::Array(right)) => Ok((left, right)),
        _ => Err(wrong_operands()),
    }
}

/// True if an element equals the value; null equals nothing.
fn has(elements: &[Datum], value: &Datum) -> bool {
    !value.is_null() && elements.iter().any(|element| !element.is_null() && equals(element, value))
}

pub(super) fn contains(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    let (left, right) = arrays(left, right)?;
    Ok(Datum::Bool(right.iter().all(|value| has(left, value))))
}

pub(super) fn contained_by(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    contains(right, left)
}

pub(super) fn overlaps(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    let (left, right) = arrays(left, right)?;
    Ok(Datum::Bool(right.iter().any(|value| has(left, value))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Type;

    fn array(text: &str) -> Datum {
        Datum::parse(text, Type::Int4Array).unwrap()
    }

    #[test]
    fn arrays_are_joined_and_compared_as_sets() {
        assert_eq!(concatenate_arrays(&array("{1}"), &array("{2}")), Ok(array("{1,2}")));
        assert_eq!(append(&array("{1}"), &Datum::Null), Ok(array("{1,NULL}")));
        assert_eq!(prepend(&Datum::Int4(0), &array("{1}")), Ok(array("{0,1}")));
        assert_eq!(contains(&array("{1,2,3}"), &array("{3,1}")), Ok(Datum::Bool(true)));
        assert_eq!(contains(&array("{1,NULL}"), &array("{NULL}")), Ok(Datum::Bool(false)));
        assert_eq!(contained_by(&array("{}"), &array("{1}")), Ok(Datum::Bool(true)));
        assert_eq!(overlaps(&array("{1,2}"), &array("{2,3}")), Ok(Datum::Bool(true)));
    }
}
