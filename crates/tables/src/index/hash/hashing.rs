//! A key's hash, which selects the bucket and gives the tag.

use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::work::{Work, charge};
use std::hash::{BuildHasher, Hash};

/// A key's hash. Its high part selects the bucket, its low 16 bits are the tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash64(u64);

impl Hash64 {
    #[inline(always)]
    pub(super) fn of<K: Hash + ?Sized>(key: &K, hashing: &KeyHashing) -> Self {
        charge(Work::Hash);
        Self(hashing.hash_one(key))
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
        let hashing = KeyHashing::new();
        for key in 0..2_000u64 {
            let hash = Hash64::of(&key, &hashing);
            for buckets in [1, 7, 64, 1_000, 12_345_678] {
                let bucket = hash.bucket(buckets);
                assert!(bucket < buckets);
                assert_eq!(hash.bucket(2 * buckets) / 2, bucket);
            }
            assert!((1..1 << 16).contains(&hash.tag()));
        }
    }

    #[test]
    fn keys_that_were_chosen_to_collide_in_one_table_do_so_in_no_other() {
        const BUCKETS: usize = 4_096;
        let (known, other) = (KeyHashing::new(), KeyHashing::new());
        let chosen: Vec<u64> =
            (0..).filter(|key| Hash64::of(key, &known).bucket(BUCKETS) == 7).take(64).collect();
        let mut buckets: Vec<_> = chosen.iter().map(|key| Hash64::of(key, &other).bucket(BUCKETS)).collect();
        buckets.sort_unstable();
        buckets.dedup();
        assert!(buckets.len() > 48 || !KeyHashing::IS_SEEDED, "{buckets:?}");
    }
}
