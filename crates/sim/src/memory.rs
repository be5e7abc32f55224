//! The costs of memory accesses: private caches, shared caches, and the directory between them.
//!
//! # The model
//!
//! A line is held by no cache, by some (shared), or by one alone (exclusive). A load takes a copy; a write
//! invalidates all other copies first. The cost of an access depends on the holders of the line:
//!
//! | the line is | load | write |
//! |---|---|---|
//! | in the core's own private caches | hit | hit if exclusive, else the others' copies are invalidated |
//! | exclusive to another core | transfer | transfer |
//! | shared, or in a third level | hit in the third level, or transfer from another socket | the same, or the invalidation if that takes longer |
//! | in no cache | memory | memory |
//!
//! A line is busy while it moves to a new owner. A request that comes in the meantime waits until the line has
//! arrived and the operation that fetched it is done. So requests for a contended word queue, and a word that
//! all cores change has a throughput of one operation per transfer.
//!
//! A plain store stalls its core for a part of its miss only (the store buffer). A later atomic operation or
//! fence waits until the store is done.
//!
//! docs/simulator.md lists what the model leaves out.

use crate::cache::Tags;
use crate::directory::{Directory, NOBODY};
use crate::machine::{LINE_BYTES, Machine};
use crate::profile::Served;
use crate::work::WorkCycles;

/// The number of accesses to one line that overlap: a load takes four or five cycles, but one begins in each cycle.
const PIPELINED: u64 = 4;

/// The kind of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// A read.
    Load,
    /// A write without a read.
    Store,
    /// A read and a write in one atomic step; also a compare-and-swap that fails.
    ReadModifyWrite,
}

/// The numbers of accesses, by the place that served them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accesses {
    /// Served by the core's own first level.
    pub l1: u64,
    /// Served by the core's own second level.
    pub l2: u64,
    /// Served by the socket's third level.
    pub l3: u64,
    /// Served by another core of the socket, invalidations included.
    pub same_socket: u64,
    /// Served by another socket, invalidations included.
    pub cross_socket: u64,
    /// Served by memory.
    pub memory: u64,
    /// The time that requests waited for busy lines, over all cores, in virtual nanoseconds.
    pub queued_ns: u64,
}

/// Costs in picoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Picoseconds {
    l1: u64,
    l1_again: u64,
    l2: u64,
    l3: u64,
    same_socket: u64,
    cross_socket: u64,
    invalidate_same_socket: u64,
    invalidate_cross_socket: u64,
    memory: u64,
    mesh_hop: u64,
    atomic: u64,
    fence: u64,
    pub(crate) pause: u64,
    pub(crate) work: u64,
    pub(crate) clock: u64,
    pub(crate) yield_now: u64,
    pub(crate) park: u64,
    pub(crate) unpark: u64,
    pub(crate) wake: u64,
}

/// Converts nanoseconds to picoseconds.
pub(crate) fn picoseconds(nanoseconds: f64) -> u64 {
    (nanoseconds * 1000.0).round() as u64
}

#[derive(Debug)]
struct Private {
    l1: Tags,
    l2: Tags,
    /// The time at which the last pending store will be done.
    stored_at: u64,
    /// The address of the line that was accessed last, and the time until which another access to it overlaps.
    last_line: u64,
    overlaps_until: u64,
}

/// The caches of a machine that the cores in use need.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) costs: Picoseconds,
    pub(crate) cycles: WorkCycles,
    directory: Directory,
    private: Vec<Private>,
    shared: Vec<Tags>,
    cores_per_socket: usize,
    mesh_columns: usize,
    load_stall: u64,
    store_stall: u64,
    sequential_stall: u64,
    /// The time after an access in which the next one still overlaps with it.
    overlap: u64,
    accesses: Accesses,
    queued_ps: u64,
    /// The place that served the last access, and the time for which the access keeps its line busy.
    last: (Served, u64),
    /// True if caches are modelled; otherwise every access costs a hit.
    modelled: bool,
}

