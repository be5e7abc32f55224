//! Operators on deferred values: `balance - amount`, `(stock - ordered).at_least(0)`.
//!
//! An expression is an [`Input`]: it is computed where it is used, from results that are known then, and has no place
//! of its own. [`Transaction::compute`](crate::Transaction::compute) gives it one.
//!
//! Numbers and truth values are inputs themselves; any other value that is known beforehand becomes one as a
//! [`Constant`]. Comparisons are methods, because Rust's operators return plain truth values. There is no short
//! circuit: both sides of `&` and `|` are computed.

use super::{Deferred, Input, Results};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Rem, Sub};

/// A computation over deferred values, made by operators and comparisons on them.
#[derive(Clone, Copy)]
pub struct Expression<E>(E);

impl<E> fmt::Debug for Expression<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expression(..)")
    }
}

impl<E: Input> Input for Expression<E> {
    type Value = E::Value;

    fn get(&self, results: &Results) -> Option<E::Value> {
        self.0.get(results)
    }
    fn is_known(&self, results: &Results) -> bool {
        self.0.is_known(results)
    }
    fn belongs_to(&self, results: &Results) -> bool {
        self.0.belongs_to(results)
    }
    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        self.0.each_slot(visit);
    }
}

/// A value of type `T` that may be known now or later: a number, a [`Constant`], a deferred value, an expression, a
/// tuple of inputs. It is the right operand of an operator, or a value to be stored.
///
/// It is narrower than [`Input`], so that the compiler can infer the type of a number literal.
pub trait Operand<T> {
    /// The type in which the expression keeps it.
    type Input: Input<Value = T>;
    /// Makes an input of it.
    fn into_input(self) -> Self::Input;
}

impl<T: Clone + 'static> Operand<T> for Deferred<T> {
    type Input = Self;
    fn into_input(self) -> Self {
        self
    }
}

impl<E: Input> Operand<E::Value> for Expression<E> {
    type Input = E;
    fn into_input(self) -> E {
        self.0
    }
}

macro_rules! tuples {
    ($(($($input:ident $value:ident),*))*) => {$(
        impl<$($input: Input<Value = $value>, $value: 'static),*> Operand<($($value,)*)> for ($($input,)*) {
            type Input = Self;
            fn into_input(self) -> Self {
                self
            }
        }
    )*};
}
tuples! { () (A S) (A S, B T) (A S, B T, C U) (A S, B T, C U, D V) }

/// A value known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant<T>(pub T);

impl<T: Clone + 'static> Operand<T> for Constant<T> {
    type Input = Self;
    fn into_input(self) -> Self {
        self
    }
}

impl<T: Clone + 'static> Input for Constant<T> {
    type Value = T;

    fn get(&self, _: &Results) -> Option<T> {
        Some(self.0.clone())
    }
    fn is_known(&self, _: &Results) -> bool {
        true
    }
    fn belongs_to(&self, _: &Results) -> bool {
        true
    }
    fn each_slot(&self, _: &mut dyn FnMut(u32)) {}
}

macro_rules! constants {
    ($($known:ty),*) => {$(
        impl Input for $known {
            type Value = $known;

            fn get(&self, _: &Results) -> Option<$known> {
                Some(*self)
            }
            fn is_known(&self, _: &Results) -> bool {
                true
            }
            fn belongs_to(&self, _: &Results) -> bool {
                true
            }
            fn each_slot(&self, _: &mut dyn FnMut(u32)) {}
        }

        impl Operand<$known> for $known {
            type Input = $known;
            fn into_input(self) -> $known {
                self
            }
        }
    )*};
}
constants!(bool, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

/// An operation on two values.
pub trait Operator<A, B>: 'static {
    /// The result's type.
    type Output: 'static;
    /// Computes the result.
    fn apply(first: A, second: B) -> Self::Output;
}

/// Two inputs and an operator.
pub struct Binary<A, B, O> {
    first: A,
    second: B,
    operator: PhantomData<fn() -> O>,
}

impl<A: Clone, B: Clone, O> Clone for Binary<A, B, O> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), second: self.second.clone(), operator: PhantomData }
    }
}

impl<A: Copy, B: Copy, O> Copy for Binary<A, B, O> {}

impl<A: Input, B: Input, O: Operator<A::Value, B::Value>> Input for Binary<A, B, O> {
    type Value = O::Output;

    fn get(&self, results: &Results) -> Option<O::Output> {
        Some(O::apply(self.first.get(results)?, self.second.get(results)?))
    }
    fn is_known(&self, results: &Results) -> bool {
        self.first.is_known(results) && self.second.is_known(results)
    }
    fn belongs_to(&self, results: &Results) -> bool {
        self.first.belongs_to(results) && self.second.belongs_to(results)
    }
    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        self.first.each_slot(visit);
        self.second.each_slot(visit);
    }
}

/// An input, and a function of its value.
#[derive(Clone, Copy)]
pub struct Map<I, F> {
    input: I,
    make: F,
}

impl<I: Input, F: Fn(I::Value) -> R + 'static, R: 'static> Input for Map<I, F> {
    type Value = R;

    fn get(&self, results: &Results) -> Option<R> {
        self.input.get(results).map(&self.make)
    }
    fn is_known(&self, results: &Results) -> bool {
        self.input.is_known(results)
    }
    fn belongs_to(&self, results: &Results) -> bool {
        self.input.belongs_to(results)
    }
    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        self.input.each_slot(visit);
    }
}

