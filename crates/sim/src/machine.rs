//! Machine models: the number of cores, the caches, and the cost of each operation.
//!
//! A model is a TOML file in `crates/sim/machines`; every number in it has its source in a comment.
//! [`Machine::names`] lists the models that come with the crate. The fields of [`Machine`] are the file's keys.

use std::path::Path;

use crate::work::WorkCycles;
use serde::Deserialize;

/// Bytes of a cache line. The same on all machines that Hotrow runs on.
pub const LINE_BYTES: usize = 64;

/// The most virtual cores a machine may have.
pub const CORES_MAX: usize = 1024;

/// The models that come with the crate.
const EMBEDDED: [(&str, &str); 9] = [
    ("drp", include_str!("../machines/drp.toml")),
    ("plor", include_str!("../machines/plor.toml")),
    ("stealdb", include_str!("../machines/stealdb.toml")),
    ("sto", include_str!("../machines/sto.toml")),
    ("dbx-tc", include_str!("../machines/dbx-tc.toml")),
    ("dbx-tc-roomy", include_str!("../machines/dbx-tc-roomy.toml")),
    ("server-128", include_str!("../machines/server-128.toml")),
    ("mesh-1024", include_str!("../machines/mesh-1024.toml")),
    ("this", include_str!("../machines/this.toml")),
];

/// A machine model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The name that selects the model.
    pub name: String,
    /// The machine, described in one line.
    pub description: String,
    /// Sockets, cores, threads.
    pub topology: Topology,
    /// Sizes of the caches.
    pub caches: Caches,
    /// Costs of the operations.
    pub nanoseconds: Costs,
    /// The shares of the costs that delay a core.
    pub percent: Shares,
    /// The prices of plain work; those that the file does not name have their defaults.
    #[serde(default)]
    pub cycles: WorkCycles,
    /// Hardware transactions; `None` if the machine has none.
    pub transactions: Option<Transactions>,
}

/// The arrangement of the cores.
///
/// Virtual core `n` runs on physical core `n` modulo the number of physical cores. So the first threads fill the
/// cores of the first socket, then those of the next; second threads come when every core has one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Sockets, at most 64.
    pub sockets: usize,
    /// Physical cores of a socket.
    pub cores_per_socket: usize,
    /// Hardware threads of a physical core. They share its private caches.
    pub threads_per_core: usize,
    /// Columns of the mesh on which the cores of a socket lie, row by row; 0 if all distances are equal.
    #[serde(default)]
    pub mesh_columns: usize,
}

/// Sizes of the caches. The first two levels are private to a physical core, the third is a socket's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// Size of the first-level data cache, in KiB.
    pub l1_kib: usize,
    /// Associativity of the first level.
    pub l1_ways: usize,
    /// Size of the second level, in KiB.
    pub l2_kib: usize,
    /// Associativity of the second level.
    pub l2_ways: usize,
    /// Size of one socket's third level, in KiB.
    pub l3_kib: usize,
    /// Associativity of the third level.
    pub l3_ways: usize,
}

/// The costs of the operations, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// A hit in the first level.
    pub l1: f64,
    /// A hit in the second level.
    pub l2: f64,
    /// An access to a line in the socket's third level.
    pub l3: f64,
    /// An access to a line that another core of the socket has modified.
    pub same_socket: f64,
    /// An access to a line that a core of another socket has modified, or that only its third level has.
    pub cross_socket: f64,
    /// Invalidating the copies in the same socket before a write.
    pub invalidate_same_socket: f64,
    /// Invalidating the copies in another socket before a write.
    pub invalidate_cross_socket: f64,
    /// An access to a line that no cache has.
    pub memory: f64,
    /// Each hop on the mesh, added to the cost of a cache of the socket.
    #[serde(default)]
    pub mesh_hop: f64,
    /// An atomic read-modify-write, added to the cost of the access.
    pub atomic: f64,
    /// A full fence.
    pub fence: f64,
    /// The spin hint.
    pub pause: f64,
    /// One unit of plain work, see [`work`](crate::work).
    pub work: f64,
    /// Reading the clock.
    pub clock: f64,
    /// A yield to the operating system when no other thread can run.
    #[serde(rename = "yield")]
    pub yield_now: f64,
    /// Going to sleep in the operating system, until the core is idle.
    pub park: f64,
    /// Waking one sleeper, charged to the core that wakes it.
    pub unpark: f64,
    /// The time from the wake-up until the sleeper runs again.
    pub wake: f64,
}

/// The shares of the costs that delay a core, in percent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// The share of a load's miss that stalls the core; other work hides the rest.
    pub load_stall: f64,
    /// The share of a plain store's miss that stalls the core; the store buffer hides the rest.
    pub store_stall: f64,
    /// The share of that stall that is left for the line that follows the one that the core accessed last: the core fetches
    /// a copy's next lines while it works on the first.
    pub sequential_stall: f64,
    /// The added share of time that plain work takes while the core's other thread is in use.
    pub sibling_slowdown: f64,
}

