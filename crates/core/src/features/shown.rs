//! Reports in serde's data model, with the feature `serde`: names of reasons and counters are keys, origins and reasons are texts,
//! durations are numbers whose unit the key names.

use crate::features::conflicts::{Deadlock, DeadlockWait, HotKey, Rivalry};
use crate::features::snapshot::{OpenSnapshot, SnapshotReport};
use crate::kernel::abort::{Conflict, Reason};
use crate::kernel::statistics::Statistics;
use crate::kernel::statistics::{CounterValue, NamedCounts};
use crate::memory::identity::Origin;
use crate::memory::retained::{MemoryHolder, RetainedMemory};
use serde::ser::{Serialize, SerializeMap as _, SerializeStruct as _, Serializer};

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Counts by reason, of the reasons that occurred.
struct Reasons<'a>(&'a [u64; Reason::ALL.len()]);

impl Serialize for Reasons<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let occurred = Reason::ALL.into_iter().zip(self.0).filter(|(_, count)| **count > 0);
        serializer.collect_map(occurred)
    }
}

impl Serialize for NamedCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (counter, value) in self.iter() {
            match value {
                CounterValue::Count(count) => map.serialize_entry(counter.name(), &count)?,
                CounterValue::MeanUs(mean) => map.serialize_entry(counter.name(), &mean)?,
                CounterValue::Share(share) => map.serialize_entry(counter.name(), &share)?,
            }
        }
        map.end()
    }
}

impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("Statistics", 8)?;
        shown.serialize_field("commits", &self.commits)?;
        shown.serialize_field("aborts", &self.aborts)?;
        shown.serialize_field("rollbacks", &self.rollbacks)?;
        shown.serialize_field("reasons", &Reasons(&self.reasons))?;
        shown.serialize_field("attempts_max", &self.attempts_max)?;
        shown.serialize_field("waits", &self.waits)?;
        shown.serialize_field("woken_in_vain", &self.woken_in_vain)?;
        shown.serialize_field("counters", &self.counters)?;
        shown.end()
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Rivalry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("Rivalry", 3)?;
        shown.serialize_field("loser", &self.loser)?;
        shown.serialize_field("winner", &self.winner)?;
        shown.serialize_field("conflicts", &self.conflicts)?;
        shown.end()
    }
}

impl Serialize for HotKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("HotKey", 6)?;
        shown.serialize_field("object", &self.object)?;
        shown.serialize_field("key", &self.key)?;
        shown.serialize_field("conflicts", &self.conflicts)?;
        shown.serialize_field("reasons", &Reasons(&self.reasons))?;
        shown.serialize_field("lost_s", &self.lost_time.as_secs_f64())?;
        shown.serialize_field("rivalries", &self.rivalries)?;
        shown.end()
    }
}

impl Serialize for DeadlockWait {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("DeadlockWait", 4)?;
        shown.serialize_field("waiter", &self.waiter)?;
        shown.serialize_field("object", &self.object)?;
        shown.serialize_field("key", &self.key)?;
        shown.serialize_field("is_victim", &self.is_victim)?;
        shown.end()
    }
}

impl Serialize for Deadlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("Deadlock", 2)?;
        shown.serialize_field("number", &self.number)?;
        shown.serialize_field("waits", &self.waits)?;
        shown.end()
    }
}

impl Serialize for Conflict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("Conflict", 7)?;
        shown.serialize_field("reason", &self.reason)?;
        shown.serialize_field("object", &self.object)?;
        shown.serialize_field("key", &self.key)?;
        shown.serialize_field("attempts", &self.attempts)?;
        shown.serialize_field("lost_s", &self.lost_time.as_secs_f64())?;
        shown.serialize_field("loser", &self.loser)?;
        shown.serialize_field("winner", &self.winner)?;
        shown.end()
    }
}

impl Serialize for MemoryHolder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("MemoryHolder", 4)?;
        shown.serialize_field("holder", &self.to_string())?;
        shown.serialize_field("thread", &self.thread)?;
        shown.serialize_field("open_s", &self.open_for.as_secs_f64())?;
        shown.serialize_field("kept_bytes", &self.kept_bytes)?;
        shown.end()
    }
}

impl Serialize for RetainedMemory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("RetainedMemory", 3)?;
        shown.serialize_field("bytes", &self.bytes)?;
        shown.serialize_field("bytes_max", &self.bytes_max)?;
        shown.serialize_field("holders", &self.holders)?;
        shown.end()
    }
}

impl Serialize for OpenSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("OpenSnapshot", 4)?;
        shown.serialize_field("number", &self.number)?;
        shown.serialize_field("open_s", &self.open_for.as_secs_f64())?;
        shown.serialize_field("thread", &self.thread)?;
        shown.serialize_field("place", &self.place)?;
        shown.end()
    }
}

impl Serialize for SnapshotReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("SnapshotReport", 3)?;
        shown.serialize_field("open", &self.open)?;
        shown.serialize_field("versions", &self.versions)?;
        shown.serialize_field("bytes", &self.bytes)?;
        shown.end()
    }
}
