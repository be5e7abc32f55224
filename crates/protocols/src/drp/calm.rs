//! The choice between deferring and running at once, by how often a worker's transactions meet others.
//!
//! Recording an operation and running it later costs about as much as the operation. That pays where transactions meet
//! in lines. A worker whose last transactions met nobody runs the next one's operations at once: it is wild, and is
//! certified like any other wild one (drp §4.2). If such an attempt is aborted, the next ones defer.

use std::mem;

/// The number of transactions in a row that must have met nobody, where the variant does not say.
pub(super) const CALM_AFTER: u32 = 16;

/// How long a worker has met nobody.
#[derive(Debug, Default)]
pub(super) struct Calm {
    /// The number of transactions in a row that met nobody; 0 during an attempt, so that an aborted one begins anew.
    transactions: u32,
    /// That number when the attempt began.
    before: u32,
    is_at_once: bool,
    has_met: bool,
}

impl Calm {
    /// Begins an attempt. True if it is to run its operations at once.
    #[inline(always)]
    pub(super) fn begin(&mut self, calm_after: Option<u32>, may_run_at_once: bool) -> bool {
        (self.before, self.has_met) = (mem::take(&mut self.transactions), false);
        self.is_at_once = may_run_at_once && calm_after.is_some_and(|calm_after| self.before >= calm_after);
        self.is_at_once
    }

    /// True if the attempt runs its operations at once because it is calm.
    #[inline(always)]
    pub(super) fn is_at_once(&self) -> bool {
        self.is_at_once
    }

    /// Notes that the attempt has met another transaction.
    #[inline]
    pub(super) fn meet(&mut self) {
        self.has_met = true;
    }

    /// Notes that the attempt commits, or that its rollback counts.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        if !self.has_met {
            self.transactions = self.before.saturating_add(1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn operations_run_at_once_after_enough_transactions_that_met_nobody() {
        let mut calm = Calm::default();
        let mut transaction = |meets: bool, ends: bool| {
            let at_once = calm.begin(Some(2), true);
            if meets {
                calm.meet();
            }
            if ends {
                calm.end();
            }
            at_once
        };
        let quiet = [(); 3].map(|()| transaction(false, true));
        assert_eq!(quiet, [false, false, true]);
        assert!(transaction(true, true), "it meets another one while it runs");
        assert!(!transaction(false, true) && !transaction(false, true));
        assert!(transaction(false, false), "it is aborted");
        assert!(!transaction(false, true));
    }

    #[test]
    fn where_no_number_is_given_all_operations_are_deferred() {
        let mut calm = Calm::default();
        for _ in 0..2 * CALM_AFTER {
            assert!(!calm.begin(None, true));
            calm.end();
        }
        assert!(!calm.begin(Some(CALM_AFTER), false));
        calm.end();
        assert!(calm.begin(Some(CALM_AFTER), true));
    }
}