impl Memory {
    /// The caches of `machine` that `cores` virtual cores use. Unless `modelled`, all accesses cost the same.
    pub(crate) fn new(machine: &Machine, cores: usize, modelled: bool) -> Self {
        let caches = cores.min(machine.physical_cores());
        let sockets = caches.div_ceil(machine.topology.cores_per_socket);
        let lines = |kib: usize| kib * 1024 / LINE_BYTES;
        let private = || Private {
            l1: Tags::new(lines(machine.caches.l1_kib), machine.caches.l1_ways),
            l2: Tags::new(lines(machine.caches.l2_kib), machine.caches.l2_ways),
            stored_at: 0,
            last_line: u64::MAX,
            overlaps_until: 0,
        };
        let shared = || Tags::new(lines(machine.caches.l3_kib), machine.caches.l3_ways);
        let costs = &machine.nanoseconds;
        Self {
            costs: Picoseconds {
                l1: picoseconds(costs.l1),
                l1_again: (picoseconds(costs.l1) / PIPELINED).max(1),
                l2: picoseconds(costs.l2),
                l3: picoseconds(costs.l3),
                same_socket: picoseconds(costs.same_socket),
                cross_socket: picoseconds(costs.cross_socket),
                invalidate_same_socket: picoseconds(costs.invalidate_same_socket),
                invalidate_cross_socket: picoseconds(costs.invalidate_cross_socket),
                memory: picoseconds(costs.memory),
                mesh_hop: picoseconds(costs.mesh_hop),
                atomic: picoseconds(costs.atomic),
                fence: picoseconds(costs.fence),
                pause: picoseconds(costs.pause),
                work: picoseconds(costs.work),
                clock: picoseconds(costs.clock),
                yield_now: picoseconds(costs.yield_now),
                park: picoseconds(costs.park),
                unpark: picoseconds(costs.unpark),
                wake: picoseconds(costs.wake),
            },
            cycles: machine.cycles.clone(),
            directory: Directory::new(caches),
            private: (0..if modelled { caches } else { 0 }).map(|_| private()).collect(),
            shared: (0..if modelled { sockets } else { 0 }).map(|_| shared()).collect(),
            cores_per_socket: machine.topology.cores_per_socket,
            mesh_columns: machine.topology.mesh_columns,
            load_stall: machine.percent.load_stall.round() as u64,
            store_stall: machine.percent.store_stall.round() as u64,
            sequential_stall: machine.percent.sequential_stall.round() as u64,
            overlap: picoseconds(costs.l1) * PIPELINED,
            accesses: Accesses::default(),
            queued_ps: 0,
            last: (Served::Private, 0),
            modelled,
        }
    }

    pub(crate) fn accesses(&self) -> Accesses {
        Accesses { queued_ns: self.queued_ps / 1000, ..self.accesses }
    }

    /// The place that served the last access, and the time for which that access keeps its line busy.
    pub(crate) fn last(&self) -> (Served, u64) {
        self.last
    }

    /// The number of bytes that are accessed together: a line. Without a cache model it is a word, so that the allocator's placement
    /// does not matter.
    #[inline(always)]
    pub(crate) fn unit(&self) -> usize {
        if self.modelled { LINE_BYTES } else { size_of::<u64>() }
    }

    /// The number of lines touched so far.
    pub(crate) fn lines(&self) -> usize {
        self.directory.touched()
    }

    /// The number of the line at `line` (the line's address, not the byte's).
    pub(crate) fn number(&mut self, line: u64) -> u32 {
        self.directory.number(line)
    }

    /// Accesses the line at `line` (the line's address, not the byte's) at time `now` through a private cache.
    /// Returns the line's number and the time for which the core stalls.
    #[inline]
    pub(crate) fn access(&mut self, cache: usize, line: u64, kind: AccessKind, now: u64) -> (u32, u64) {
        let extra = if kind == AccessKind::ReadModifyWrite { self.costs.atomic } else { 0 };
        let number = self.directory.number(line);
        self.last = (Served::Private, 0);
        if !self.modelled {
            return (number, self.costs.l1 + extra);
        }
        let held = self.directory.holds(number, cache);
        let last = std::mem::replace(&mut self.private[cache].last_line, line);
        let overlaps = now <= self.private[cache].overlaps_until && kind != AccessKind::ReadModifyWrite;
        let drained = if kind == AccessKind::ReadModifyWrite { self.drain(cache, now) } else { 0 };
        if held && (kind == AccessKind::Load || self.directory.line(number).owner == cache as u16) {
            if line == last && overlaps {
                // The line is in the first level.
                self.accesses.l1 += 1;
                self.private[cache].overlaps_until = now + self.costs.l1_again + self.overlap;
                return (number, self.costs.l1_again);
            }
            let cost = drained + self.hit(cache, number) + extra;
            self.private[cache].overlaps_until = now + cost + self.overlap;
            return (number, cost);
        }
        let stall = self.miss(cache, number, kind, held, now + drained);
        let stall = if line == last.wrapping_add(1) && overlaps {
            (stall * self.sequential_stall / 100).max(self.costs.l1)
        } else {
            stall
        };
        self.private[cache].overlaps_until = now + drained + stall + self.overlap;
        (number, drained + stall)
    }

