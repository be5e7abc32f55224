//! Resolution: the operator or function that is meant among those of a name, and the common type of several values.
//!
//! PostgreSQL's rules (its documentation, chapter 10): an exact match; else, of those that the arguments can be cast to implicitly, the
//! ones with most exact matches, then with most preferred types, then those that the literals of unknown type suit best.

use super::cast_rules::implicit_cast;
use super::sql_type::Type;
use crate::error::SqlError;

/// The result of resolving a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// The place of the one that is meant.
    One(usize),
    /// There is none.
    None,
    /// There are several.
    Ambiguous,
}

/// Chooses among candidates, each the types of its parameters, as many as there are arguments.
pub(crate) fn resolve(candidates: &[Vec<Type>], arguments: &[Type]) -> Resolved {
    let exact = candidates.iter().position(|candidate| candidate == arguments);
    if let Some(place) = exact {
        return Resolved::One(place);
    }
    let fits = |place: &usize| {
        let pairs = arguments.iter().zip(&candidates[*place]);
        pairs.into_iter().all(|(argument, parameter)| implicit_cast(*argument, *parameter))
    };
    let mut left: Vec<usize> = (0..candidates.len()).filter(fits).collect();
    if left.len() > 1 {
        keep_best(&mut left, |place| {
            let pairs = arguments.iter().zip(&candidates[place]);
            pairs.filter(|(argument, parameter)| **argument != Type::Unknown && argument == parameter).count()
        });
        keep_best(&mut left, |place| {
            let pairs = arguments.iter().zip(&candidates[place]);
            pairs
                .filter(|(argument, parameter)| {
                    **argument != Type::Unknown
                        && (argument == parameter
                            || (parameter.is_preferred() && parameter.category() == argument.category()))
                })
                .count()
        });
    }
    if left.len() > 1 && arguments.contains(&Type::Unknown) {
        keep_by_category(&mut left, candidates, arguments);
    }
    if left.len() > 1 && arguments.contains(&Type::Unknown) {
        keep_by_known(&mut left, candidates, arguments);
    }
    match left[..] {
        [] => Resolved::None,
        [place] => Resolved::One(place),
        _ => Resolved::Ambiguous,
    }
}

/// Keeps the candidates with the highest count.
fn keep_best(left: &mut Vec<usize>, count: impl Fn(usize) -> usize) {
    let best = left.iter().map(|place| count(*place)).max().unwrap_or(0);
    left.retain(|place| count(*place) == best);
}

/// Keeps the candidates whose parameters suit literals: texts if any candidate takes one, else those of a category that all share.
fn keep_by_category(left: &mut Vec<usize>, candidates: &[Vec<Type>], arguments: &[Type]) {
    let mut wanted: Vec<Option<(char, bool)>> = Vec::new();
    for (place, argument) in arguments.iter().enumerate() {
        if *argument != Type::Unknown {
            wanted.push(None);
            continue;
        }
        let types = || left.iter().map(|candidate| candidates[*candidate][place]);
        let category = if types().any(|ty| ty.category() == 'S') {
            'S'
        } else {
            let mut categories = types().map(Type::category);
            let Some(first) = categories.next() else { return };
            if categories.any(|other| other != first) {
                // Literals alone do not decide.
                return;
            }
            first
        };
        let has_preferred = types().any(|ty| ty.category() == category && ty.is_preferred());
        wanted.push(Some((category, has_preferred)));
    }
    let suits = |candidate: &usize| {
        candidates[*candidate].iter().zip(&wanted).all(|(ty, wanted)| match wanted {
            Some((category, has_preferred)) => {
                ty.category() == *category && (!has_preferred || ty.is_preferred())
            }
            None => true,
        })
    };
    if left.iter().any(suits) {
        left.retain(suits);
    }
}

/// Keeps the candidate that remains if the literals are of the one type that the other arguments have.
fn keep_by_known(left: &mut Vec<usize>, candidates: &[Vec<Type>], arguments: &[Type]) {
    let mut known = arguments.iter().copied().filter(|ty| *ty != Type::Unknown);
    let Some(first) = known.next() else { return };
    if known.any(|other| other != first) {
        return;
    }
    let fits = |place: &usize| candidates[*place].iter().all(|parameter| implicit_cast(first, *parameter));
    if left.iter().filter(|place| fits(place)).count() == 1 {
        left.retain(fits);
    }
}

/// The type that values of several types are brought to: in `CASE`, `UNION`, `VALUES`, `IN`, `COALESCE` and arrays.
///
/// # Errors
///
/// If they have none in common (42804).
pub fn common_type(types: &[Type]) -> Result<Type, SqlError> {
    let known: Vec<Type> = types.iter().copied().filter(|ty| *ty != Type::Unknown).collect();
    let Some(mut common) = known.first().copied() else { return Ok(Type::Text) };
    for ty in &known[1..] {
        if *ty == common {
            continue;
        }
        if ty.category() != common.category() {
            return Err(mismatch(common, *ty));
        }
        // A preferred type stays; else the one that the other is cast to.
        if !common.is_preferred() && implicit_cast(common, *ty) && !implicit_cast(*ty, common) {
            common = *ty;
        }
    }
    match known.iter().find(|ty| !implicit_cast(**ty, common)) {
        Some(other) => Err(mismatch(common, *other)),
        None => Ok(common),
    }
}

fn mismatch(left: Type, right: Type) -> SqlError {
    SqlError::new("42804", format!("types {} and {} cannot be matched", left.name(), right.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_type_is_the_one_that_all_are_cast_to() {
        use Type::{Date, Float8, Int2, Int4, Numeric, Text, TimestampTz, Unknown, Varchar};
        for (types, common) in [
            (&[Int4, Unknown, Numeric][..], Some(Numeric)),
            (&[Numeric, Int4], Some(Numeric)),
            (&[Int2, Float8, Numeric], Some(Float8)),
            (&[Varchar, Text], Some(Varchar)),
            (&[Unknown, Unknown], Some(Text)),
            (&[Date, TimestampTz], Some(TimestampTz)),
            (&[Int4, Text], None),
        ] {
            assert_eq!(common_type(types).ok(), common, "{types:?}");
        }
    }

    #[test]
    fn literals_take_the_type_of_the_other_side() {
        let candidates =
            [vec![Type::Int4, Type::Int4], vec![Type::Int8, Type::Int8], vec![Type::Text, Type::Text]];
        assert_eq!(resolve(&candidates, &[Type::Int8, Type::Unknown]), Resolved::One(1));
        assert_eq!(resolve(&candidates, &[Type::Unknown, Type::Unknown]), Resolved::One(2));
        assert_eq!(resolve(&candidates, &[Type::Int2, Type::Int8]), Resolved::One(1));
        assert_eq!(resolve(&candidates, &[Type::Bool, Type::Int4]), Resolved::None);
        let floats = [vec![Type::Float4], vec![Type::Float8]];
        assert_eq!(resolve(&floats, &[Type::Int4]), Resolved::One(1));
    }
}
