//! Counters: columns of integers that are added to at the commit.
//!
//! A column that is a [group](hotrow_core::Value) of its own is a counter, and its key has the number as 8 bytes, the lowest first: an
//! `i64`, which for a column of type `u64` is less by 2⁶³.

use hotrow_core::Addend;
use hotrow_stored::{Kind, Malformed, Reader, Stored, Writer};
use std::ops::RangeInclusive;

/// The number that a counter's value is.
pub(crate) fn as_number(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_le_bytes)
}

/// The value of a counter after an addition; `None` if it is none, or the sum is not among the numbers.
pub(crate) fn sum(value: &[u8], amount: i64, within: &RangeInclusive<i64>) -> Option<Vec<u8>> {
    let sum = as_number(value)?.checked_add(amount)?;
    within.contains(&sum).then(|| sum.to_le_bytes().to_vec())
}

/// The type of a counter's column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterType {
    /// The number of which the value is 0.
    base: i128,
    least: i128,
    greatest: i128,
    put: fn(i128, &mut Writer<'_>),
    get: fn(&mut Reader<'_>) -> Result<i128, Malformed>,
}

impl CounterType {
    fn of<F: Addend + Stored + TryFrom<i128> + Default>() -> Self {
        Self {
            base: if F::GREATEST > i128::from(i64::MAX) { 1 << 63 } else { 0 },
            least: F::LEAST,
            greatest: F::GREATEST,
            put: |number, to| F::try_from(number).unwrap_or_default().put(to),
            get: |from| Ok(F::get(from)?.number()),
        }
    }

    /// The type of columns that are stored as this; `None` if they are no counters.
    pub(crate) fn stored_as(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::U8 => Self::of::<u8>(),
            Kind::U16 => Self::of::<u16>(),
            Kind::U32 => Self::of::<u32>(),
            Kind::U64 => Self::of::<u64>(),
            Kind::I8 => Self::of::<i8>(),
            Kind::I16 => Self::of::<i16>(),
            Kind::I32 => Self::of::<i32>(),
            Kind::I64 => Self::of::<i64>(),
            _ => return None,
        })
    }

    /// The counter's value, by the column's stored bytes.
    pub(crate) fn value(&self, column: &[u8]) -> Result<Vec<u8>, Malformed> {
        let number = Reader::read(column, self.get)? - self.base;
        let number = i64::try_from(number).map_err(|_| Malformed::new("a counter is too large"))?;
        Ok(number.to_le_bytes().to_vec())
    }

    /// The column's stored bytes, by the counter's value.
    pub(crate) fn column(&self, value: &[u8]) -> Result<Vec<u8>, Malformed> {
        let number = as_number(value).ok_or_else(|| Malformed::new("a counter is no number"))?;
        let number = i128::from(number) + self.base;
        if !(self.least..=self.greatest).contains(&number) {
            return Err(Malformed::new("a counter is too large"));
        }
        let mut column = Vec::new();
        Writer::write(&mut column, |to| (self.put)(number, to)).map_err(Malformed::new)?;
        Ok(column)
    }

    /// An addition to such a column, if the amount is not too large.
    pub(crate) fn addition(&self, amount: i128) -> Option<Addition> {
        let value = |number: i128| i64::try_from(number - self.base).ok();
        let within = value(self.least)?..=value(self.greatest)?;
        Some(Addition { amount: i64::try_from(amount).ok()?, within })
    }

    /// A subtraction from such a column, as far as it is at least the amount.
    pub(crate) fn subtraction(&self, amount: i128) -> Option<Addition> {
        let Addition { amount, within } = self.addition(amount.checked_neg()?)?;
        let zero = i64::try_from(-self.base).ok()?;
        Some(Addition { amount, within: zero.max(*within.start())..=*within.end() })
    }
}

/// An amount that is added to a counter, if the sum is in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addition {
    pub(crate) amount: i64,
    pub(crate) within: RangeInclusive<i64>,
}

impl Addition {
    /// Both additions, one after the other. `None` if they are not one addition that is made if and only if both are.
    pub(crate) fn then(&self, next: &Self) -> Option<Self> {
        let amount = self.amount.checked_add(next.amount)?;
        // The first sum is the last one without the second amount.
        let shifted = |bound: i64| i128::from(bound) + i128::from(next.amount);
        let least = shifted(*self.within.start()).max(i128::from(*next.within.start()));
        let most = shifted(*self.within.end()).min(i128::from(*next.within.end()));
        let within = i64::try_from(least).ok()?..=i64::try_from(most).ok()?;
        (!within.is_empty()).then_some(Self { amount, within })
    }

    /// The sum with a counter's value; `None` if there is none.
    pub(crate) fn to(&self, value: &[u8]) -> Option<Vec<u8>> {
        sum(value, self.amount, &self.within)
    }
}