/// The model of hardware transactions: written lines stay in the first level, read lines may leave it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    /// The cost of beginning a region, in nanoseconds.
    pub begin_ns: f64,
    /// The cost of committing a region, in nanoseconds.
    pub commit_ns: f64,
    /// The time from the abort until the fallback runs, in nanoseconds.
    pub abort_ns: f64,
    /// The most that a region may read, in KiB.
    pub read_kib: usize,
    /// Interrupts and other events that abort any region, per second of the core's time.
    pub system_aborts_per_s: f64,
    /// Neighbouring lines of the first level that the program itself keeps in use (its stack).
    pub resident_lines: usize,
    /// Other lines that enter the first level (page walks, prefetches), each into a random set, for each line
    /// that does not follow the previous one.
    pub fills_per_random_line: f64,
    /// The same for a line that follows the previous one.
    pub fills_per_sequential_line: f64,
}

/// The reason why a machine model cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// No model of this name comes with the crate.
    #[error("there is no machine {name:?}; there are {}", Machine::names().join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The file could not be read.
    #[error("cannot read the machine model {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file is not a machine model.
    #[error("{origin} is not a machine model: {problem}")]
    Malformed {
        /// The file, or the name given to the text.
        origin: String,
        /// The problem, in one line.
        problem: String,
    },
}

