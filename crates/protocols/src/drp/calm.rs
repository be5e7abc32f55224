//! The choice between deferring and running at once, by how often a worker's transactions meet others.
//!
//! Recording an operation and running it later costs about as much as the operation. That pays where transactions meet
//! in lines. A worker whose last transactions met nobody runs the next one's operations at once: it is wild, and is
//! certified like any other wild one (drp §4.2). If such an attempt is aborted, the next ones defer.
//!
//! Deferred operations hold lines for longer, so transactions that defer meet others where those that run at once would not. So the
//! number of quiet transactions that is required goes by the attempts that ran at once: it doubles with each that meets somebody, up
//! to the variant's number, and loses a quarter with each that does not. It stays low as long as fewer than about a quarter of
//! them meet somebody, and running at once pays up to about a half.

use std::mem;

/// The number of transactions in a row that must have met nobody, at first and at most, where the variant does not say.
pub(super) const CALM_AFTER: u32 = 16;

/// How long a worker has met nobody.
#[derive(Debug, Default)]
pub(super) struct Calm {
    /// The number of transactions in a row that met nobody; 0 during an attempt, so that an aborted one begins anew.
    transactions: u32,
    /// That number when the attempt began.
    before: u32,
    /// The part of the variant's number that is not required any more.
    waived: u32,
    is_at_once: bool,
    has_met: bool,
}

impl Calm {
    /// Begins an attempt. True if it is to run its operations at once.
    #[inline(always)]
    pub(super) fn begin(&mut self, calm_after: Option<u32>, may_run_at_once: bool) -> bool {
        (self.before, self.has_met) = (mem::take(&mut self.transactions), false);
        let Some(most) = calm_after else { return false };
        let required = most.saturating_sub(self.waived);
        if self.is_at_once {
            let next = match self.before {
                0 => most.min(required.max(1).saturating_mul(2)),
                _ => (required - required.div_ceil(4)).max(required.min(1)),
            };
            self.waived = most - next;
        }
        self.is_at_once = may_run_at_once && self.before >= most - self.waived;
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
    fn the_more_of_those_that_run_at_once_meet_nobody_the_fewer_quiet_ones_are_required() {
        let mut calm = Calm::default();
        let mut deferred_before_one_at_once = |meets: bool| {
            let mut deferred = 0;
            loop {
                let at_once = calm.begin(Some(16), true);
                if at_once && meets {
                    calm.meet();
                }
                calm.end();
                if at_once {
                    return deferred;
                }
                deferred += 1;
            }
        };
        assert_eq!(deferred_before_one_at_once(false), 16);
        assert!((0..99).all(|_| deferred_before_one_at_once(false) == 0));
        let after_meetings = [(); 6].map(|()| deferred_before_one_at_once(true));
        assert_eq!(after_meetings, [0, 2, 4, 8, 16, 16]);
    }

    #[test]
    fn the_largest_number_of_quiet_transactions_is_a_number_like_others() {
        let required = u32::MAX / 2 + 2;
        let mut calm = Calm { transactions: required, waived: u32::MAX - required, ..Calm::default() };
        assert!(calm.begin(Some(u32::MAX), true));
        calm.meet();
        calm.end();
        assert!(!calm.begin(Some(u32::MAX), true));
        assert_eq!(calm.waived, 0, "twice as many are more than there are");
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
