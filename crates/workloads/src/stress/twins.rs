//! Twins: two objects that each transaction writes together, with equal values. A transaction that finds them
//! different asks for a rollback or panics. No protocol may report that, whatever an attempt has seen: the core
//! validates what was read before it believes a rollback or a panic.

use super::values::{Boxed, Inline, ReadDigest};
use hotrow::sync::random::Random;
use hotrow::{Abort, Deferred, Engine, Protocol, TBox, Transaction};
use std::panic::resume_unwind;

/// An operation on the twins of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnTwins {
    /// Compares them.
    Compare,
    /// Sets both, blindly.
    Set,
    /// Compares them and sets both.
    Change,
}

const LOOKS: &[(OnTwins, &str, &str)] = &[(OnTwins::Compare, "CompareTwins", "CompareTwinsLater")];
const WRITES: &[(OnTwins, &str, &str)] =
    &[(OnTwins::Set, "SetTwins", "SetTwinsLater"), (OnTwins::Change, "ChangeTwins", "ChangeTwinsLater")];

/// Message of a panic over different twins.
pub(super) const DIFFERENT: &str = "twins were different, and the panic was believed";

/// The ending of an attempt that finds twins different.
fn fail(seen: &ReadDigest, panics: bool) -> Abort {
    if panics {
        // A resumed panic prints no message.
        resume_unwind(Box::new(DIFFERENT));
    }
    seen.different.set(true);
    Abort::rollback()
}

/// The twins of one key: an inline and a boxed value.
pub(super) struct Twins<P: Protocol> {
    first: TBox<Inline, P>,
    second: TBox<Boxed, P>,
}

impl<P: Protocol> Twins<P> {
    pub(super) fn new(engine: &Engine<P>, key: u32) -> Self {
        Self {
            first: TBox::named(engine, format!("first twin{key}"), Inline::new(0)),
            second: TBox::named(engine, format!("second twin{key}"), Boxed::new(0)),
        }
    }
}

impl OnTwins {
    pub(super) fn draw(random: &mut Random, writes: bool, later: bool) -> (Self, &'static str) {
        let list = if writes { WRITES } else { LOOKS };
        let (what, name, its_name_later) = list[random.below(list.len() as u64) as usize];
        (what, if later { its_name_later } else { name })
    }

    /// Runs the operation. `new` is the value to write. An odd `value` makes different twins a panic.
    pub(super) fn run<P: Protocol>(
        self,
        on: &Twins<P>,
        tx: &mut Transaction<'_, P>,
        seen: &mut ReadDigest,
        (new, value): (u64, u32),
    ) -> Result<(), Abort> {
        if self != OnTwins::Set {
            // Either may be read first: another transaction may write both in between.
            let (first, second);
            if value & 2 == 0 {
                first = on.first.read(tx, Inline::whole_or_torn)?;
                second = on.second.read(tx, Boxed::whole_or_torn)?;
            } else {
                second = on.second.read(tx, Boxed::whole_or_torn)?;
                first = on.first.read(tx, Inline::whole_or_torn)?;
            }
            seen.torn += u64::from(first.is_none()) + u64::from(second.is_none());
            if first != second {
                return Err(fail(seen, value & 1 == 1));
            }
            seen.number(first.unwrap_or_default());
        }
        if self != OnTwins::Compare {
            on.first.set(tx, Inline::new(new))?;
            on.second.set(tx, Boxed::new(new))?;
        }
        Ok(())
    }

    /// Defers the operation. The value to write is computed from `before`. Returns the twins' value, if it was compared.
    pub(super) fn run_later<P: Protocol>(
        self,
        on: &Twins<P>,
        tx: &mut Transaction<'_, P>,
        seen: &ReadDigest,
        (new, value): (u64, u32),
        before: Deferred<u64>,
    ) -> Result<Option<Deferred<u64>>, Abort> {
        let written = move |sum: u64| sum.wrapping_add(new);
        let (first, second) = match self {
            OnTwins::Compare => {
                (on.first.defer_read(tx, Inline::whole)?, on.second.defer_read(tx, Boxed::whole)?)
            }
            OnTwins::Set => {
                let first = tx.compute(before, move |sum| Inline::new(written(sum)))?;
                let second = tx.compute(before, move |sum| Boxed::new(written(sum)))?;
                on.first.defer_set(tx, first)?;
                on.second.defer_set(tx, second)?;
                return Ok(None);
            }
            OnTwins::Change => {
                let first = on.first.defer_update(tx, before, move |twin, sum| {
                    std::mem::replace(twin, Inline::new(written(sum))).whole()
                })?;
                let second = on.second.defer_update(tx, before, move |twin, sum| {
                    std::mem::replace(twin, Boxed::new(written(sum))).whole()
                })?;
                (first, second)
            }
        };
        let different = seen.different.clone();
        let panics = value & 1 == 1;
        let are_equal = tx.compute((first, second), move |(first, second)| {
            if first != second && panics {
                resume_unwind(Box::new(DIFFERENT));
            }
            different.set(different.get() || first != second);
            first == second
        })?;
        tx.require(are_equal)?;
        Ok(Some(first))
    }
}
