//! Functions of arrays.

use super::function::{
    Function, Parameter, ResultType, elements, function, integer, polymorphic, text, wrong_arguments,
};
use crate::error::SqlError;
use crate::values::{BYTES_MAX, Datum, Type, equals, too_long};
use Parameter::{AnyArray, AnyElement, AnyVariadic, Of};
use Type::{Int4, Text, TextArray};

pub(super) const FUNCTIONS: &[Function] = &[
    polymorphic("array_length", &[AnyArray, Of(Int4)], ResultType::Is(Int4), |arguments, _| {
        bound(arguments, true)
    }),
    polymorphic("array_upper", &[AnyArray, Of(Int4)], ResultType::Is(Int4), |arguments, _| {
        bound(arguments, true)
    }),
    polymorphic("array_lower", &[AnyArray, Of(Int4)], ResultType::Is(Int4), |arguments, _| {
        bound(arguments, false)
    }),
    polymorphic("array_ndims", &[AnyArray], ResultType::Is(Int4), |arguments, _| {
        Ok(if elements(arguments, 0)?.is_empty() { Datum::Null } else { Datum::Int4(1) })
    }),
    polymorphic("array_dims", &[AnyArray], ResultType::Is(Text), |arguments, _| {
        Ok(match elements(arguments, 0)?.len() {
            0 => Datum::Null,
            length => Datum::text(format!("[1:{length}]")),
        })
    }),
    polymorphic("cardinality", &[AnyArray], ResultType::Is(Int4), |arguments, _| {
        Ok(Datum::Int4(elements(arguments, 0)?.len() as i32))
    }),
    polymorphic("array_append", &[AnyArray, AnyElement], ResultType::SameAs(0), |arguments, _| {
        let mut all = given(arguments, 0)?.to_vec();
        all.extend(arguments.get(1).cloned());
        Ok(Datum::array(all))
    })
    .nullable(),
    polymorphic("array_prepend", &[AnyElement, AnyArray], ResultType::SameAs(1), |arguments, _| {
        let others = given(arguments, 1)?.iter();
        Ok(Datum::array(arguments.first().into_iter().chain(others).cloned().collect()))
    })
    .nullable(),
    polymorphic("array_cat", &[AnyArray, AnyArray], ResultType::SameAs(0), |arguments, _| {
        if arguments.iter().all(Datum::is_null) {
            return Ok(Datum::Null);
        }
        Ok(Datum::array([given(arguments, 0)?, given(arguments, 1)?].concat()))
    })
    .nullable(),
    polymorphic("array_remove", &[AnyArray, AnyElement], ResultType::SameAs(0), |arguments, _| {
        let [array, value] = arguments else { return Err(wrong_arguments()) };
        if array.is_null() {
            return Ok(Datum::Null);
        }
        let kept = elements(arguments, 0)?.iter().filter(|element| !is_same(element, value));
        Ok(Datum::array(kept.cloned().collect()))
    })
    .nullable(),
    polymorphic(
        "array_replace",
        &[AnyArray, AnyElement, AnyElement],
        ResultType::SameAs(0),
        |arguments, _| {
            let [array, value, other] = arguments else { return Err(wrong_arguments()) };
            if array.is_null() {
                return Ok(Datum::Null);
            }
            let replaced = elements(arguments, 0)?
                .iter()
                .map(|element| if is_same(element, value) { other } else { element });
            Ok(Datum::array(replaced.cloned().collect()))
        },
    )
    .nullable(),
    polymorphic("array_position", &[AnyArray, AnyElement], ResultType::Is(Int4), |arguments, _| {
        let [array, value] = arguments else { return Err(wrong_arguments()) };
        if array.is_null() {
            return Ok(Datum::Null);
        }
        let place = elements(arguments, 0)?.iter().position(|element| is_same(element, value));
        Ok(place.map_or(Datum::Null, |place| Datum::Int4(place as i32 + 1)))
    })
    .nullable(),
    polymorphic("array_to_string", &[AnyArray, Of(Text)], ResultType::Is(Text), |arguments, _| {
        joined(arguments)
    })
    .stable(),
    polymorphic("array_to_string", &[AnyArray, Of(Text), Of(Text)], ResultType::Is(Text), |arguments, _| {
        joined(arguments)
    })
    .stable()
    .nullable(),
    function("string_to_array", &[Text, Text], TextArray, |arguments, _| split(arguments)).nullable(),
    function("string_to_array", &[Text, Text, Text], TextArray, |arguments, _| split(arguments)).nullable(),
    polymorphic("num_nulls", &[AnyVariadic], ResultType::Is(Int4), |arguments, _| {
        Ok(Datum::Int4(arguments.iter().filter(|value| value.is_null()).count() as i32))
    })
    .nullable(),
    polymorphic("num_nonnulls", &[AnyVariadic], ResultType::Is(Int4), |arguments, _| {
        Ok(Datum::Int4(arguments.iter().filter(|value| !value.is_null()).count() as i32))
    })
    .nullable(),
];

/// The elements of an array, none if it is null.
fn given(arguments: &[Datum], place: usize) -> Result<&[Datum], SqlError> {
    if arguments.get(place).is_some_and(Datum::is_null) { Ok(&[]) } else { elements(arguments, place) }
}

/// True if values are equal, or both null.
fn is_same(left: &Datum, right: &Datum) -> bool {
    match (left.is_null(), right.is_null()) {
        (false, false) => equals(left, right),
        (left, right) => left && right,
    }
}

/// The first or the last place of a dimension; none if the array is empty or has no such dimension.
fn bound(arguments: &[Datum], is_upper: bool) -> Result<Datum, SqlError> {
    let length = elements(arguments, 0)?.len();
    if length == 0 || integer(arguments, 1)? != 1 {
        return Ok(Datum::Null);
    }
    Ok(Datum::Int4(if is_upper { length as i32 } else { 1 }))
}

fn joined(arguments: &[Datum]) -> Result<Datum, SqlError> {
    if arguments.iter().take(2).any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let separator = text(arguments, 1)?;
    let of_null = arguments.get(2).and_then(Datum::as_text);
    let mut out = String::new();
    let mut is_first = true;
    for element in elements(arguments, 0)? {
        let shown = match (element.is_null(), of_null) {
            (false, _) => element.to_text(Text),
            (true, Some(shown)) => shown.to_owned(),
            (true, None) => continue,
        };
        if !is_first {
            out.push_str(separator);
        }
        is_first = false;
        out.push_str(&shown);
        if out.len() > BYTES_MAX {
            return Err(too_long());
        }
    }
    Ok(Datum::text(out))
}

/// The parts of a text between separators; without a separator its characters, with an empty one the text as a whole.
fn split(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let Some(Datum::Text(whole)) = arguments.first() else { return Ok(Datum::Null) };
    let of_null = arguments.get(2).and_then(Datum::as_text);
    let value = |part: &str| if Some(part) == of_null { Datum::Null } else { Datum::text(part) };
    if whole.is_empty() {
        return Ok(Datum::array(Vec::new()));
    }
    let parts = match &arguments[1] {
        Datum::Text(separator) if separator.is_empty() => vec![value(whole)],
        Datum::Text(separator) => whole.split(&**separator).map(value).collect(),
        _ => whole.chars().map(|next| value(next.encode_utf8(&mut [0; 4]))).collect(),
    };
    Ok(Datum::array(parts))
}
