//! Check of each committed attempt against itself: its operations on one key must agree with the order of its
//! program.
//!
//! Deferred operations run at the commit, and not all in the order of the program. Under a protocol that defers, a
//! recorder notes the place in the program of the operation to which the next events belong
//! ([`Event::Operation`](hotrow_core::history::Event::Operation)). It also records changes, and reads of own
//! changes. Two rules must hold for each key:
//!
//! 1. Of two operations of which at least one changes the key, the one that comes first in the program runs first.
//!    Otherwise an insertion may find the key that a later one has inserted.
//! 2. A read of the key after a change of it sees this change. A read of another's version is allowed only together
//!    with a read of the own change, as in a counter to which the attempt has added.
//!
//! A change counts as the attempt's own up to its installation. An attempt that commits in pieces may read the key
//! after that as others do; the graph judges this read.
//!
//! Attempts without effect are not judged: such an attempt may be aborted just because it cannot keep the order.
//! Range reads and predicates are not judged either.

use crate::attempts::{Attempts, key_name, walk};
use crate::report::Dependency;
use hotrow_core::history::{Event, History, ReadKind};

/// Operations of the current attempt on one key so far.
#[derive(Debug, Clone, Copy)]
struct Touched {
    attempt: u32,
    /// Highest places of the operations that read and of those that changed the key, each plus one; 0 for none.
    looked: u32,
    changed: u32,
    /// True if a change was recorded. An intended write may have been undone alone, so it need not be seen.
    has_change: bool,
}

/// A violation of an attempt's own order on one key.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) attempt: u32,
    pub(crate) dependency: Dependency,
}

/// Finds violations of both rules, at most one per attempt, key and rule.
pub(crate) fn violations(history: &History, attempts: &Attempts) -> Vec<Violation> {
    let blank = Touched { attempt: u32::MAX, looked: 0, changed: 0, has_change: false };
    let mut keys = vec![blank; history.keys.len()];
    let mut found = Vec::new();
    let (mut current, mut place, mut own) = (u32::MAX, 1, None);
    walk(history, |attempt, event| {
        if attempt != current {
            (current, place) = (attempt, 1);
        }
        let looked_at_own = own.take();
        if !attempts.effective.get(attempt as usize).is_some_and(|effective| *effective) {
            return;
        }
        let (key, changes) = match event {
            Event::Operation { place: next } => {
                place = next.saturating_add(1);
                return;
            }
            Event::Read { key, kind: ReadKind::Value | ReadKind::Absent, .. } => (key, false),
            Event::OwnRead { key } => {
                own = Some(key);
                (key, false)
            }
            Event::Change { key } | Event::Intend { key } => (key, true),
            Event::Write { key, .. } => {
                let touched = &mut keys[key as usize];
                touched.has_change &= touched.attempt != attempt;
                return;
            }
            _ => return,
        };
        let touched = &mut keys[key as usize];
        if touched.attempt != attempt {
            *touched = Touched { attempt, ..blank };
        }
        let before = if changes { touched.looked.max(touched.changed) } else { touched.changed };
        if before > place {
            let (ran, then) = (before - 1, place - 1);
            let dependency = Dependency::OwnOrder { key: key_name(history, key), ran, then };
            found.push(Violation { attempt, dependency });
            // Resetting the places reports each violation only once.
            (touched.looked, touched.changed) = (0, 0);
        }
        if let Event::Read { version, .. } = event
            && touched.has_change
            && looked_at_own != Some(key)
        {
            let dependency = Dependency::OwnChangeUnseen { key: key_name(history, key), version };
            found.push(Violation { attempt, dependency });
        }
        touched.has_change |= matches!(event, Event::Change { .. });
        let last = if changes { &mut touched.changed } else { &mut touched.looked };
        *last = (*last).max(place);
    });
    found
}
