//! Each committed attempt against itself: its operations on one key agree with the order of its own program.
//!
//! Deferred operations run at the commit, and not all in the order in which the program has them. Under protocols that
//! defer, a recorder says of what follows which place its operation has in the program
//! ([`Event::Operation`](hotrow_core::history::Event::Operation)), and records changes and looks at own changes. Two
//! rules must hold for each key:
//!
//! 1. Of two operations of which at least one changes the key, the one that comes first in the program runs first.
//!    Otherwise an insertion may find the key that a later one has inserted.
//! 2. What reads the key after a change of it finds that change. A read of what others have written is allowed only
//!    together with a look at the own change, as that of a counter to which the attempt has added.
//!
//! Attempts without effect are not judged: one that is about to be aborted may be so because it cannot keep the order.
//! Nor are range reads and predicates.

use crate::attempts::{Attempts, key_name, walk};
use crate::report::Dependency;
use hotrow_core::history::{Event, History, ReadKind};

/// The operations of the current attempt on one key so far.
#[derive(Debug, Clone, Copy)]
struct Touched {
    attempt: u32,
    /// The highest places of operations that looked and of those that changed, each plus one; 0 for none.
    looked: u32,
    changed: u32,
}

/// A key that an attempt has not treated in its own order.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) attempt: u32,
    pub(crate) dependency: Dependency,
}

/// Looks for violations of both rules, at most one for each key of an attempt and rule.
pub(crate) fn violations(history: &History, attempts: &Attempts) -> Vec<Violation> {
    let blank = Touched { attempt: u32::MAX, looked: 0, changed: 0 };
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
            // Once is enough.
            (touched.looked, touched.changed) = (0, 0);
        }
        if let Event::Read { version, .. } = event
            && touched.changed > 0
            && looked_at_own != Some(key)
        {
            let dependency = Dependency::OwnChangeUnseen { key: key_name(history, key), version };
            found.push(Violation { attempt, dependency });
        }
        let last = if changes { &mut touched.changed } else { &mut touched.looked };
        *last = (*last).max(place);
    });
    found
}
