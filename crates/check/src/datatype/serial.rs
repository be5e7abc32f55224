//! The search for a serial order that explains what transactions have learned.

use super::Datatype;

/// The course of one transaction.
pub(super) struct Course<D: Datatype> {
    /// Its operations and what they gave, as far as it got.
    pub(super) done: Vec<(D::Operation, D::Output)>,
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

    /// Runs it on the model; false if an operation gives something else there.
    fn is_explained(&self, model: &mut D::Model) -> bool {
        self.done.iter().all(|(operation, output)| D::apply(model, operation) == *output)
    }
}

/// True if some order of the transactions in `left`, which keeps to the order of those that did not overlap, explains what
/// they have learned, and leads from `state` to `after`. Those without effect change nothing.
pub(super) fn is_serial<D: Datatype>(
    courses: &[Course<D>],
    left: &[usize],
    state: &D::Model,
    after: &D::Model,
) -> bool {
    if left.is_empty() {
        return state == after;
    }
    left.iter().any(|&next| {
        let course = &courses[next];
        if left.iter().any(|other| courses[*other].ended < course.began) {
            return false;
        }
        let mut made = state.clone();
        if !course.is_explained(&mut made) {
            return false;
        }
        let rest: Vec<_> = left.iter().copied().filter(|other| *other != next).collect();
        is_serial(courses, &rest, if course.is_committed { &made } else { state }, after)
    })
}
