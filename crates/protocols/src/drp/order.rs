//! The order in which an attempt joins its lines: by rank, and by address where ranks are equal.
//!
//! Ranks and positions are packed into words, because words are sorted several times faster than structures. If a
//! rank does not fit beside its position, its low bits are left out. If that makes two ranks equal, the whole ranks
//! are sorted.

use hotrow_core::ItemId;

/// A segment whose line an attempt has to join.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) rank: u64,
    pub(super) item: ItemId,
    /// True to join as a writer although nothing has announced a write.
    pub(super) writes: bool,
}

/// The plan of an attempt: its segments in the order of first touch, and the order in which to join them.
#[derive(Debug, Default)]
pub(super) struct Plan {
    planned: Vec<Planned>,
    /// Indexes into `planned`, in sorted order.
    order: Vec<u64>,
}

impl Plan {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.planned.clear();
        self.order.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    #[inline(always)]
    pub(super) fn add(&mut self, planned: Planned) {
        self.planned.push(planned);
    }

    /// Returns one entry in sorted order.
    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> Option<Planned> {
        self.order.get(at).map(|position| self.planned[*position as usize])
    }

    /// Sorts everything. `address` returns the address of an item's segment.
    pub(super) fn sort(&mut self, address: impl Fn(ItemId) -> usize) {
        let Self { planned, order } = self;
        let position_bits = u64::BITS - (planned.len() as u64).leading_zeros();
        let (lowest, highest) = planned
            .iter()
            .fold((u64::MAX, 0), |(lowest, highest), one| (one.rank.min(lowest), one.rank.max(highest)));
        let rank_bits = u64::BITS - highest.wrapping_sub(lowest).leading_zeros();
        let left_out = (rank_bits + position_bits).saturating_sub(u64::BITS);
        order.clear();
        order.extend(
            planned
                .iter()
                .zip(0..)
                .map(|(one, position)| ((one.rank - lowest) >> left_out) << position_bits | position),
        );
        order.sort_unstable();
        let same = order.windows(2).any(|pair| (pair[0] ^ pair[1]) >> position_bits == 0);
        let mask = (1 << position_bits) - 1;
        order.iter_mut().for_each(|word| *word &= mask);
        if same {
            order.sort_unstable_by_key(|position| {
                let Planned { rank, item, .. } = planned[*position as usize];
                (rank, address(item))
            });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Returns the items' numbers in the order of the plan. An item's address is 1,000 less its number.
    fn sorted(ranks: &[u64]) -> Vec<usize> {
        // SAFETY: used for no attempt.
        let item = |at| unsafe { ItemId::from_position(at) };
        let mut plan = Plan::default();
        for _ in 0..2 {
            plan.clear();
            for (at, rank) in ranks.iter().enumerate() {
                plan.add(Planned { rank: *rank, item: item(at), writes: false });
            }
            plan.sort(|id| 1_000 - (0..ranks.len()).position(|at| item(at) == id).unwrap());
        }
        let planned = (0..).map_while(|at| plan.get(at)).map(|planned| planned.item);
        planned.map(|id| (0..ranks.len()).position(|at| item(at) == id).unwrap()).collect()
    }

    #[test]
    fn ranks_come_in_their_order_and_equal_ones_in_that_of_addresses() {
        assert_eq!(sorted(&[]), []);
        assert_eq!(sorted(&[7]), [0]);
        assert_eq!(sorted(&[5, 3, 9, 3, 3]), [4, 3, 1, 0, 2]);
        assert_eq!(sorted(&[u64::MAX - 2, 0, u64::MAX - 3, 1, 0]), [4, 1, 3, 2, 0]);
    }

    #[test]
    fn ranks_too_long_to_be_packed_are_in_order_too() {
        let ranks: Vec<u64> =
            (0..100u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 3 * 24)).collect();
        let mut expected: Vec<usize> = (0..ranks.len()).collect();
        expected.sort_by_key(|at| (ranks[*at], 1_000 - at));
        assert_eq!(sorted(&ranks), expected);
    }
}
