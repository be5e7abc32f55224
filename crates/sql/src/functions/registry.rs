//! The functions by their names, and which of them a call means.

use super::function::Function;
use super::{arrays, catalog, formatting, numbers, privileges, search, strings, system, time_fields, times};
use crate::error::SqlError;
use crate::values::Type;
use crate::values::resolution::{Resolved, resolve};
use std::collections::HashMap;
use std::sync::LazyLock;

/// All functions.
fn all() -> impl Iterator<Item = &'static Function> {
    let parts: [&'static [Function]; 10] = [
        numbers::FUNCTIONS,
        strings::FUNCTIONS,
        search::FUNCTIONS,
        formatting::FUNCTIONS,
        times::FUNCTIONS,
        time_fields::FUNCTIONS,
        arrays::FUNCTIONS,
        catalog::FUNCTIONS,
        privileges::FUNCTIONS,
        system::FUNCTIONS,
    ];
    parts.into_iter().flatten()
}

static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Function>>> = LazyLock::new(|| {
    let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
    for function in all() {
        by_name.entry(function.name()).or_default().push(function);
    }
    by_name
});

/// A call with the types of its arguments, as errors show it.
fn shown(name: &str, arguments: &[Type]) -> String {
    let types: Vec<&str> = arguments.iter().map(|ty| ty.name()).collect();
    format!("{name}({})", types.join(", "))
}

/// The error of a call that means no function.
pub(super) fn missing(name: &str, arguments: &[Type]) -> SqlError {
    SqlError::new("42883", format!("function {} does not exist", shown(name, arguments))).hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

/// The error of a call that means several functions.
pub(super) fn ambiguous(name: &str, arguments: &[Type]) -> SqlError {
    SqlError::new("42725", format!("function {} is not unique", shown(name, arguments)))
        .hint("Could not choose a best candidate function. You might need to add explicit type casts.")
}

/// True if there is a function of this name.
pub fn is_function(name: &str) -> bool {
    BY_NAME.contains_key(name)
}

/// The function that a call means; a literal is of the type [`Type::Unknown`].
///
/// # Errors
///
/// If there is none (42883), or several (42725).
pub fn lookup(name: &str, arguments: &[Type]) -> Result<&'static Function, SqlError> {
    let known = BY_NAME.get(name).map(Vec::as_slice).unwrap_or_default();
    let mut functions = Vec::with_capacity(known.len());
    let mut candidates = Vec::with_capacity(known.len());
    for function in known {
        if let Some(parameters) = function.parameters_for(arguments) {
            functions.push(*function);
            candidates.push(parameters);
        }
    }
    match resolve(&candidates, arguments) {
        Resolved::One(place) => Ok(functions[place]),
        Resolved::None => Err(missing(name, arguments)),
        Resolved::Ambiguous => Err(ambiguous(name, arguments)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_means_the_function_that_suits_its_arguments() {
        use Type::{Float8, Int2, Int4, Numeric, Text, Unknown, Varchar};
        for (name, arguments, result) in [
            ("abs", &[Int2][..], Int2),
            ("round", &[Int4], Float8),
            ("round", &[Numeric, Int4], Numeric),
            ("length", &[Unknown], Int4),
            ("length", &[Varchar], Int4),
            ("lower", &[Type::Name], Text),
            ("concat", &[Int4, Unknown, Text], Text),
            ("substring", &[Unknown, Int4, Int4], Text),
        ] {
            assert_eq!(lookup(name, arguments).unwrap().result(arguments), result, "{name}");
        }
    }

    #[test]
    fn a_call_that_means_no_function_says_so() {
        let error = lookup("nothing", &[Type::Int4, Type::Unknown]).unwrap_err();
        assert_eq!(
            (error.code, &*error.message),
            ("42883", "function nothing(integer, unknown) does not exist")
        );
        assert_eq!(lookup("lower", &[Type::Int4]).unwrap_err().code, "42883");
        assert_eq!(lookup("concat", &[]).unwrap_err().code, "42883");
    }

    #[test]
    fn no_function_is_there_twice() {
        let mut seen = std::collections::HashSet::new();
        for function in all() {
            assert!(
                seen.insert(format!("{} {:?}", function.name(), function.signature())),
                "{}",
                function.name()
            );
        }
    }
}
