//! The regions of all cores: their lines, capacity, conflicts and undo logs. [`crate::htm`] describes the model.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::htm::{AbortCause, Regions};
use crate::machine::{LINE_BYTES, Machine};
use crate::memory::picoseconds;
use crate::random::Random;

/// A hasher for lines. One multiplication spreads them well enough.
#[derive(Default)]
struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, line: u64) {
        self.0 = (self.0 ^ line).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// The cores whose regions have written or read a line.
#[derive(Default)]
struct LineUsers {
    writer: Option<u32>,
    readers: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Empty,
    /// A line that does not belong to the region.
    Other,
    Read(u64),
    Written(u64),
}

struct Undo {
    address: *mut u8,
    /// The index of the old bytes in [`Region::old`].
    start: usize,
    bytes: usize,
}

/// A region of one core.
struct Region {
    /// The region's lines, each once.
    lines: Vec<u64>,
    read: usize,
    written: usize,
    undo: Vec<Undo>,
    old: Vec<u8>,
    /// The first level: one set after the other, each with its most recently used way first.
    ways: Vec<Way>,
    resident_from: usize,
    line_before: u64,
    system_abort_at: u64,
    aborted: Option<AbortCause>,
    /// The address on the core's stack below which, as the stack grows, the frames of the region's body are.
    stack_to: usize,
    /// True if the core unwinds, or has unwound, from the region.
    leaving: bool,
}

/// The costs and the capacity of regions on a machine.
pub(crate) struct RegionLimits {
    pub(crate) begin: u64,
    pub(crate) commit: u64,
    pub(crate) abort: u64,
    read_lines: usize,
    system_aborts_per_ps: f64,
    resident_lines: usize,
    fills_random: f64,
    fills_sequential: f64,
    sets: usize,
    ways: usize,
    /// True if a line's address determines its set. Without a cache model its order in the region does, so that the allocator's
    /// placement does not matter.
    places_by_address: bool,
}

/// The regions of all cores.
pub(crate) struct Htm {
    /// `None` if the machine has no hardware transactions.
    pub(crate) limits: Option<RegionLimits>,
    regions: Vec<Option<Region>>,
    /// Ended regions, whose memory is reused.
    spare: Vec<Region>,
    /// The number of cores in a region that is not aborted.
    active: usize,
    tracked: HashMap<u64, LineUsers, BuildHasherDefault<LineHasher>>,
    random: Random,
    counts: Regions,
    /// The number of steps inside regions.
    steps: u64,
    /// The step among them at which the region is aborted.
    abort_at: Option<u64>,
}

impl Htm {
    pub(crate) fn new(
        machine: &Machine,
        cores: usize,
        seed: u64,
        abort_at: Option<u64>,
        has_caches: bool,
    ) -> Self {
        let limits = machine.transactions.as_ref().map(|transactions| RegionLimits {
            begin: picoseconds(transactions.begin_ns),
            commit: picoseconds(transactions.commit_ns),
            abort: picoseconds(transactions.abort_ns),
            read_lines: transactions.read_kib * 1024 / LINE_BYTES,
            system_aborts_per_ps: transactions.system_aborts_per_s * 1e-12,
            resident_lines: transactions.resident_lines,
            fills_random: transactions.fills_per_random_line,
            fills_sequential: transactions.fills_per_sequential_line,
            sets: machine.caches.l1_kib * 1024 / LINE_BYTES / machine.caches.l1_ways,
            ways: machine.caches.l1_ways,
            places_by_address: has_caches,
        });
        Self {
            limits,
            regions: (0..cores).map(|_| None).collect(),
            spare: Vec::new(),
            active: 0,
            tracked: HashMap::default(),
            random: Random::stream(seed, 4),
            counts: Regions::default(),
            steps: 0,
            abort_at,
        }
    }

    pub(crate) fn counts(&self) -> Regions {
        self.counts
    }

    /// True if a region is active, so that accesses must be checked for conflicts.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.active != 0
    }

    /// True if the core is in a region that is not aborted.
    pub(crate) fn is_inside(&self, core: usize) -> bool {
        self.regions[core].as_ref().is_some_and(|region| region.aborted.is_none())
    }

    /// True if the core is unwinding from its region.
    pub(crate) fn is_leaving(&self, core: usize) -> bool {
        self.regions[core].as_ref().is_some_and(|region| region.leaving)
    }

    /// Returns true, once, if the core's region is aborted and the core must unwind from it.
    pub(crate) fn must_leave(&mut self, core: usize) -> bool {
        match &mut self.regions[core] {
            Some(region) if region.aborted.is_some() && !region.leaving => {
                region.leaving = true;
                true
            }
            _ => false,
        }
    }

    /// The end of the part of the core's stack that belongs to its region's body.
    pub(crate) fn stack_to(&self, core: usize) -> usize {
        self.regions[core].as_ref().map_or(0, |region| region.stack_to)
    }

    pub(crate) fn begin(&mut self, core: usize, now: u64, stack_to: usize) {
        let Some(limits) = &self.limits else { return };
        let until_system_abort = -(1.0 - self.random.unit()).ln() / limits.system_aborts_per_ps;
        let mut region = self.spare.pop().unwrap_or_else(|| Region {
            lines: Vec::new(),
            read: 0,
            written: 0,
            undo: Vec::new(),
            old: Vec::new(),
            ways: vec![Way::Empty; limits.sets * limits.ways],
            resident_from: 0,
            line_before: 0,
            system_abort_at: 0,
            aborted: None,
            stack_to,
            leaving: false,
        });
        region.ways.fill(Way::Empty);
        region.resident_from = self.random.below(limits.sets as u64) as usize;
        region.line_before = 0;
        region.read = 0;
        region.written = 0;
        region.aborted = None;
        region.stack_to = stack_to;
        region.leaving = false;
        region.system_abort_at = now.saturating_add(until_system_abort.min(1e18) as u64);
        self.regions[core] = Some(region);
        self.active += 1;
    }

    /// Checks an access by a core: aborts the regions that it conflicts with, and the core's own region if the
    /// line does not fit.
    pub(crate) fn access(&mut self, core: usize, line: u64, writes: bool, now: u64) {
        if let Some(tracked) = self.tracked.get(&line) {
            let others_write = tracked.writer.filter(|writer| *writer as usize != core);
            let mut losers: Vec<u32> = others_write.into_iter().collect();
            if writes {
                losers.extend(tracked.readers.iter().filter(|reader| **reader as usize != core));
            }
            for loser in losers {
                self.doom(loser as usize, AbortCause::Conflict);
            }
        }
        self.count_step(core);
        if !self.is_inside(core) {
            return;
        }
        let cause = self.track(core, line, writes, now);
        if let Some(cause) = cause {
            self.doom(core, cause);
        }
    }

    /// Notes an access to an instrument's word: a read becomes one of the core's region, a write aborts the regions of others that have
    /// read it. It is no step, so it never aborts the core's own region, which would learn of it too late.
    pub(crate) fn note(&mut self, core: usize, line: u64, writes: bool) {
        if writes {
            let users = self.tracked.get(&line);
            let readers = users.map(|users| users.readers.clone()).unwrap_or_default();
            for reader in readers.into_iter().filter(|reader| *reader as usize != core) {
                self.doom(reader as usize, AbortCause::Conflict);
            }
        } else if self.is_inside(core)
            && let Some(region) = &mut self.regions[core]
        {
            let tracked = self.tracked.entry(line).or_default();
            if tracked.writer != Some(core as u32) && !tracked.readers.contains(&(core as u32)) {
                tracked.readers.push(core as u32);
                region.lines.push(line);
            }
        }
    }

    /// Counts a step of a core inside its region, and aborts the region if that is the step at which it is to be aborted.
    pub(crate) fn count_step(&mut self, core: usize) {
        if self.is_inside(core) {
            let step = self.steps;
            self.steps += 1;
            if self.abort_at == Some(step) {
                self.doom(core, AbortCause::System);
            }
        }
    }

    fn track(&mut self, core: usize, line: u64, writes: bool, now: u64) -> Option<AbortCause> {
        let (Some(limits), Some(region)) = (&self.limits, &mut self.regions[core]) else { return None };
        if now >= region.system_abort_at {
            return Some(AbortCause::System);
        }
        let tracked = self.tracked.entry(line).or_default();
        let core = core as u32;
        let is_known = tracked.writer == Some(core) || tracked.readers.contains(&core);
        if writes && tracked.writer != Some(core) {
            tracked.writer = Some(core);
            region.written += 1;
        } else if !writes && !is_known {
            tracked.readers.push(core);
            region.read += 1;
        }
        if !is_known {
            region.lines.push(line);
        }
        if region.lines.len() - region.written.min(region.lines.len()) > limits.read_lines {
            return Some(AbortCause::Capacity);
        }
        let was_in = if limits.places_by_address { region.touch(limits, line, writes) } else { is_known };
        let mut evicted_written = false;
        if !was_in {
            let (place, follows) = match limits.places_by_address {
                true => (line as usize, line == region.line_before + 1 || line == region.line_before),
                false => (region.lines.len(), false),
            };
            evicted_written |= region.insert(
                limits,
                place % limits.sets,
                match writes {
                    true => Way::Written(line),
                    false => Way::Read(line),
                },
            );
            let fills = if follows { limits.fills_sequential } else { limits.fills_random };
            let count = fills.floor() as usize + usize::from(self.random.chance(fills.fract()));
            for _ in 0..count {
                let set = self.random.below(limits.sets as u64) as usize;
                evicted_written |= region.insert(limits, set, Way::Other);
            }
        }
        region.line_before = line;
        let is_too_much = region.written + limits.resident_lines > limits.sets * limits.ways;
        match evicted_written {
            false => None,
            true if is_too_much => Some(AbortCause::Capacity),
            true => Some(AbortCause::Associativity),
        }
    }

    /// Aborts a core's region: restores memory and releases the lines. The core learns of it at its next step.
    pub(crate) fn doom(&mut self, core: usize, cause: AbortCause) {
        let Some(region) = self.regions[core].as_mut().filter(|region| region.aborted.is_none()) else {
            return;
        };
        region.aborted = Some(cause);
        while let Some(undo) = region.undo.pop() {
            let old = &region.old[undo.start..undo.start + undo.bytes];
            // SAFETY: the caller of `log_write` promised that these bytes may be written until the region
            // ends, and no other code runs meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(old.as_ptr(), undo.address, undo.bytes) };
        }
        region.old.clear();
        let lines = std::mem::take(&mut region.lines);
        self.release(core, lines);
        match cause {
            AbortCause::Conflict => self.counts.conflict += 1,
            AbortCause::Capacity => self.counts.capacity += 1,
            AbortCause::Associativity => self.counts.associativity += 1,
            AbortCause::System | AbortCause::Unsupported => self.counts.system += 1,
            AbortCause::Explicit(_) => self.counts.explicit += 1,
        }
    }

    fn release(&mut self, core: usize, mut lines: Vec<u64>) {
        for line in lines.drain(..) {
            if let Some(tracked) = self.tracked.get_mut(&line) {
                tracked.readers.retain(|reader| *reader as usize != core);
                if tracked.writer == Some(core as u32) {
                    tracked.writer = None;
                }
                if tracked.writer.is_none() && tracked.readers.is_empty() {
                    self.tracked.remove(&line);
                }
            }
        }
        self.active -= 1;
        if let Some(region) = &mut self.regions[core] {
            region.lines = lines;
        }
    }

    /// Aborts all regions, because the run ends.
    pub(crate) fn abort_all(&mut self) {
        (0..self.regions.len()).for_each(|core| self.doom(core, AbortCause::System));
    }

    /// The cause of the abort of the core's region; `None` if it was not aborted.
    pub(crate) fn aborted(&self, core: usize) -> Option<AbortCause> {
        self.regions[core].as_ref().and_then(|region| region.aborted)
    }

    /// Logs the content of these bytes, so that an abort of the core's region can restore it.
    ///
    /// # Safety
    ///
    /// Until the region ends, the bytes may be read and written, and only the cores of this simulation access them.
    pub(crate) unsafe fn log(&mut self, core: usize, address: *mut u8, bytes: usize) {
        if let Some(region) = &mut self.regions[core] {
            let start = region.old.len();
            // SAFETY: the bytes may be read, by this function's contract.
            region.old.extend_from_slice(unsafe { std::slice::from_raw_parts(address, bytes) });
            region.undo.push(Undo { address, start, bytes });
        }
    }

    /// Removes a core's ended region, whose memory is reused.
    pub(crate) fn forget(&mut self, core: usize) {
        self.spare.extend(self.regions[core].take());
    }

    pub(crate) fn commit(&mut self, core: usize) {
        // If the run has ended, the region is aborted already.
        if let Some(region) = self.regions[core].as_mut().filter(|region| region.aborted.is_none()) {
            region.undo.clear();
            region.old.clear();
            let lines = std::mem::take(&mut region.lines);
            let sums = &mut self.counts.lines;
            sums.read += region.read as u64;
            sums.written += region.written as u64;
            sums.all += lines.len() as u64;
            self.release(core, lines);
            self.counts.commits += 1;
        }
        self.forget(core);
    }
}