    /// The cost of a fence at time `now`.
    pub(crate) fn fence(&self, cache: usize, now: u64) -> u64 {
        self.costs.fence + if self.modelled { self.drain(cache, now) } else { 0 }
    }

    /// The time until all earlier stores are done.
    #[inline]
    fn drain(&self, cache: usize, now: u64) -> u64 {
        self.private[cache].stored_at.saturating_sub(now)
    }

    /// The cost of an access to a line in the private caches.
    #[inline]
    fn hit(&mut self, cache: usize, number: u32) -> u64 {
        let private = &mut self.private[cache];
        if private.l1.touch(number) {
            self.accesses.l1 += 1;
            return self.costs.l1;
        }
        private.l2.touch(number);
        private.l1.insert(number);
        self.accesses.l2 += 1;
        self.costs.l2
    }

    fn miss(&mut self, cache: usize, number: u32, kind: AccessKind, held: bool, now: u64) -> u64 {
        let socket = cache / self.cores_per_socket;
        let line = *self.directory.line(number);
        let arrives = line.busy_until_ps.max(now);
        self.queued_ps += arrives - now;
        let before = self.accesses;
        let (cost, moves) = self.fetch(cache, number, kind, held);
        let done = arrives + cost;
        let transfers = |accesses: &Accesses| accesses.same_socket + accesses.cross_socket;
        let served = match () {
            () if transfers(&self.accesses) != transfers(&before) => Served::Transfer,
            () if self.accesses.l1 != before.l1 => Served::Private,
            () => Served::Memory,
        };
        self.last = (served, if moves { cost } else { 0 });
        if kind == AccessKind::Load {
            if line.owner != NOBODY {
                self.share(number, line.owner);
            }
            let alone = self.directory.sharers(number).iter().all(|word| *word == 0) && line.sockets == 0;
            self.directory.add_sharer(number, cache);
            if alone {
                self.directory.line(number).owner = cache as u16;
            }
            if moves {
                self.directory.line(number).busy_until_ps = done;
            }
        } else {
            self.directory.make_exclusive(number, cache, socket);
            let extra = if kind == AccessKind::ReadModifyWrite { self.costs.atomic } else { self.costs.l1 };
            self.directory.line(number).busy_until_ps = done + extra;
        }
        self.keep(cache, number);
        if kind == AccessKind::Store {
            let stored_at = &mut self.private[cache].stored_at;
            *stored_at = done.max(*stored_at);
        }
        let stall = done - now;
        match kind {
            AccessKind::Load => (stall * self.load_stall / 100).max(self.costs.l1),
            AccessKind::Store => (stall * self.store_stall / 100).max(self.costs.l1),
            AccessKind::ReadModifyWrite => stall + self.costs.atomic,
        }
    }

    /// Returns the time that it takes to fetch the line, and true if the line moves and is busy meanwhile.
    fn fetch(&mut self, cache: usize, number: u32, kind: AccessKind, held: bool) -> (u64, bool) {
        let socket = cache / self.cores_per_socket;
        let line = *self.directory.line(number);
        if line.owner != NOBODY {
            let owner = usize::from(line.owner);
            return if owner / self.cores_per_socket == socket {
                self.accesses.same_socket += 1;
                (self.costs.same_socket + self.hops(cache, owner), true)
            } else {
                self.accesses.cross_socket += 1;
                (self.costs.cross_socket, true)
            };
        }
        let (near, far) = self.copies(cache, number);
        let here = near.is_some() || line.sockets >> socket & 1 == 1;
        let elsewhere = far || line.sockets & !(1 << socket) != 0;
        let home = number as usize % self.cores_per_socket;
        let third_level = self.costs.l3 + self.hops(cache, home);
        if kind != AccessKind::Load && elsewhere {
            self.accesses.cross_socket += 1;
            (self.costs.invalidate_cross_socket, true)
        } else if kind != AccessKind::Load && near.is_some() {
            self.accesses.same_socket += 1;
            let farthest = near.map_or(0, |farthest| self.hops(cache, farthest));
            (self.costs.invalidate_same_socket + farthest, true)
        } else if held {
            self.accesses.l1 += 1;
            (self.costs.l1, false)
        } else if here {
            self.accesses.l3 += 1;
            (third_level, false)
        } else if elsewhere {
            self.accesses.cross_socket += 1;
            (self.costs.cross_socket, false)
        } else {
            self.accesses.memory += 1;
            (self.costs.memory + self.hops(cache, home), false)
        }
    }

