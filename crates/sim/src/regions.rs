//! The regions of all cores: their lines, what fits, who conflicts, and what an abort puts back. The model is
//! described at [`crate::htm`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::htm::{AbortCause, Regions};
use crate::machine::{LINE_BYTES, Machine};
use crate::memory::picoseconds;
use crate::random::Random;

/// Lines are spread well enough by one multiplication.
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

/// Which regions have a line.
#[derive(Default)]
struct Tracked {
    writer: Option<u32>,
    readers: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Empty,
    /// A line that is not the region's.
    Other,
    Read(u64),
    Written(u64),
}

struct Undo {
    address: *mut u8,
    /// Where its old bytes are.
    start: usize,
    bytes: usize,
}

/// A region of one core.
struct Region {
    /// Its lines, each once.
    lines: Vec<u64>,
    written: usize,
    undo: Vec<Undo>,
    old: Vec<u8>,
    /// The first level: sets one after the other, the way used last first.
    ways: Vec<Way>,
    resident_from: usize,
    line_before: u64,
    system_abort_at: u64,
    aborted: Option<AbortCause>,
    /// The core unwinds, or has unwound, from it.
    leaving: bool,
}

pub(crate) struct Limits {
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
}

/// The regions of all cores.
pub(crate) struct Htm {
    pub(crate) limits: Option<Limits>,
    regions: Vec<Option<Region>>,
    /// Regions that are over; their memory serves again.
    spare: Vec<Region>,
    /// How many cores are in a region that is not aborted.
    active: usize,
    tracked: HashMap<u64, Tracked, BuildHasherDefault<LineHasher>>,
    random: Random,
    counts: Regions,
}

impl Htm {
    pub(crate) fn new(machine: &Machine, cores: usize, seed: u64) -> Self {
        let limits = machine.transactions.as_ref().map(|transactions| Limits {
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
        });
        Self {
            limits,
            regions: (0..cores).map(|_| None).collect(),
            spare: Vec::new(),
            active: 0,
            tracked: HashMap::default(),
            random: Random::stream(seed, 4),
            counts: Regions::default(),
        }
    }

    pub(crate) fn counts(&self) -> Regions {
        self.counts
    }

