//! Functions: their names, the types of their arguments and results, and what they compute.

use super::environment::Environment;
use crate::error::SqlError;
use crate::values::{Datum, Type};

/// The promise of a function about its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    /// The result depends on the arguments alone.
    Immutable,
    /// The result is the same within a statement.
    Stable,
    /// The result may be another at each call.
    Volatile,
}

/// A parameter of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// A value of a type.
    Of(Type),
    /// An array of any type.
    AnyArray,
    /// A value of any type. If there is an array among the parameters, the type is that of its elements.
    AnyElement,
    /// Values of any types, at least one, as the last arguments.
    AnyVariadic,
}

/// The parameters of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Parameters {
    /// Values of these types.
    Types(&'static [Type]),
    /// Values some of which may be of several types.
    Mixed(&'static [Parameter]),
}

/// The computation of a function. It must not be given null for an argument if it is strict.
pub(crate) type Body = fn(&[Datum], &Environment<'_>) -> Result<Datum, SqlError>;

/// The type of a function's result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ResultType {
    Is(Type),
    /// The type of an argument.
    SameAs(usize),
}

/// A function of SQL for some types of arguments.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    name: &'static str,
    parameters: Parameters,
    result: ResultType,
    volatility: Volatility,
    is_strict: bool,
    body: Body,
}

/// A strict and immutable function.
pub(crate) const fn function(
    name: &'static str,
    parameters: &'static [Type],
    result: Type,
    body: Body,
) -> Function {
    Function {
        name,
        parameters: Parameters::Types(parameters),
        result: ResultType::Is(result),
        volatility: Volatility::Immutable,
        is_strict: true,
        body,
    }
}

/// A strict and immutable function, some of whose parameters may be of several types.
pub(crate) const fn polymorphic(
    name: &'static str,
    parameters: &'static [Parameter],
    result: ResultType,
    body: Body,
) -> Function {
    let function = function(name, &[], Type::Void, body);
    Function { parameters: Parameters::Mixed(parameters), result, ..function }
}

impl Function {
    /// The same function, of results that change between statements.
    pub(crate) const fn stable(self) -> Self {
        Self { volatility: Volatility::Stable, ..self }
    }

    /// The same function, of results that change with each call.
    pub(crate) const fn volatile(self) -> Self {
        Self { volatility: Volatility::Volatile, ..self }
    }

