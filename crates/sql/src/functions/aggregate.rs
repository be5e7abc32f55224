//! Aggregates: functions of all rows of a group.

use super::accumulators::{
    self as of, Accumulator, Average, BitFold, Booleans, Collector, Counter, Extreme, FloatSum,
    IntervalAverage, Joiner, Sum,
};
use super::function::Parameter;
use super::registry::{ambiguous, missing};
use super::variances::{FloatVariance, Variance};
use crate::error::SqlError;
use crate::values::Type;
use crate::values::resolution::{Resolved, resolve};
use Type::{
    Bool, Bytea, Char, Date, Float4, Float8, Int2, Int4, Int8, Interval, Numeric, Oid, Text, Time, Timestamp,
    TimestampTz,
};

/// An aggregate for some types of arguments.
pub struct Aggregate {
    name: &'static str,
    parameters: &'static [Parameter],
    /// None if it is the array of the argument's type, or that type itself if it is an array.
    result: Option<Type>,
    start: fn() -> Box<dyn Accumulator>,
}

impl std::fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aggregate").field("name", &self.name).field("parameters", &self.parameters).finish()
    }
}

impl Aggregate {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The type that an argument is cast to, of so many; none if it may be of any type (a literal is a text then).
    pub fn argument(&self, place: usize, count: usize) -> Option<Type> {
        match self.parameters.get(place).filter(|_| place < count) {
            Some(Parameter::Of(ty)) => Some(*ty),
            _ => None,
        }
    }

    /// The type of the result for arguments of these types.
    pub fn result(&self, arguments: &[Type]) -> Type {
        self.result.unwrap_or_else(|| match (arguments.first(), self.parameters) {
            (Some(array), [Parameter::AnyArray]) => *array,
            (Some(Type::Unknown), _) => Type::TextArray,
            (Some(element), _) => element.array().unwrap_or(Type::TextArray),
            (None, _) => Type::Unknown,
        })
    }

    /// Begins a group.
    pub fn start(&self) -> Box<dyn Accumulator> {
        (self.start)()
    }
}

const fn aggregate(
    name: &'static str,
    parameters: &'static [Parameter],
    result: Type,
    start: fn() -> Box<dyn Accumulator>,
) -> Aggregate {
    Aggregate { name, parameters, result: Some(result), start }
}

/// A parameter list of one type.
macro_rules! one {
    ($ty:ident) => {
        &[Parameter::Of(Type::$ty)]
    };
}

/// `min` and `max` of the types that have them.
macro_rules! extremes {
    ($($ty:ident)*) => {
        [$(
            aggregate("min", one!($ty), $ty, || Box::new(Extreme::new(Type::$ty, false))),
            aggregate("max", one!($ty), $ty, || Box::new(Extreme::new(Type::$ty, true))),
        )*]
    };
}

/// Variances and deviations under their names.
macro_rules! variances {
    ($($name:literal $is_sample:literal $is_root:literal)*) => {
        [$(
            aggregate($name, one!(Int8), Numeric, || Box::new(Variance::new($is_sample, $is_root))),
            aggregate($name, one!(Int4), Numeric, || Box::new(Variance::new($is_sample, $is_root))),
            aggregate($name, one!(Int2), Numeric, || Box::new(Variance::new($is_sample, $is_root))),
            aggregate($name, one!(Float4), Float8, || Box::new(FloatVariance::new($is_sample, $is_root))),
            aggregate($name, one!(Float8), Float8, || Box::new(FloatVariance::new($is_sample, $is_root))),
            aggregate($name, one!(Numeric), Numeric, || Box::new(Variance::new($is_sample, $is_root))),
        )*]
    };
}

static EXTREMES: [Aggregate; 28] = extremes! {
    Int8 Int4 Int2 Oid Float4 Float8 Date Time Timestamp TimestampTz Interval Text Numeric Char
};

static VARIANCES: [Aggregate; 36] = variances! {
    "var_pop" false false
    "var_samp" true false
    "variance" true false
    "stddev_pop" false true
    "stddev_samp" true true
    "stddev" true true
};

static OTHERS: &[Aggregate] =
    &[
        aggregate("count", &[], Int8, || Box::new(Counter::rows())),
        aggregate("count", &[Parameter::AnyElement], Int8, || Box::new(Counter::values())),
        aggregate("sum", one!(Int8), Numeric, || Box::new(Sum::new(Numeric))),
        aggregate("sum", one!(Int4), Int8, || Box::new(Sum::new(Int8))),
        aggregate("sum", one!(Int2), Int8, || Box::new(Sum::new(Int8))),
        aggregate("sum", one!(Float4), Float4, || Box::new(FloatSum::new(Float4))),
        aggregate("sum", one!(Float8), Float8, || Box::new(FloatSum::new(Float8))),
        aggregate("sum", one!(Numeric), Numeric, || Box::new(Sum::new(Numeric))),
        aggregate("sum", one!(Interval), Interval, || Box::new(IntervalAverage::sum())),
        aggregate("avg", one!(Int8), Numeric, || Box::new(Average::default())),
        aggregate("avg", one!(Int4), Numeric, || Box::new(Average::default())),
        aggregate("avg", one!(Int2), Numeric, || Box::new(Average::default())),
        aggregate("avg", one!(Numeric), Numeric, || Box::new(Average::default())),
        aggregate("avg", one!(Float4), Float8, || Box::new(FloatVariance::average())),
        aggregate("avg", one!(Float8), Float8, || Box::new(FloatVariance::average())),
        aggregate("avg", one!(Interval), Interval, || Box::new(IntervalAverage::average())),
        aggregate("bool_and", one!(Bool), Bool, || Box::new(Booleans::all())),
        aggregate("bool_or", one!(Bool), Bool, || Box::new(Booleans::any())),
        aggregate("every", one!(Bool), Bool, || Box::new(Booleans::all())),
        aggregate("bit_and", one!(Int2), Int2, || Box::new(BitFold::new(Int2, of::and))),
        aggregate("bit_and", one!(Int4), Int4, || Box::new(BitFold::new(Int4, of::and))),
        aggregate("bit_and", one!(Int8), Int8, || Box::new(BitFold::new(Int8, of::and))),
        aggregate("bit_or", one!(Int2), Int2, || Box::new(BitFold::new(Int2, of::or))),
        aggregate("bit_or", one!(Int4), Int4, || Box::new(BitFold::new(Int4, of::or))),
        aggregate("bit_or", one!(Int8), Int8, || Box::new(BitFold::new(Int8, of::or))),
        aggregate("string_agg", &[Parameter::Of(Text), Parameter::Of(Text)], Text, || {
            Box::new(Joiner::default())
        }),
        aggregate("string_agg", &[Parameter::Of(Bytea), Parameter::Of(Bytea)], Bytea, || {
            Box::new(Joiner::default())
        }),
        Aggregate {
            name: "array_agg",
            parameters: &[Parameter::AnyElement],
            result: None,
            start: || Box::new(Collector::default()),
        },
    ];

