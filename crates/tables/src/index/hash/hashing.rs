//! A key's hash, which selects the bucket and gives the tag.

use foldhash::quality::FixedState;
use hotrow_sync::work::{Work, charge};
use std::hash::{BuildHasher, Hash};

/// The seed of all hash indexes. It is constant, so that a run can be repeated exactly.
const SEED: u64 = 0x486f_7472_6f77;

/// A key's hash. Its high part selects the bucket, its low 16 bits are the tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash64(u64);

impl Hash64 {
    #[inline(always)]
    pub(super) fn of<K: Hash + ?Sized>(key: &K) -> Self {
        charge(Work::Hash);
        Self(FixedState::with_seed(SEED).hash_one(key))
    }

    /// Returns the position of the bucket among `buckets`.
    ///
    /// Multiplying instead of masking allows arrays of any size, and puts the two children of bucket `b` in
    /// an array twice as large at `2 b` and `2 b + 1`.
    #[inline(always)]
    pub(super) fn bucket(self, buckets: usize) -> usize {
        ((u128::from(self.0) * buckets as u128) >> 64) as usize
    }

    /// Returns the part of the hash that a slot stores beside the record's address. It is never 0, which marks an
    /// empty slot.
    #[inline(always)]
    pub(super) fn tag(self) -> usize {
        (self.0 as u16).max(1).into()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_children_of_a_bucket_are_neighbours() {
        for key in 0..2_000u64 {
            let hash = Hash64::of(&key);
            for buckets in [1, 7, 64, 1_000, 12_345_678] {
                let bucket = hash.bucket(buckets);
                assert!(bucket < buckets);
                assert_eq!(hash.bucket(2 * buckets) / 2, bucket);
            }
            assert!((1..1 << 16).contains(&hash.tag()));
        }
    }
}