impl Machine {
    /// The names of the models that come with the crate.
    pub fn names() -> Vec<&'static str> {
        EMBEDDED.iter().map(|(name, _)| *name).collect()
    }

    /// The model of this name.
    ///
    /// # Errors
    ///
    /// [`MachineError::Unknown`], which lists the known names.
    pub fn named(name: &str) -> Result<Self, MachineError> {
        let (_, text) = EMBEDDED
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| MachineError::Unknown { name: name.to_owned() })?;
        Self::from_toml(text, name)
    }

    /// A model from a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not TOML, lacks a key, has an unknown key, or has a number out of range.
    pub fn from_file(path: &Path) -> Result<Self, MachineError> {
        let shown = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::from_toml(&text, &shown),
            Err(error) => Err(MachineError::Unreadable { path: shown, error }),
        }
    }

    /// A model from a text; `origin` names it in the error.
    ///
    /// # Errors
    ///
    /// As [`from_file`](Self::from_file).
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, MachineError> {
        let malformed = |problem: String| MachineError::Malformed { origin: origin.to_owned(), problem };
        let machine: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let place = line.map(|line| format!(" (line {line})")).unwrap_or_default();
            malformed(format!("{}{place}", error.message().replace('\n', " ")))
        })?;
        machine.validate().map_err(malformed)?;
        Ok(machine)
    }

    /// The number of hardware threads, which is the number of virtual cores that the machine can run.
    pub fn threads(&self) -> usize {
        self.physical_cores() * self.topology.threads_per_core
    }

    /// The number of physical cores. Each has private caches of its own.
    pub fn physical_cores(&self) -> usize {
        self.topology.sockets * self.topology.cores_per_socket
    }

    /// Returns the same machine with all transfers between caches `factor` times as expensive.
    ///
    /// It shows whether a result survives an error in these costs. Private hits, memory and the operating
    /// system's costs stay the same.
    #[must_use]
    pub fn with_transfers_scaled(mut self, factor: f64) -> Self {
        let costs = &mut self.nanoseconds;
        for cost in [
            &mut costs.same_socket,
            &mut costs.cross_socket,
            &mut costs.invalidate_same_socket,
            &mut costs.invalidate_cross_socket,
            &mut costs.mesh_hop,
        ] {
            *cost *= factor;
        }
        self
    }

    fn validate(&self) -> Result<(), String> {
        let counts = [
            ("topology.sockets", self.topology.sockets),
            ("topology.cores_per_socket", self.topology.cores_per_socket),
            ("topology.threads_per_core", self.topology.threads_per_core),
            ("caches.l1_kib", self.caches.l1_kib),
            ("caches.l1_ways", self.caches.l1_ways),
            ("caches.l2_kib", self.caches.l2_kib),
            ("caches.l2_ways", self.caches.l2_ways),
            ("caches.l3_kib", self.caches.l3_kib),
            ("caches.l3_ways", self.caches.l3_ways),
        ];
        for (key, count) in counts {
            if count == 0 || count > 1 << 22 {
                return Err(format!("{key} is {count}, it must be between 1 and {}", 1 << 22));
            }
        }
        if self.topology.sockets > 64 {
            return Err(format!("topology.sockets is {}, it must be at most 64", self.topology.sockets));
        }
        let threads = self
            .topology
            .sockets
            .saturating_mul(self.topology.cores_per_socket)
            .saturating_mul(self.topology.threads_per_core);
        if threads > CORES_MAX {
            return Err(format!("it has {threads} hardware threads, at most {CORES_MAX} can be simulated"));
        }
        let Costs { l1, l2, l3, same_socket, cross_socket, memory, .. } = self.nanoseconds;
        let Costs { invalidate_same_socket, invalidate_cross_socket, mesh_hop, atomic, fence, .. } =
            self.nanoseconds;
        let Costs { pause, work, clock, yield_now, park, unpark, wake, .. } = self.nanoseconds;
        let mut amounts = vec![
            ("nanoseconds.l1", l1),
            ("nanoseconds.l2", l2),
            ("nanoseconds.l3", l3),
            ("nanoseconds.same_socket", same_socket),
            ("nanoseconds.cross_socket", cross_socket),
            ("nanoseconds.invalidate_same_socket", invalidate_same_socket),
            ("nanoseconds.invalidate_cross_socket", invalidate_cross_socket),
            ("nanoseconds.memory", memory),
            ("nanoseconds.mesh_hop", mesh_hop),
            ("nanoseconds.atomic", atomic),
            ("nanoseconds.fence", fence),
            ("nanoseconds.pause", pause),
            ("nanoseconds.work", work),
            ("nanoseconds.clock", clock),
            ("nanoseconds.yield", yield_now),
            ("nanoseconds.park", park),
            ("nanoseconds.unpark", unpark),
            ("nanoseconds.wake", wake),
            ("percent.load_stall", self.percent.load_stall),
            ("percent.store_stall", self.percent.store_stall),
            ("percent.sequential_stall", self.percent.sequential_stall),
            ("percent.sibling_slowdown", self.percent.sibling_slowdown),
        ];
        if let Some(transactions) = &self.transactions {
            amounts.extend([
                ("transactions.begin_ns", transactions.begin_ns),
                ("transactions.commit_ns", transactions.commit_ns),
                ("transactions.abort_ns", transactions.abort_ns),
                ("transactions.system_aborts_per_s", transactions.system_aborts_per_s),
                ("transactions.fills_per_random_line", transactions.fills_per_random_line),
                ("transactions.fills_per_sequential_line", transactions.fills_per_sequential_line),
            ]);
        }
        for (key, amount) in amounts {
            if !(0.0..=1e6).contains(&amount) {
                return Err(format!("{key} is {amount}, it must be between 0 and 1000000"));
            }
        }
        // A loop of these operations alone must reach any deadline, so each must take time.
        for (key, amount) in [("l1", l1), ("pause", pause), ("clock", clock), ("yield", yield_now)] {
            if amount < 0.001 {
                return Err(format!("nanoseconds.{key} is {amount}, it must be at least 0.001"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_model_is_valid_and_has_its_own_name() {
        for name in Machine::names() {
            let machine = Machine::named(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(machine.name, name);
        }
    }

    #[test]
    fn the_papers_machines_have_as_many_cores_as_the_papers_say() {
        let threads = |name| Machine::named(name).unwrap().threads();
        assert_eq!(threads("drp") / Machine::named("drp").unwrap().topology.threads_per_core, 60);
        assert_eq!(Machine::named("plor").unwrap().physical_cores(), 36);
        assert_eq!(Machine::named("stealdb").unwrap().physical_cores(), 32);
        assert_eq!(threads("sto"), 24);
        assert_eq!((threads("dbx-tc"), threads("dbx-tc-roomy")), (8, 8));
        assert_eq!(threads("mesh-1024"), 1024);
        assert_eq!(threads("this"), 2);
    }

    #[test]
    fn every_number_of_every_model_has_its_source_in_a_comment() {
        for (name, text) in EMBEDDED {
            for line in text.lines() {
                let is_number = line.split_once('=').is_some_and(|(_, value)| {
                    value.trim_start().starts_with(|first: char| first.is_ascii_digit())
                });
                assert!(!is_number || line.contains('#'), "{name}: {line}");
            }
        }
    }

    #[test]
    fn a_bad_model_gets_one_clear_error() {
        let text = EMBEDDED[0].1;
        let error = |text: &str| Machine::from_toml(text, "bad.toml").unwrap_err().to_string();
        assert!(error("name = ").starts_with("bad.toml is not a machine model: "));
        let surplus = error(&text.replace("[topology]", "[topology]\nfloors = 3"));
        assert!(surplus.contains("floors"), "{surplus}");
        let negative = error(&text.replace("\nmemory = ", "\nmemory = -"));
        assert!(negative.contains("nanoseconds.memory is -"), "{negative}");
        let many = error(&text.replace("\nsockets = ", "\nsockets = 60 #"));
        assert!(many.contains("at most 1024"), "{many}");
        for problem in [surplus, negative, many] {
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
        assert!(Machine::named("abacus").unwrap_err().to_string().contains("drp, plor"));
        let missing = Machine::from_file(Path::new("/nowhere.toml")).unwrap_err().to_string();
        assert!(missing.contains("cannot read the machine model /nowhere.toml"), "{missing}");
    }

    #[test]
    fn scaling_transfers_leaves_private_hits_unchanged() {
        let machine = Machine::named("drp").unwrap();
        let doubled = machine.clone().with_transfers_scaled(2.0);
        assert_eq!(doubled.nanoseconds.cross_socket, machine.nanoseconds.cross_socket * 2.0);
        assert_eq!(doubled.nanoseconds.l1, machine.nanoseconds.l1);
    }
}