    /// Whether any access has to be looked at.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.active != 0
    }

    /// Whether the core is in a region that is not aborted.
    pub(crate) fn is_inside(&self, core: usize) -> bool {
        self.regions[core].as_ref().is_some_and(|region| region.aborted.is_none())
    }

    /// Whether the core unwinds from its region just now.
    pub(crate) fn is_leaving(&self, core: usize) -> bool {
        self.regions[core].as_ref().is_some_and(|region| region.leaving)
    }

    /// Whether the core has to leave its region; says so once.
    pub(crate) fn must_leave(&mut self, core: usize) -> bool {
        match &mut self.regions[core] {
            Some(region) if region.aborted.is_some() && !region.leaving => {
                region.leaving = true;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn begin(&mut self, core: usize, now: u64) {
        let Some(limits) = &self.limits else { return };
        let until_system_abort = -(1.0 - self.random.unit()).ln() / limits.system_aborts_per_ps;
        let mut region = self.spare.pop().unwrap_or_else(|| Region {
            lines: Vec::new(),
            written: 0,
            undo: Vec::new(),
            old: Vec::new(),
            ways: vec![Way::Empty; limits.sets * limits.ways],
            resident_from: 0,
            line_before: 0,
            system_abort_at: 0,
            aborted: None,
            leaving: false,
        });
        region.ways.fill(Way::Empty);
        region.resident_from = self.random.below(limits.sets as u64) as usize;
        region.line_before = 0;
        region.written = 0;
        region.aborted = None;
        region.leaving = false;
        region.system_abort_at = now.saturating_add(until_system_abort.min(1e18) as u64);
        self.regions[core] = Some(region);
        self.active += 1;
    }

    /// An access by a core: aborts the regions that it conflicts with, and its own if the line does not fit.
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
        if !self.is_inside(core) {
            return;
        }
        let cause = self.track(core, line, writes, now);
        if let Some(cause) = cause {
            self.doom(core, cause);
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
        }
        if !is_known {
            region.lines.push(line);
        }
        if region.lines.len() - region.written.min(region.lines.len()) > limits.read_lines {
            return Some(AbortCause::Capacity);
        }
        let was_in = region.touch(limits, line, writes);
        let mut pushed_out = false;
        if !was_in {
            pushed_out |= region.place(
                limits,
                line as usize % limits.sets,
                match writes {
                    true => Way::Written(line),
                    false => Way::Read(line),
                },
            );
            let follows = line == region.line_before + 1 || line == region.line_before;
            let fills = if follows { limits.fills_sequential } else { limits.fills_random };
            let count = fills.floor() as usize + usize::from(self.random.chance(fills.fract()));
            for _ in 0..count {
                let set = self.random.below(limits.sets as u64) as usize;
                pushed_out |= region.place(limits, set, Way::Other);
            }
        }
        region.line_before = line;
        let is_too_much = region.written + limits.resident_lines > limits.sets * limits.ways;
        match pushed_out {
            false => None,
            true if is_too_much => Some(AbortCause::Capacity),
            true => Some(AbortCause::Associativity),
        }
    }

    /// Aborts a core's region: puts memory back and frees its lines. The core learns of it at its next step.
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

    /// Aborts all regions: the run ends.
    pub(crate) fn abort_all(&mut self) {
        (0..self.regions.len()).for_each(|core| self.doom(core, AbortCause::System));
    }

    /// Why the core's region was aborted, if it was.
    pub(crate) fn aborted(&self, core: usize) -> Option<AbortCause> {
        self.regions[core].as_ref().and_then(|region| region.aborted)
    }

    /// Keeps what is in these bytes, for the case that the core's region is aborted.
    ///
    /// # Safety
    ///
    /// Until the region ends, the bytes may be read and written, by nobody but the cores of this simulation.
    pub(crate) unsafe fn log(&mut self, core: usize, address: *mut u8, bytes: usize) {
        if let Some(region) = &mut self.regions[core] {
            let start = region.old.len();
            // SAFETY: the bytes may be read, by this function's contract.
            region.old.extend_from_slice(unsafe { std::slice::from_raw_parts(address, bytes) });
            region.undo.push(Undo { address, start, bytes });
        }
    }

    /// Forgets an aborted region.
    pub(crate) fn forget(&mut self, core: usize) {
        self.spare.extend(self.regions[core].take());
    }

    pub(crate) fn commit(&mut self, core: usize) {
        // When the run has ended, the region is aborted already.
        if let Some(region) = self.regions[core].as_mut().filter(|region| region.aborted.is_none()) {
            region.undo.clear();
            region.old.clear();
            let lines = std::mem::take(&mut region.lines);
            self.release(core, lines);
            self.counts.commits += 1;
        }
        self.forget(core);
    }
}

impl Region {
    fn set(&mut self, limits: &Limits, set: usize) -> &mut [Way] {
        let start = set * limits.ways;
        let from_resident = (set + limits.sets - self.resident_from) % limits.sets;
        // A resident line is used all the time, so its way is never free for others.
        let resident = limits.resident_lines / limits.sets
            + usize::from(from_resident < limits.resident_lines % limits.sets);
        &mut self.ways[start..start + limits.ways.saturating_sub(resident).max(1)]
    }

    /// Whether the line is in the first level; it is then the one used last.
    fn touch(&mut self, limits: &Limits, line: u64, writes: bool) -> bool {
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

    /// Puts a line into a set. True if that pushed a written line out.
    fn place(&mut self, limits: &Limits, set: usize, line: Way) -> bool {
        let set = self.set(limits, set);
        let last = set.len() - 1;
        let gone = set[last];
        set.copy_within(..last, 1);
        set[0] = line;
        matches!(gone, Way::Written(_))
    }
}