    /// Returns the farthest other cache of the same socket with a copy, and true if another socket's cache has
    /// one.
    fn copies(&self, cache: usize, number: u32) -> (Option<usize>, bool) {
        let first = cache / self.cores_per_socket * self.cores_per_socket;
        let mut near: Option<usize> = None;
        let mut far = false;
        for (index, word) in self.directory.sharers(number).iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                let other = index * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if other == cache {
                    continue;
                }
                if !(first..first + self.cores_per_socket).contains(&other) {
                    far = true;
                } else if near.is_none_or(|near| self.hops(cache, other) > self.hops(cache, near)) {
                    near = Some(other);
                }
            }
        }
        (near, far)
    }

    /// The added cost of the distance between two caches of a socket on a mesh.
    #[inline]
    fn hops(&self, from: usize, to: usize) -> u64 {
        if self.mesh_columns == 0 {
            return 0;
        }
        let coordinates = |cache: usize| {
            let inside = cache % self.cores_per_socket;
            (inside / self.mesh_columns, inside % self.mesh_columns)
        };
        let ((row, column), (to_row, to_column)) = (coordinates(from), coordinates(to));
        (row.abs_diff(to_row) + column.abs_diff(to_column)) as u64 * self.costs.mesh_hop
    }

    /// Makes an exclusive line shared: the owner keeps a copy, and its socket's third level gets one.
    fn share(&mut self, number: u32, owner: u16) {
        self.directory.line(number).owner = NOBODY;
        self.keep_in_socket(usize::from(owner) / self.cores_per_socket, number);
    }

    /// Puts a fetched line into the caches between memory and the core.
    fn keep(&mut self, cache: usize, number: u32) {
        let private = &mut self.private[cache];
        private.l1.insert(number);
        if let Some(evicted) = private.l2.insert(number) {
            self.directory.drop_copy(evicted, cache);
        }
        self.keep_in_socket(cache / self.cores_per_socket, number);
    }

    fn keep_in_socket(&mut self, socket: usize, number: u32) {
        if let Some(evicted) = self.shared[socket].insert(number) {
            self.directory.line(evicted).sockets &= !(1 << socket);
        }
        self.directory.line(number).sockets |= 1 << socket;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(machine: &str, cores: usize) -> Memory {
        Memory::new(&Machine::named(machine).unwrap(), cores, true)
    }

    fn cost(memory: &mut Memory, cache: usize, line: u64, kind: AccessKind, now: u64) -> u64 {
        memory.access(cache, line, kind, now).1
    }

    #[test]
    fn the_cost_of_a_line_grows_with_the_distance_of_its_owner() {
        let mut memory = memory("drp", 60);
        let late = 1_000_000_000;
        let from_memory = cost(&mut memory, 0, 1, AccessKind::ReadModifyWrite, 0);
        let own = cost(&mut memory, 0, 1, AccessKind::ReadModifyWrite, late);
        let near = cost(&mut memory, 1, 1, AccessKind::ReadModifyWrite, 2 * late);
        let far = cost(&mut memory, 15, 1, AccessKind::ReadModifyWrite, 3 * late);
        assert!(own < near && near < far, "{own} {near} {far}");
        assert!(own < from_memory);
        assert_eq!(own, memory.costs.l1 + memory.costs.atomic);
        assert_eq!(far, memory.costs.cross_socket + memory.costs.atomic);
    }

    #[test]
    fn requests_for_a_busy_line_queue() {
        let mut memory = memory("drp", 60);
        cost(&mut memory, 0, 1, AccessKind::Store, 0);
        let late = 1_000_000_000;
        let costs: Vec<u64> =
            (1..5).map(|cache| cost(&mut memory, cache, 1, AccessKind::ReadModifyWrite, late)).collect();
        let each = memory.costs.same_socket + memory.costs.atomic;
        assert_eq!(costs, [each, 2 * each, 3 * each, 4 * each]);
        assert!(memory.accesses().queued_ns > 0);
    }

    #[test]
    fn readers_share_a_line_and_a_writer_pays_for_invalidating_their_copies() {
        let mut memory = memory("drp", 60);
        cost(&mut memory, 0, 1, AccessKind::Store, 0);
        let late = 1_000_000_000;
        cost(&mut memory, 1, 1, AccessKind::Load, late);
        let second = cost(&mut memory, 2, 1, AccessKind::Load, 2 * late);
        assert_eq!(second, memory.costs.l3, "the third level has it now");
        assert_eq!(cost(&mut memory, 1, 1, AccessKind::Load, 3 * late), memory.costs.l1);
        let upgrade = cost(&mut memory, 1, 1, AccessKind::ReadModifyWrite, 4 * late);
        assert_eq!(upgrade, memory.costs.invalidate_same_socket + memory.costs.atomic);
        assert_eq!(cost(&mut memory, 2, 1, AccessKind::Load, 5 * late), memory.costs.same_socket);
    }

    #[test]
    fn a_core_that_alone_has_read_a_line_writes_it_at_the_cost_of_a_hit() {
        let mut memory = memory("drp", 60);
        cost(&mut memory, 0, 1, AccessKind::Load, 0);
        assert_eq!(cost(&mut memory, 0, 1, AccessKind::Store, 1_000_000), memory.costs.l1);
    }

    #[test]
    fn a_store_stalls_its_core_in_part_until_a_fence_or_an_atomic_waits_for_it() {
        let mut memory = memory("drp", 60);
        cost(&mut memory, 1, 1, AccessKind::Store, 0);
        cost(&mut memory, 0, 2, AccessKind::Store, 0);
        let late = 1_000_000_000;
        let stored = cost(&mut memory, 0, 1, AccessKind::Store, late);
        assert_eq!(stored, memory.costs.same_socket / 2);
        let left = memory.costs.same_socket - stored;
        assert_eq!(memory.fence(0, late + stored), left + memory.costs.fence);
        let atomic = cost(&mut memory, 0, 2, AccessKind::ReadModifyWrite, late + stored);
        assert_eq!(atomic, left + memory.costs.l1 + memory.costs.atomic);
        assert_eq!(memory.fence(0, 2 * late), memory.costs.fence);
    }

    #[test]
    fn a_million_elements_do_not_stay_in_a_private_cache() {
        let mut memory = memory("sto", 1);
        let lines = 1_000_000 * 8 / 64;
        for line in 0..lines {
            cost(&mut memory, 0, line, AccessKind::Load, 0);
        }
        let before = memory.accesses();
        for line in 0..lines {
            cost(&mut memory, 0, line, AccessKind::Load, 0);
        }
        let after = memory.accesses();
        assert!(after.l1 + after.l2 - before.l1 - before.l2 < lines / 20);
        assert!(after.l3 - before.l3 > lines * 9 / 10, "8 MB are in the third level of 12 MB");
    }

    #[test]
    fn on_a_mesh_each_hop_costs() {
        let mut memory = memory("mesh-1024", 1024);
        let late = 1_000_000_000;
        cost(&mut memory, 0, 1, AccessKind::Store, 0);
        let neighbour = cost(&mut memory, 1, 1, AccessKind::ReadModifyWrite, late);
        let corner = cost(&mut memory, 1023, 1, AccessKind::ReadModifyWrite, 2 * late);
        assert_eq!(corner - neighbour, (31 + 30 - 1) * memory.costs.mesh_hop);
    }

    #[test]
    fn without_a_model_all_accesses_cost_the_same() {
        let mut memory = Memory::new(&Machine::named("drp").unwrap(), 60, false);
        assert_eq!(memory.access(0, 1, AccessKind::Load, 0), memory.access(59, 1, AccessKind::Load, 0));
    }
}