impl Region {
    fn set(&mut self, limits: &RegionLimits, set: usize) -> &mut [Way] {
        let start = set * limits.ways;
        let from_resident = (set + limits.sets - self.resident_from) % limits.sets;
        // A resident line is always in use, so its way is never free for other lines.
        let resident = limits.resident_lines / limits.sets
            + usize::from(from_resident < limits.resident_lines % limits.sets);
        &mut self.ways[start..start + limits.ways.saturating_sub(resident).max(1)]
    }

    /// Returns true if the first level holds the line, and marks the line as most recently used.
    fn touch(&mut self, limits: &RegionLimits, line: u64, writes: bool) -> bool {
        let set = self.set(limits, line as usize % limits.sets);
        let Some(at) = set.iter().position(|way| *way == Way::Read(line) || *way == Way::Written(line))
        else {
            return false;
        };
        let way = if writes { Way::Written(line) } else { set[at] };
        set.copy_within(..at, 1);
        set[0] = way;
        true
    }

    /// Puts a line into a set. Returns true if that evicted a written line.
    fn insert(&mut self, limits: &RegionLimits, set: usize, line: Way) -> bool {
        let set = self.set(limits, set);
        let last = set.len() - 1;
        let evicted = set[last];
        set.copy_within(..last, 1);
        set[0] = line;
        matches!(evicted, Way::Written(_))
    }
}
