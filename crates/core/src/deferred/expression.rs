//! Operators on deferred values: `balance - amount`, `(stock - ordered).at_least(0)`.
//!
//! An expression is an [`Input`]: it is computed where it is used, from results that are known then, and has no place
//! of its own. [`Transaction::compute`](crate::Transaction::compute) gives it one.

use super::{Deferred, Input, Results};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Mul, Sub};

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
}

/// What may stand on the right of an operator: a number, a deferred value, an expression.
pub trait Operand<T> {
    /// What the expression keeps of it.
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

/// A number known now.
#[derive(Debug, Clone, Copy)]
pub struct Constant<T>(T);

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
}

macro_rules! constants {
    ($($number:ty),*) => {$(
        impl Operand<$number> for $number {
            type Input = Constant<$number>;
            fn into_input(self) -> Constant<$number> {
                Constant(self)
            }
        }
    )*};
}
constants!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

/// What is done with two values.
pub trait Operator<A, B>: 'static {
    /// What comes out.
    type Output: 'static;
    /// Does it.
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
}

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
    /// Whether the two are equal.
    Equals equals PartialEq ==,
    /// Whether the first is less.
    LessThan less_than PartialOrd <,
    /// Whether the first is at most the second.
    AtMost at_most PartialOrd <=,
    /// Whether the first is greater.
    GreaterThan greater_than PartialOrd >,
    /// Whether the first is at least the second.
    AtLeast at_least PartialOrd >=,
}
