//! An index of a list whose elements have addresses: by a filter while there are few, by a map once there are many.
//!
//! Most attempts touch few segments, and most lookups find nothing. Then one of 256 bits tells. Where it does not, the list is
//! searched from its beginning.

use crate::memory::address_map::{AddressMap, spread};

/// Number of elements up to which the list is searched.
pub(crate) const FEW: usize = if cfg!(test) { 4 } else { 32 };

/// A set of addresses that may have others, too.
#[derive(Debug, Clone, Copy)]
struct Filter([u64; 4]);

impl Filter {
    const EMPTY: Self = Self([0; 4]);
    const FULL: Self = Self([u64::MAX; 4]);

    /// The word and the bit of an address.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn place(address: usize) -> (usize, u64) {
        let place = spread(address) >> 56;
        ((place >> 6) as usize, 1 << (place & 63))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_have(&self, address: usize) -> bool {
        let (word, bit) = Self::place(address);
        self.0[word] & bit != 0
    }

    /// Adds an address. True if the set had none that shares its bit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add(&mut self, address: usize) -> bool {
        let (word, bit) = Self::place(address);
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

#[derive(Debug)]
pub(crate) struct AddressIndex {
    /// A bit for each element's address; several addresses may share one. All bits, once the elements are in the map.
    filter: Filter,
    /// True if all elements are in the map.
    is_mapped: bool,
    map: AddressMap,
}

impl AddressIndex {
    /// Makes an index of an empty list. `slots`, a power of two, is the size of the map at first.
    pub(crate) fn new(slots: usize) -> Self {
        Self { filter: Filter::EMPTY, is_mapped: false, map: AddressMap::new(slots) }
    }

    /// The list has been emptied.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn clear(&mut self) {
        self.filter = Filter::EMPTY;
        if self.is_mapped {
            self.is_mapped = false;
            self.map.clear();
        }
    }

    /// Returns the position of the element with an address in the list, which has `len` elements. `address_of` returns the
    /// address of the element at a position.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(
        &self,
        address: usize,
        len: usize,
        address_of: impl Fn(usize) -> usize + Copy,
    ) -> Option<u32> {
        if self.filter.may_have(address) { self.search(address, len, address_of) } else { None }
    }

    #[inline(never)]
    fn search(&self, address: usize, len: usize, address_of: impl Fn(usize) -> usize) -> Option<u32> {
        if self.is_mapped {
            self.map.find(address, address_of)
        } else {
            (0..len).find(|at| address_of(*at) == address).map(|at| at as u32)
        }
    }

    /// Notes that an element with an address is added to the end of the list, if the filter alone tells that there is none.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn enter_new(&mut self, address: usize) -> bool {
        self.filter.add(address)
    }

    /// As [`find`](Self::find). If there is no such element, the caller adds it to the end of the list.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find_or_enter(
        &mut self,
        address: usize,
        len: usize,
        address_of: impl Fn(usize) -> usize + Copy,
    ) -> Option<u32> {
        if self.filter.add(address) { None } else { self.search_or_enter(address, len, address_of) }
    }

    #[inline(never)]
    fn search_or_enter(
        &mut self,
        address: usize,
        len: usize,
        address_of: impl Fn(usize) -> usize + Copy,
    ) -> Option<u32> {
        if !self.is_mapped && len >= FEW {
            for at in 0..len {
                // An address is in the list once.
                let _ = self.map.find_or_enter(address_of(at), address_of);
            }
            (self.filter, self.is_mapped) = (Filter::FULL, true);
        }
        if self.is_mapped {
            self.map.find_or_enter(address, address_of).ok()
        } else {
            self.search(address, len, address_of)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_however_many_there_are_and_after_clearing() {
        let addresses: Vec<usize> = (0..500).map(|at| 0x7f00_0000_0000 + at * 16).collect();
        let address_of = |at: usize| addresses[at];
        let mut index = AddressIndex::new(4);
        for count in [1, FEW - 1, FEW, FEW + 1, 64, 65, 500, 2] {
            for len in 0..count {
                assert_eq!(index.find(addresses[len], len, address_of), None, "{len} of {count}");
                assert_eq!(index.find_or_enter(addresses[len], len, address_of), None, "{len} of {count}");
                for at in [0, len / 2, len] {
                    assert_eq!(index.find(addresses[at], len + 1, address_of), Some(at as u32));
                    assert_eq!(index.find_or_enter(addresses[at], len + 1, address_of), Some(at as u32));
                }
            }
            index.clear();
        }
    }
}
