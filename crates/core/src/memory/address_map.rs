//! A map from an address to a number, in O(1), cleared in O(1).
//!
//! An open-addressed table beside an array whose elements have addresses. The table is stamped, not cleared: each
//! attempt has a number, and a slot with another attempt's number is empty (sto §3.7: a hash table that rarely needs
//! clearing). It is cleared only when the 32-bit stamp wraps, and doubles when half full.

/// Fibonacci hashing: each upper bit of the product depends on all lower bits of the address.
#[inline(always)]
pub(crate) fn spread(address: usize) -> u64 {
    (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[derive(Debug, Clone, Copy, Default)]
struct MapSlot {
    stamp: u32,
    index: u32,
}

#[derive(Debug)]
pub(crate) struct AddressMap {
    slots: Box<[MapSlot]>,
    stamp: u32,
    used: usize,
}

impl AddressMap {
    /// `capacity` must be a power of two.
    pub(crate) fn new(capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two());
        Self { slots: vec![MapSlot::default(); capacity].into_boxed_slice(), stamp: 1, used: 0 }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.slots.fill(MapSlot::default());
            self.stamp = 1;
        }
    }

    #[inline]
    fn first_slot(&self, address: usize) -> usize {
        (spread(address) >> 32) as usize & (self.slots.len() - 1)
    }

    /// Returns the number in an address's slot, or the empty slot where it would be.
    #[inline]
    fn probe(&self, address: usize, address_of: impl Fn(usize) -> usize) -> Result<u32, usize> {
        let mut at = self.first_slot(address);
        loop {
            // SAFETY: `at` is below the power of two that is the number of slots, as it was masked with it.
            let slot = unsafe { self.slots.get_unchecked(at) };
            if slot.stamp != self.stamp {
                return Err(at);
            }
            if address_of(slot.index as usize) == address {
                return Ok(slot.index);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Returns the number entered for an address; `address_of` returns the address of a number.
    #[inline]
    pub(crate) fn find(&self, address: usize, address_of: impl Fn(usize) -> usize) -> Option<u32> {
        self.probe(address, address_of).ok()
    }

    /// Returns the number entered for an address. If there is none, enters the next number (0, 1, 2, …) and returns it
    /// as `Err`.
    #[inline]
    pub(crate) fn find_or_enter(
        &mut self,
        address: usize,
        address_of: impl Fn(usize) -> usize + Copy,
    ) -> Result<u32, u32> {
        match self.probe(address, address_of) {
            Ok(index) => Ok(index),
            Err(at) => {
                let index = self.used;
                self.used = index + 1;
                let is_full = (index + 1) * 2 > self.slots.len();
                // SAFETY: `probe` returns numbers of slots.
                *unsafe { self.slots.get_unchecked_mut(at) } =
                    MapSlot { stamp: self.stamp, index: index as u32 };
                if is_full {
                    self.grow(address, address_of);
                }
                Err(index as u32)
            }
        }
    }

    /// Doubles the table; its last number is that of the address `newest`.
    #[cold]
    fn grow(&mut self, newest: usize, address_of: impl Fn(usize) -> usize) {
        self.slots = vec![MapSlot::default(); self.slots.len() * 2].into_boxed_slice();
        self.stamp = 1;
        for index in 0..self.used {
            let address = if index + 1 == self.used { newest } else { address_of(index) };
            let mut at = self.first_slot(address);
            while self.slots[at].stamp == self.stamp {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = MapSlot { stamp: self.stamp, index: index as u32 };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_across_growth_and_clearing() {
        let addresses: Vec<usize> = (0..1_000).map(|at| 0x7f00_0000_0000 + at * 16).collect();
        let mut map = AddressMap::new(4);
        for round in 0..3 {
            for (at, address) in addresses.iter().enumerate() {
                assert_eq!(map.find(*address, |index| addresses[index]), None, "round {round}");
                assert_eq!(map.find_or_enter(*address, |index| addresses[index]), Err(at as u32));
            }
            for (at, address) in addresses.iter().enumerate() {
                assert_eq!(map.find(*address, |index| addresses[index]), Some(at as u32));
            }
            map.clear();
        }
    }

    #[test]
    fn the_stamp_wraps_without_bringing_old_entries_back() {
        let mut map = AddressMap::new(4);
        map.stamp = u32::MAX;
        assert_eq!(map.find_or_enter(64, |_| 64), Err(0));
        map.clear();
        assert_eq!(map.stamp, 1);
        assert_eq!(map.find(64, |_| 64), None);
    }
}