    /// The same function, which is called for null, too.
    pub(crate) const fn nullable(self) -> Self {
        Self { is_strict: false, ..self }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its parameters, by which it is told from others of its name.
    #[cfg(test)]
    pub(crate) fn signature(&self) -> Vec<Parameter> {
        match self.parameters {
            Parameters::Types(types) => types.iter().copied().map(Parameter::Of).collect(),
            Parameters::Mixed(parameters) => parameters.to_vec(),
        }
    }

    /// The promise about its results.
    pub fn volatility(&self) -> Volatility {
        self.volatility
    }

    /// True if the result is null for null: then it is not called.
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// The parameter for an argument; none if there is none.
    pub(crate) fn parameter(&self, place: usize) -> Option<Parameter> {
        match self.parameters {
            Parameters::Types(types) => types.get(place).copied().map(Parameter::Of),
            Parameters::Mixed(parameters) => match parameters.last() {
                Some(Parameter::AnyVariadic) => Some(parameters[place.min(parameters.len() - 1)]),
                _ => parameters.get(place).copied(),
            },
        }
    }

    /// True if it can be called with so many arguments.
    pub(crate) fn takes(&self, count: usize) -> bool {
        match self.parameters {
            Parameters::Types(types) => types.len() == count,
            Parameters::Mixed(parameters) => match parameters.last() {
                Some(Parameter::AnyVariadic) => count >= parameters.len(),
                _ => parameters.len() == count,
            },
        }
    }

    /// The types of all parameters, for arguments of these types; none if they do not go together.
    pub(crate) fn parameters_for(&self, arguments: &[Type]) -> Option<Vec<Type>> {
        if !self.takes(arguments.len()) {
            return None;
        }
        let parameters = (0..arguments.len()).filter_map(|place| self.parameter(place));
        let element = arguments.iter().zip(parameters.clone()).find_map(|(argument, parameter)| {
            argument.element().filter(|_| parameter == Parameter::AnyArray)
        });
        let types = arguments.iter().zip(parameters).map(|(argument, parameter)| match parameter {
            Parameter::Of(ty) => Some(ty),
            Parameter::AnyArray => argument.element().map(|_| *argument),
            // Texts and literals are left to the function of the same name that takes a text.
            Parameter::AnyElement => element.or(Some(*argument).filter(|ty| !ty.is_text())),
            Parameter::AnyVariadic => Some(*argument),
        });
        types.collect()
    }

    /// The types that arguments of these types are cast to. Unlike [`argument`](Self::argument) it knows those of elements of arrays.
    pub fn argument_types(&self, arguments: &[Type]) -> Vec<Type> {
        let types = self.parameters_for(arguments).unwrap_or_else(|| arguments.to_vec());
        types.into_iter().map(|ty| if ty == Type::Unknown { Type::Text } else { ty }).collect()
    }

    /// The type that an argument is cast to, of so many; none if it may be of any type (a literal is a text then).
    pub fn argument(&self, place: usize, count: usize) -> Option<Type> {
        match self.parameter(place).filter(|_| place < count) {
            Some(Parameter::Of(ty)) => Some(ty),
            _ => None,
        }
    }

    /// The type of the result for arguments of these types.
    pub fn result(&self, arguments: &[Type]) -> Type {
        match self.result {
            ResultType::Is(ty) => ty,
            ResultType::SameAs(place) => arguments.get(place).copied().unwrap_or(Type::Unknown),
        }
    }

    /// Calls it with arguments of its types. A strict function gives null for null.
    ///
    /// # Errors
    ///
    /// Those of the function's own.
    pub fn call(&self, arguments: &[Datum], environment: &Environment<'_>) -> Result<Datum, SqlError> {
        if self.is_strict && arguments.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        (self.body)(arguments, environment)
    }
}

/// The error of arguments of types that a function is not for; the resolution rules it out.
pub(crate) fn wrong_arguments() -> SqlError {
    SqlError::new("XX000", "arguments of types that the function is not for")
}

/// The text of an argument.
pub(crate) fn text(arguments: &[Datum], place: usize) -> Result<&str, SqlError> {
    arguments.get(place).and_then(Datum::as_text).ok_or_else(wrong_arguments)
}

/// The whole number of an argument.
pub(crate) fn integer(arguments: &[Datum], place: usize) -> Result<i64, SqlError> {
    arguments.get(place).and_then(Datum::as_integer).ok_or_else(wrong_arguments)
}

/// The float of an argument.
pub(crate) fn float(arguments: &[Datum], place: usize) -> Result<f64, SqlError> {
    match arguments.get(place) {
        Some(Datum::Float8(float)) => Ok(*float),
        Some(Datum::Float4(float)) => Ok(f64::from(*float)),
        _ => Err(wrong_arguments()),
    }
}

/// The bytes of an argument.
pub(crate) fn bytes(arguments: &[Datum], place: usize) -> Result<&[u8], SqlError> {
    match arguments.get(place) {
        Some(Datum::Bytes(bytes)) => Ok(bytes),
        _ => Err(wrong_arguments()),
    }
}

/// The elements of an argument that is an array.
pub(crate) fn elements(arguments: &[Datum], place: usize) -> Result<&[Datum], SqlError> {
    match arguments.get(place) {
        Some(Datum::Array(elements)) => Ok(elements),
        _ => Err(wrong_arguments()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Function = polymorphic(
        "array_append",
        &[Parameter::AnyArray, Parameter::AnyElement],
        ResultType::SameAs(0),
        |arguments, _| Ok(arguments[0].clone()),
    );

    #[test]
    fn parameters_of_several_types_take_those_of_the_arguments() {
        assert_eq!(
            LENGTH.parameters_for(&[Type::Int4Array, Type::Unknown]),
            Some(vec![Type::Int4Array, Type::Int4])
        );
        assert_eq!(LENGTH.parameters_for(&[Type::Int4, Type::Int4]), None);
        assert_eq!(LENGTH.parameters_for(&[Type::Int4Array]), None);
        assert_eq!(LENGTH.result(&[Type::TextArray, Type::Text]), Type::TextArray);
        assert_eq!(LENGTH.argument(1, 2), None);
    }
}
