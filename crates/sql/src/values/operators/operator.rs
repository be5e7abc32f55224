//! Operators by name, and what they are for two types.

use crate::error::SqlError;
use crate::values::{Datum, Type};

macro_rules! operators {
    ($($(#[$attribute:meta])* $operator:ident = $name:literal;)*) => {
        /// An operator between two values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operator {
            $($(#[$attribute])* #[doc = concat!("`", $name, "`.")] $operator,)*
        }

        impl Operator {
            /// All operators.
            pub const ALL: &'static [Operator] = &[$(Operator::$operator),*];

            /// Its name in `pg_operator`: `LIKE` is `~~`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$operator => $name,)* }
            }
        }
    };
}

operators! {
    Add = "+";
    Subtract = "-";
    Multiply = "*";
    Divide = "/";
    Remainder = "%";
    Power = "^";
    Concatenate = "||";
    Equal = "=";
    NotEqual = "<>";
    Less = "<";
    LessOrEqual = "<=";
    Greater = ">";
    GreaterOrEqual = ">=";
    /// A regular expression matches.
    Matches = "~";
    /// A regular expression matches without regard to case.
    MatchesAnyCase = "~*";
    /// A regular expression does not match.
    NotMatches = "!~";
    /// A regular expression does not match without regard to case.
    NotMatchesAnyCase = "!~*";
    /// `LIKE`.
    Like = "~~";
    /// `NOT LIKE`.
    NotLike = "!~~";
    /// `ILIKE`.
    LikeAnyCase = "~~*";
    /// `NOT ILIKE`.
    NotLikeAnyCase = "!~~*";
    BitAnd = "&";
    BitOr = "|";
    BitXor = "#";
    ShiftLeft = "<<";
    ShiftRight = ">>";
    /// An array contains all elements of another.
    Contains = "@>";
    /// All elements of an array are in another.
    ContainedBy = "<@";
    /// Arrays have an element in common.
    Overlaps = "&&";
}

impl Operator {
    /// The operator of a name as `pg_operator` has it, or as SQL writes it: `LIKE`, `NOT ILIKE`, `!=`.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "!=" => Self::NotEqual,
            "LIKE" => Self::Like,
            "NOT LIKE" => Self::NotLike,
            "ILIKE" => Self::LikeAnyCase,
            "NOT ILIKE" => Self::NotLikeAnyCase,
            name => return Self::ALL.iter().copied().find(|known| known.name() == name),
        })
    }

    /// True for `=`, `<>`, `<`, `<=`, `>` and `>=`.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::LessOrEqual
                | Self::Greater
                | Self::GreaterOrEqual
        )
    }

    /// The comparison that says the same of the operands in the other order; none if it is no comparison.
    pub fn commuted(self) -> Option<Self> {
        Some(match self {
            Self::Equal | Self::NotEqual => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            _ => return None,
        })
    }

    /// The comparison that is true where this one is false; none if it is no comparison.
    pub fn negated(self) -> Option<Self> {
        Some(match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            _ => return None,
        })
    }
}

/// A function that computes an operator's result. No operand is null.
pub type BinaryFunction = fn(&Datum, &Datum) -> Result<Datum, SqlError>;

/// An operator for two types: what the operands are cast to, and what the result is.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The operator.
    pub operator: Operator,
    /// The type that the left operand is cast to. The cast may be one that is only explicit otherwise, as of a number to a text by `||`.
    pub left: Type,
    /// The type that the right operand is cast to.
    pub right: Type,
    /// The type of the result.
    pub result: Type,
    pub(crate) call: BinaryFunction,
}

impl Operation {
    /// The result for operands of the types [`left`](Self::left) and [`right`](Self::right). It is null if one of them is, except that
    /// `||` takes null for an empty array.
    ///
    /// # Errors
    ///
    /// Those of the operator: overflow (22003, 22008), division by zero (22012), a malformed pattern (2201B, 22025).
    #[inline]
    pub fn apply(&self, left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
        if left.is_null() || right.is_null() {
            return if self.operator == Operator::Concatenate {
                self.concatenate_null(left, right)
            } else {
                Ok(Datum::Null)
            };
        }
        (self.call)(left, right)
    }

    /// Arrays take null as an element, and a missing array as an empty one.
    fn concatenate_null(&self, left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
        match (self.left.element().is_some(), self.right.element().is_some()) {
            (false, false) => Ok(Datum::Null),
            (true, true) => Ok(if left.is_null() { right.clone() } else { left.clone() }),
            (true, false) if left.is_null() => Ok(Datum::array(vec![right.clone()])),
            (false, true) if right.is_null() => Ok(Datum::array(vec![left.clone()])),
            _ => (self.call)(left, right),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Operator;

    #[test]
    fn names_lead_to_their_operators() {
        for operator in Operator::ALL {
            assert_eq!(Operator::of_name(operator.name()), Some(*operator));
        }
        assert_eq!(Operator::of_name("NOT LIKE"), Some(Operator::NotLike));
        assert_eq!(Operator::of_name("<->"), None);
        assert_eq!(Operator::Less.commuted(), Some(Operator::Greater));
        assert_eq!(Operator::Less.negated(), Some(Operator::GreaterOrEqual));
    }
}
