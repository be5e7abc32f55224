//! Maps and sets whose keys clients choose: hashed fast, with a seed of their own.

use hotrow::sync::hashing::KeyHashing;
use std::collections::{HashMap, HashSet};

/// Values by keys.
pub(crate) type Map<K, V> = HashMap<K, V, KeyHashing>;

/// Keys.
pub(crate) type Set<K> = HashSet<K, KeyHashing>;