impl<T: Clone + 'static> Deferred<T> {
    /// Applies `make` to the value. It runs wherever the expression is used, each time.
    pub fn map<R: 'static, F: Fn(T) -> R + 'static>(self, make: F) -> Expression<Map<Self, F>> {
        Expression(Map { input: self, make })
    }

    /// Pairs both values.
    pub fn zip<R: Input>(self, other: R) -> Expression<(Self, R)> {
        Expression((self, other))
    }
}

impl<E: Input> Expression<E> {
    /// Applies `make` to the value. It runs wherever the expression is used, each time.
    pub fn map<R: 'static, F: Fn(E::Value) -> R + 'static>(self, make: F) -> Expression<Map<E, F>> {
        Expression(Map { input: self.0, make })
    }

    /// Pairs both values.
    pub fn zip<R: Input>(self, other: R) -> Expression<(E, R)> {
        Expression((self.0, other))
    }
}

fn binary<A, B, O>(first: A, second: B) -> Expression<Binary<A, B, O>> {
    Expression(Binary { first, second, operator: PhantomData })
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident $trait:ident $method:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl<A: $trait<B>, B> Operator<A, B> for $name
        where
            A::Output: 'static,
        {
            type Output = A::Output;
            fn apply(first: A, second: B) -> A::Output {
                first.$method(second)
            }
        }

        impl<T, R: Operand<T>> $trait<R> for Deferred<T> {
            type Output = Expression<Binary<Self, R::Input, $name>>;
            fn $method(self, other: R) -> Self::Output {
                binary(self, other.into_input())
            }
        }

        impl<E: Input, R: Operand<E::Value>> $trait<R> for Expression<E> {
            type Output = Expression<Binary<E, R::Input, $name>>;
            fn $method(self, other: R) -> Self::Output {
                binary(self.0, other.into_input())
            }
        }
    )*};
}
arithmetic! {
    /// The sum.
    Plus Add add,
    /// The difference.
    Minus Sub sub,
    /// The product.
    Times Mul mul,
    /// The quotient. Division of an integer by zero panics, as always.
    DividedBy Div div,
    /// The remainder. That of a division of an integer by zero panics, as always.
    Remainder Rem rem,
    /// True if both hold; of integers, the bits that are set in both.
    And BitAnd bitand,
    /// True if either holds; of integers, the bits that are set in either.
    Or BitOr bitor,
}

macro_rules! known_on_the_left {
    ($($known:ty: $($name:ident $trait:ident $method:ident),*;)*) => {$($(
        impl $trait<Deferred<$known>> for $known {
            type Output = Expression<Binary<$known, Deferred<$known>, $name>>;
            fn $method(self, other: Deferred<$known>) -> Self::Output {
                binary(self, other)
            }
        }

        impl<E: Input<Value = $known>> $trait<Expression<E>> for $known {
            type Output = Expression<Binary<$known, E, $name>>;
            fn $method(self, other: Expression<E>) -> Self::Output {
                binary(self, other.0)
            }
        }
    )*)*};
}
known_on_the_left! {
    u32: Plus Add add, Minus Sub sub, Times Mul mul;
    u64: Plus Add add, Minus Sub sub, Times Mul mul;
    usize: Plus Add add, Minus Sub sub, Times Mul mul;
    i32: Plus Add add, Minus Sub sub, Times Mul mul;
    i64: Plus Add add, Minus Sub sub, Times Mul mul;
    f64: Plus Add add, Minus Sub sub, Times Mul mul;
}

macro_rules! unary {
    ($($trait:ident $method:ident),*) => {$(
        impl<T: $trait + Clone + 'static> $trait for Deferred<T>
        where
            T::Output: 'static,
        {
            type Output = Expression<Map<Self, fn(T) -> T::Output>>;
            fn $method(self) -> Self::Output {
                Expression(Map { input: self, make: T::$method })
            }
        }

        impl<E: Input> $trait for Expression<E>
        where
            E::Value: $trait,
            <E::Value as $trait>::Output: 'static,
        {
            type Output = Expression<Map<E, fn(E::Value) -> <E::Value as $trait>::Output>>;
            fn $method(self) -> Self::Output {
                Expression(Map { input: self.0, make: E::Value::$method })
            }
        }
    )*};
}
unary! { Not not, Neg neg }

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $method:ident $bound:ident $operator:tt),* $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl<T: $bound + 'static> Operator<T, T> for $name {
                type Output = bool;
                fn apply(first: T, second: T) -> bool {
                    first $operator second
                }
            }
        )*

        impl<T> Deferred<T> {
            $($(#[$doc])*
            pub fn $method<R: Operand<T>>(self, other: R) -> Expression<Binary<Self, R::Input, $name>> {
                binary(self, other.into_input())
            })*
        }

        impl<E: Input> Expression<E> {
            $($(#[$doc])*
            pub fn $method<R: Operand<E::Value>>(self, other: R) -> Expression<Binary<E, R::Input, $name>> {
                binary(self.0, other.into_input())
            })*
        }
    };
}
comparisons! {
    /// True if the two are equal.
    Equals equals PartialEq ==,
    /// True if the two are different.
    Differs differs PartialEq !=,
    /// True if the first is less.
    LessThan less_than PartialOrd <,
    /// True if the first is at most the second.
    AtMost at_most PartialOrd <=,
    /// True if the first is greater.
    GreaterThan greater_than PartialOrd >,
    /// True if the first is at least the second.
    AtLeast at_least PartialOrd >=,
}
