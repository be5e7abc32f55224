//! The search for a serial order that explains what transactions have learned.

use super::Datatype;
use hotrow_core::{Abort, Protocol, SingleSegment, Transaction};
use std::fmt;

/// One step of a transaction.
pub(super) enum Step<D: Datatype> {
    /// An operation of the datatype.
    Do(D::Operation),
    /// An operation in a part of the body that is undone. What it has given still counts.
    Undo(D::Operation),
    /// A read of the witness: a register beside the object. It shows if the two are seen in one state.
    Get,
    /// A write of the witness.
    Set(u64),
}

impl<D: Datatype> Clone for Step<D> {
    fn clone(&self) -> Self {
        match self {
            Self::Do(operation) => Self::Do(operation.clone()),
            Self::Undo(operation) => Self::Undo(operation.clone()),
            Self::Get => Self::Get,
            Self::Set(value) => Self::Set(*value),
        }
    }
}

impl<D: Datatype> fmt::Debug for Step<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Do(operation) => operation.fmt(f),
            Self::Undo(operation) => write!(f, "undone {operation:?}"),
            Self::Get => f.write_str("witness"),
            Self::Set(value) => write!(f, "witness = {value}"),
        }
    }
}

/// The knowledge that a step gives a transaction.
pub(super) enum Learned<D: Datatype> {
    Output(D::Output),
    Witness(u64),
    Nothing,
}

impl<D: Datatype> PartialEq for Learned<D> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Output(one), Self::Output(other)) => one == other,
            (Self::Witness(one), Self::Witness(other)) => one == other,
            (Self::Nothing, Self::Nothing) => true,
            _ => false,
        }
    }
}

impl<D: Datatype> fmt::Debug for Learned<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(output) => output.fmt(f),
            Self::Witness(value) => value.fmt(f),
            Self::Nothing => f.write_str("()"),
        }
    }
}

/// The plain model of the object and its witness.
pub(super) type Models<D> = (<D as Datatype>::Model, u64);

impl<D: Datatype> Step<D> {
    /// Does the step.
    pub(super) fn run<P: Protocol>(
        &self,
        object: &D::Object<P>,
        witness: &SingleSegment<u64, P>,
        tx: &mut Transaction<'_, P>,
    ) -> Result<Learned<D>, Abort> {
        match self {
            Self::Do(operation) => D::operate(object, tx, operation).map(Learned::Output),
            Self::Undo(operation) => {
                let mut output = None;
                let part = tx.savepoint(|tx| {
                    output = Some(D::operate(object, tx, operation)?);
                    Err::<(), _>(Abort::because("undone"))
                })?;
                match (output, part) {
                    (Some(output), _) => Ok(Learned::Output(output)),
                    (None, Err(abort)) => Err(abort),
                    (None, Ok(())) => unreachable!("the part fails"),
                }
            }
            Self::Get => witness.enter(tx)?.read(|value| Learned::Witness(*value)),
            Self::Set(value) => witness.enter(tx)?.write(*value).map(|()| Learned::Nothing),
        }
    }

    /// Does the step on the models.
    fn apply(&self, models: &mut Models<D>) -> Learned<D> {
        match self {
            Self::Do(operation) => Learned::Output(D::apply(&mut models.0, operation)),
            Self::Undo(operation) => Learned::Output(D::apply(&mut models.0.clone(), operation)),
            Self::Get => Learned::Witness(models.1),
            Self::Set(value) => {
                models.1 = *value;
                Learned::Nothing
            }
        }
    }
}

/// The course of one transaction.
pub(super) struct Course<D: Datatype> {
    /// Its steps and what they gave, as far as it got.
    pub(super) done: Vec<(Step<D>, Learned<D>)>,
    pub(super) is_committed: bool,
    /// When its first step began, and its last one ended.
    pub(super) began: u64,
    pub(super) ended: u64,
}

impl<D: Datatype> Course<D> {
    pub(super) fn describe(&self) -> String {
        let Self { done, is_committed, began, ended } = self;
        let end = if *is_committed { "committed" } else { "without effect" };
        format!("{began}..{ended} {end}: {done:?}")
    }

    /// Runs it on the models; false if a step gives something else there.
    fn is_explained(&self, models: &mut Models<D>) -> bool {
        self.done.iter().all(|(step, learned)| step.apply(models) == *learned)
    }
}

/// True if some order of the transactions in `left` explains what they have learned, and leads from `state` to `after`. Under a
/// `strict` protocol it keeps to the order of those that did not overlap. Those without effect change nothing.
pub(super) fn is_serial<D: Datatype>(
    courses: &[Course<D>],
    left: &[usize],
    strict: bool,
    state: &Models<D>,
    after: &Models<D>,
) -> bool {
    if left.is_empty() {
        return state == after;
    }
    left.iter().any(|&next| {
        let course = &courses[next];
        if strict && left.iter().any(|other| courses[*other].ended < course.began) {
            return false;
        }
        let mut made = state.clone();
        if !course.is_explained(&mut made) {
            return false;
        }
        let rest: Vec<_> = left.iter().copied().filter(|other| *other != next).collect();
        is_serial(courses, &rest, strict, if course.is_committed { &made } else { state }, after)
    })
}