fn named(name: &str) -> impl Iterator<Item = &'static Aggregate> + '_ {
    let all = OTHERS.iter().chain(&EXTREMES).chain(&VARIANCES);
    all.filter(move |known| known.name == name)
}

/// True if the name is that of an aggregate.
pub fn is_aggregate(name: &str) -> bool {
    named(name).next().is_some()
}

/// The aggregate that is meant for arguments of these types; `count(*)` has none.
///
/// # Errors
///
/// If there is none (42883), or several (42725).
pub fn lookup_aggregate(name: &str, arguments: &[Type]) -> Result<&'static Aggregate, SqlError> {
    let known: Vec<&'static Aggregate> =
        named(name).filter(|known| known.parameters.len() == arguments.len()).collect();
    let candidates: Vec<Vec<Type>> = known
        .iter()
        .map(|known| {
            let pairs = known.parameters.iter().zip(arguments);
            let types = pairs.map(|(parameter, argument)| match parameter {
                Parameter::Of(ty) => *ty,
                _ if *argument == Type::Unknown => Text,
                _ => *argument,
            });
            types.collect()
        })
        .collect();
    let found = match resolve(&candidates, arguments) {
        Resolved::One(place) => known[place],
        Resolved::None => return Err(missing(name, arguments)),
        Resolved::Ambiguous => return Err(ambiguous(name, arguments)),
    };
    if let ("array_agg", Some(element)) = (name, arguments.first()) {
        if element.element().is_some() {
            return Err(SqlError::not_supported("an array of several dimensions"));
        }
        if *element != Type::Unknown && element.array().is_none() {
            let message = format!("could not find array type for data type {}", element.name());
            return Err(SqlError::new("42704", message));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Datum;

    fn run(name: &str, ty: Type, values: &[&str]) -> String {
        let aggregate = lookup_aggregate(name, &[ty]).unwrap();
        let mut accumulator = aggregate.start();
        for value in values {
            let value = if *value == "NULL" { Datum::Null } else { Datum::parse(value, ty).unwrap() };
            accumulator.step(&[value]).unwrap();
        }
        let result = accumulator.finish().unwrap();
        if result.is_null() { "NULL".to_owned() } else { result.to_text(aggregate.result(&[ty])) }
    }

    #[test]
    fn results_have_the_types_and_digits_of_postgresql() {
        for (name, ty, values, result) in [
            ("sum", Int4, &["1", "NULL", "2"][..], "3"),
            ("sum", Int4, &["NULL"], "NULL"),
            ("sum", Int8, &["9223372036854775807", "1"], "9223372036854775808"),
            ("avg", Int4, &["1", "2", "4"], "2.3333333333333333"),
            ("avg", Numeric, &["1.10", "1.20"], "1.15000000000000000000"),
            ("avg", Float8, &["1", "2"], "1.5"),
            ("min", Text, &["b", "a"], "a"),
            ("max", Date, &["2024-01-01", "2023-01-01"], "2024-01-01"),
            ("max", Numeric, &["1.00", "1.0"], "1.0"),
            ("count", Int4, &["1", "NULL"], "1"),
            ("bool_and", Bool, &["t", "f"], "f"),
            ("array_agg", Int4, &["1", "NULL"], "{1,NULL}"),
            ("stddev", Int4, &["1", "2", "3"], "1.00000000000000000000"),
            ("variance", Int4, &["1"], "NULL"),
            ("var_pop", Float8, &["1", "3"], "1"),
        ] {
            assert_eq!(run(name, ty, values), result, "{name} {values:?}");
        }
    }

    #[test]
    fn an_aggregate_is_chosen_by_its_arguments() {
        assert_eq!(lookup_aggregate("count", &[]).unwrap().result(&[]), Int8);
        assert_eq!(lookup_aggregate("max", &[Type::Varchar]).unwrap().result(&[Type::Varchar]), Text);
        assert_eq!(lookup_aggregate("sum", &[Text]).unwrap_err().code, "42883");
        assert_eq!(lookup_aggregate("max", &[Bool]).unwrap_err().code, "42883");
        assert_eq!(
            lookup_aggregate("array_agg", &[Type::Unknown]).unwrap().result(&[Type::Unknown]),
            Type::TextArray
        );
        assert!(is_aggregate("every") && !is_aggregate("lower"));
    }
}
