//! The trace of a run: the last steps of each core, for people to read, and a hash over all steps, for comparing
//! runs.

use std::fmt;

/// The operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic read-modify-write.
    ReadModifyWrite,
    /// A fence.
    Fence,
    /// A spin hint.
    Pause,
    /// A yield.
    Yield,
    /// A sleep.
    Sleep,
    /// Parked, or found that it need not park.
    Park,
    /// Woke parked cores, or found none.
    Unpark,
    /// Began a hardware transaction.
    Begin,
    /// Committed a hardware transaction.
    Commit,
    /// A hardware transaction was aborted.
    Abort,
    /// Stopped by a fault.
    Stopped,
    /// Killed by a fault.
    Killed,
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::ReadModifyWrite => "read-modify-write",
            Self::Fence => "fence",
            Self::Pause => "pause",
            Self::Yield => "yield",
            Self::Sleep => "sleep",
            Self::Park => "park",
            Self::Unpark => "unpark",
            Self::Begin => "begin region",
            Self::Commit => "commit region",
            Self::Abort => "abort region",
            Self::Stopped => "stopped (fault)",
            Self::Killed => "killed (fault)",
        })
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The number of the step, counted over all cores.
    pub number: u64,
    /// The time at which it began, in virtual picoseconds.
    pub at_ps: u64,
    /// Its cost, in virtual picoseconds.
    pub cost_ps: u64,
    /// The core that made it.
    pub core: usize,
    /// Its operation.
    pub operation: Operation,
    /// The cache line (without a cache model, the word), numbered in order of first touch; `None` if the step
    /// touched none.
    pub line: Option<u32>,
    /// The label that the core had set.
    pub label: &'static str,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at_ps, cost_ps, core, operation, label, .. } = self;
        let (ns, ps) = (at_ps / 1000, at_ps % 1000);
        let line = self.line.map_or_else(String::new, |line| format!("line {line}"));
        let text = format!(
            "{number:>10}  {ns:>10}.{ps:03} ns  core {core:<4}  {operation:<17}  {line:<12}  {:>8.1} ns  {label}",
            *cost_ps as f64 / 1000.0
        );
        formatter.write_str(text.trim_end())
    }
}

#[derive(Debug)]
struct Ring {
    steps: Vec<Step>,
    next: usize,
}

/// The last steps of each core. Its `Display` lists them in the order in which the cores made them.
#[derive(Debug)]
pub struct Trace {
    rings: Vec<Ring>,
    capacity: usize,
    /// True if the hash covers the line that a step touched.
    hashes_lines: bool,
    hash: u64,
}

impl Trace {
    pub(crate) fn new(cores: usize, capacity: usize, hashes_lines: bool) -> Self {
        let ring = || Ring { steps: Vec::with_capacity(capacity), next: 0 };
        Self {
            rings: (0..cores).map(|_| ring()).collect(),
            capacity,
            hashes_lines,
            hash: 0x9e37_79b9_7f4a_7c15,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, step: Step) {
        let line = step.line.filter(|_| self.hashes_lines).map_or(0, |line| u64::from(line) + 1);
        let what = (step.core as u64) << 48 | (step.operation as u64) << 40 | line;
        self.hash = (self.hash.rotate_left(23) ^ what).wrapping_mul(0xff51_afd7_ed55_8ccd);
        self.hash ^= step.cost_ps.wrapping_add(step.at_ps << 24);
        if self.capacity == 0 {
            return;
        }
        let ring = &mut self.rings[step.core];
        if ring.steps.len() < self.capacity {
            ring.steps.push(step);
        } else {
            ring.steps[ring.next] = step;
            ring.next = if ring.next + 1 == self.capacity { 0 } else { ring.next + 1 };
        }
    }

    /// The hash over all steps so far: core, operation, line, time and cost of each.
    ///
    /// The same program with the same options has the same hash; otherwise something outside the simulation
    /// influences the run. Lines are identified by their order of first touch, so that addresses do not matter.
    /// It does matter whether two objects share a line, which the allocator decides. Without a cache model the
    /// hash leaves lines out, because memory that is freed and used again would make it depend on earlier runs.
    pub fn hash(&self) -> u64 {
        let mut mixed = self.hash;
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ (mixed >> 33)
    }

    /// The steps kept, in the order in which the cores made them.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.rings.iter().flat_map(|ring| ring.steps.iter().copied()).collect();
        steps.sort_unstable_by_key(|step| step.number);
        steps
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.steps();
        if steps.is_empty() {
            return writeln!(formatter, "no steps were kept");
        }
        writeln!(
            formatter,
            "{:>10}  {:>17}  {:<9}  {:<17}  {:<12}  {:>11}  label",
            "step", "virtual time", "core", "operation", "cache line", "cost"
        )?;
        steps.iter().try_for_each(|step| writeln!(formatter, "{step}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u64, core: usize, cost_ps: u64) -> Step {
        let (operation, line, label) = (Operation::Load, Some(3), "here");
        Step { number, at_ps: number * 1500, cost_ps, core, operation, line, label }
    }

    #[test]
    fn the_last_steps_of_each_core_are_kept_in_order() {
        let mut trace = Trace::new(2, 3, true);
        for number in 0..10 {
            trace.record(step(number, usize::from(number % 5 == 0), 100));
        }
        let kept: Vec<u64> = trace.steps().iter().map(|step| step.number).collect();
        assert_eq!(kept, [0, 5, 7, 8, 9]);
        let text = trace.to_string();
        assert_eq!(text.lines().count(), 6);
        assert!(text.contains("13.500 ns  core 0     load               line 3"), "{text}");
    }

    #[test]
    fn the_hash_covers_every_step_kept_or_not() {
        let hash = |cost| {
            let mut trace = Trace::new(1, 0, true);
            (0..5).for_each(|number| trace.record(step(number, 0, if number == 2 { cost } else { 1 })));
            trace.hash()
        };
        assert_eq!(hash(7), hash(7));
        assert_ne!(hash(7), hash(8));
    }
}
