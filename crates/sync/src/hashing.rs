//! Hashing of keys that users choose.
//!
//! Whoever knows how keys are hashed can choose many that collide, and so make each operation of a hash table as slow as a search through
//! all of them. So each table has hashes of its own, by a seed that nobody can foretell.
//!
//! Builds with feature `sim` repeat runs exactly. In them the seed is that of the run, if it says so (`repeat`), or always the same.

use foldhash::SharedSeed;
use foldhash::quality::{FoldHasher, SeedableRandomState};
use std::fmt;
use std::hash::BuildHasher;

/// The hashes of one table.
#[derive(Clone)]
pub struct KeyHashing(SeedableRandomState);

impl fmt::Debug for KeyHashing {
    /// Does not show the seed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHashing").finish_non_exhaustive()
    }
}

impl Default for KeyHashing {
    fn default() -> Self {
        Self::new()
    }
}

impl BuildHasher for KeyHashing {
    type Hasher = FoldHasher<'static>;

    #[inline(always)]
    fn build_hasher(&self) -> FoldHasher<'static> {
        self.0.build_hasher()
    }
}

impl KeyHashing {
    /// True if no two tables, and no two runs of a program, have the same hashes.
    pub const IS_SEEDED: bool = cfg!(not(any(feature = "sim", loom)));

    /// Makes the hashes of a table.
    pub fn new() -> Self {
        Self(SeedableRandomState::with_seed(seeds::next(), seeds::shared()))
    }

    /// The hashes of the process, for what distinguishes keys wherever they are.
    pub fn of_process() -> &'static Self {
        // Of the standard library: no part of a model or a simulation.
        static PROCESS: std::sync::LazyLock<KeyHashing> = std::sync::LazyLock::new(|| {
            KeyHashing(SeedableRandomState::with_seed(seeds::of_process(), seeds::shared()))
        });
        &PROCESS
    }
}

#[cfg(not(any(feature = "sim", loom)))]
mod seeds {
    use super::SharedSeed;
    use std::hash::{BuildHasher, RandomState};
    use std::sync::LazyLock;

    /// The standard library's keys come from the operating system.
    pub(super) fn next() -> u64 {
        RandomState::new().hash_one(0_u64)
    }

    pub(super) fn of_process() -> u64 {
        next()
    }

    pub(super) fn shared() -> &'static SharedSeed {
        static SHARED: LazyLock<SharedSeed> = LazyLock::new(|| SharedSeed::from_u64(next()));
        &SHARED
    }
}

#[cfg(any(feature = "sim", loom))]
mod seeds {
    use super::SharedSeed;
    use std::cell::Cell;

    const ALWAYS: u64 = 0x486f_7472_6f77;

    thread_local! {
        pub(super) static SEED: Cell<u64> = const { Cell::new(ALWAYS) };
    }

    pub(super) fn next() -> u64 {
        SEED.get()
    }

    pub(super) fn of_process() -> u64 {
        ALWAYS
    }

    pub(super) fn shared() -> &'static SharedSeed {
        SharedSeed::global_fixed()
    }
}

/// Has the tables that this thread makes from now on hash by the seed of a simulated run, which so can be repeated.
#[cfg(all(feature = "sim", not(loom)))]
pub fn repeat(seed: u64) {
    seeds::SEED.set(seed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn two_tables_hash_alike_only_where_runs_are_repeated() {
        let (one, other) = (KeyHashing::new(), KeyHashing::new());
        let alike = (0..64_u64).filter(|key| one.hash_one(key) == other.hash_one(key)).count();
        assert_eq!(alike, if KeyHashing::IS_SEEDED { 0 } else { 64 });
        let process = KeyHashing::of_process();
        assert_eq!(process.hash_one("key"), process.clone().hash_one("key"));
    }
}
