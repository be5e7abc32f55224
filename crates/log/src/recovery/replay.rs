//! Replay: from the checkpoint and the frames to the rows that survive.
//!
//! # Algorithm
//!
//! The log is read in rounds of a few MiB. In the first half of a round each thread checks and parses some of the frames,
//! and sorts their entries by a hash of structure and key into partitions. In the second half each thread takes some of
//! the partitions and makes the changes of their entries to the rows, in the order of the log. All epochs of a frame are
//! larger than those of the frames before it. So at the end of a round rows that were deleted can be forgotten, and the
//! memory needed is that of the rows alive, however long the log is.
//!
//! When all is read, each thread hands the rows of some partitions to the engine.

use super::checkpoint::BlockReader;
use super::rows::Rows;
use super::{Frame, Scanner, Survey};
use crate::catalog::Catalog;
use crate::entry::{self, Change, Entry};
use crate::layout::split_record;
use crate::logger::new_salt;
use crate::storage::Storage;
use crate::{OpenError, Stamp};
use foldhash::quality::FixedState;
use hotrow_sync::atomic::{AtomicUsize, Ordering};
use hotrow_sync::prefetch::prefetch_bytes;
use hotrow_sync::{Mutex, lock, thread};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

/// Progress of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes of checkpoint and log that have been read.
    pub bytes: u64,
    /// Bytes to be read in all.
    pub bytes_total: u64,
    /// Rows that the bytes read so far leave.
    pub rows: u64,
}

/// A row that survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveredRow<'a> {
    /// The number of its structure in the catalog.
    pub structure: u32,
    /// Its key.
    pub key: &'a [u8],
    /// The newest value of the whole row.
    pub value: &'a [u8],
    /// The newest values of those parts that were changed since, in the order of their numbers.
    pub overlays: &'a [(u32, &'a [u8])],
}

/// Partitions for each thread: enough to even out their sizes.
const PARTITIONS_PER_THREAD: usize = 16;
/// Threads beyond it would wait for the reading of files.
const THREADS_MAX: usize = 64;
/// Bytes that a thread parses at a time.
const UNIT_BYTES: usize = 256 << 10;

/// Items between two steps of prefetching.
const AHEAD: usize = 8;
/// Bytes of an entry after which the processor goes on loading by itself.
const PREFETCHED_BYTES: usize = 128;

/// An entry in the round's buffer.
struct Item {
    hash: u64,
    stamp: Stamp,
    at: usize,
}

/// Entries that were found: how many in all, and those that count, by partition.
#[derive(Default)]
struct Parsed {
    entries: u64,
    items: Vec<Vec<Item>>,
}

/// A part of a round that one thread parses: pieces of the buffer.
struct Unit {
    pieces: Range<usize>,
    parsed: Mutex<Result<Parsed, OpenError>>,
}

/// The rows so far.
struct Replay<'a> {
    threads: usize,
    partitions: Vec<Mutex<Rows>>,
    /// Seeded by a random number, so that nobody can make keys that collide; in a simulation always the same.
    hasher: FixedState,
    progress: Progress,
    tell: &'a (dyn Fn(Progress) + Sync),
}

/// The hash of a row's structure and key.
#[inline]
fn hash_of(hasher: &FixedState, entry: &Entry<'_>) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write_u32(entry.structure);
    hasher.write(entry.key);
    hasher.finish()
}

/// Calls `work` on several threads at once.
#[cfg(not(loom))]
fn on_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    if threads == 1 {
        return work();
    }
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
}

/// A model has no scoped threads.
#[cfg(loom)]
fn on_threads(_: usize, work: &(dyn Fn() + Sync)) {
    work();
}

/// Calls `work` once for each number below `count`, on several threads at once.
fn for_each_on_threads(threads: usize, count: usize, work: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    on_threads(threads.min(count).max(1), &|| {
        loop {
            // Relaxed: numbers must be unique, nothing else; the scope's end orders the work.
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            work(number);
        }
    });
}

/// The entries that count.
struct Wanted {
    /// Older records are in the checkpoint.
    epoch_min: u64,
    /// The structures of the catalog, in order.
    structures: Vec<u32>,
    next_structure: u32,
}

impl Wanted {
    fn new(catalog: &Catalog, epoch_min: u64) -> Self {
        let mut structures: Vec<u32> = catalog.entries.iter().map(|entry| entry.structure).collect();
        structures.sort_unstable();
        Self { epoch_min, structures, next_structure: catalog.next_structure }
    }

    /// True if the structure is there, false if it was dropped. An error if the catalog has never had it.
    #[inline]
    fn has(&self, structure: u32) -> Result<bool, String> {
        if structure >= self.next_structure {
            return Err(format!("an entry of structure {structure}, which the catalog lacks"));
        }
        Ok(self.structures.binary_search(&structure).is_ok())
    }
}

/// Bytes of the buffer that are parsed one after the other.
trait Piece: Sync {
    fn bytes(&self) -> usize;
    /// Checks the piece and calls `found` for each entry that counts with stamp, place and content. Returns the number of all.
    fn parse(
        &self,
        buffer: &[u8],
        file: &str,
        wanted: &Wanted,
        found: &mut dyn FnMut(Stamp, usize, &Entry<'_>),
    ) -> Result<u64, OpenError>;
}

/// Calls `found` with the place of each entry, of which the first one's is given. `corrupt` makes the error of an entry that
/// cannot be read.
#[inline]
fn for_each_entry(
    bytes: &[u8],
    first: usize,
    corrupt: &dyn Fn(usize, String) -> OpenError,
    mut found: impl FnMut(usize, &Entry<'_>) -> Result<(), OpenError>,
) -> Result<u64, OpenError> {
    let mut entries = entry::read(bytes);
    let mut count = 0;
    loop {
        let at = first + entries.offset();
        match entries.next() {
            None => return Ok(count),
            Some(Ok(entry)) => found(at, &entry)?,
            Some(Err(fault)) => return Err(corrupt(at, format!("an entry {}", fault.reason))),
        }
        count += 1;
    }
}

impl Piece for Frame {
    fn bytes(&self) -> usize {
        self.records().len()
    }

    fn parse(
        &self,
        buffer: &[u8],
        file: &str,
        wanted: &Wanted,
        found: &mut dyn FnMut(Stamp, usize, &Entry<'_>),
    ) -> Result<u64, OpenError> {
        if !self.is_intact(buffer) {
            return Err(self.corrupt(file, self.at, "the checksum of the frame is wrong"));
        }
        let range = self.records();
        let mut bytes = &buffer[range.clone()];
        let (mut records, mut entries) = (0_u64, 0);
        while !bytes.is_empty() {
            let at = range.end - bytes.len();
            let split = split_record(bytes);
            let (record, rest) =
                split.ok_or_else(|| self.corrupt(file, at, "a record is longer than its frame"))?;
            let epoch = record.stamp.epoch;
            if epoch < self.floor || epoch >= self.header.bound {
                return Err(self.corrupt(file, at, format!("a record of epoch {epoch} is not in its place")));
            }
            let entries_at = range.end - rest.len() - record.entries.len();
            entries += for_each_entry(
                record.entries,
                entries_at,
                &|at, reason| self.corrupt(file, at, reason),
                |at, entry| {
                    if epoch >= wanted.epoch_min
                        && wanted.has(entry.structure).map_err(|reason| self.corrupt(file, at, reason))?
                    {
                        found(record.stamp, at, entry);
                    }
                    Ok(())
                },
            )?;
            records += 1;
            bytes = rest;
        }
        if records != u64::from(self.header.records) {
            return Err(self.corrupt(file, self.at, "the number of its records is wrong"));
        }
        Ok(entries)
    }
}

impl Piece for super::checkpoint::Block {
    fn bytes(&self) -> usize {
        self.entries().len()
    }

    fn parse(
        &self,
        buffer: &[u8],
        file: &str,
        wanted: &Wanted,
        found: &mut dyn FnMut(Stamp, usize, &Entry<'_>),
    ) -> Result<u64, OpenError> {
        let range = self.entries();
        if crc32c::crc32c(&buffer[range.clone()]) != self.header.checksum {
            return Err(self.corrupt(file, self.at, "the checksum of the block is wrong"));
        }
        let corrupt = |at, reason| self.corrupt(file, at, reason);
        for_each_entry(&buffer[range.clone()], range.start, &corrupt, |at, entry| {
            if !matches!(entry.change, Change::Put(_)) {
                return Err(corrupt(at, "an entry is not that of a whole row".into()));
            }
            if wanted.has(entry.structure).map_err(|reason| corrupt(at, reason))? {
                found(Stamp::default(), at, entry);
            }
            Ok(())
        })
    }
}

impl Replay<'_> {
    /// Makes the changes of the entries in the pieces. Returns the number of entries.
    fn round<T: Piece>(
        &mut self,
        buffer: &[u8],
        pieces: &[T],
        file: &str,
        wanted: &Wanted,
        place: &dyn Fn(usize) -> u64,
    ) -> Result<u64, OpenError> {
        let units = self.units(pieces);
        let partitions = &self.partitions;
        let (hasher, count) = (&self.hasher, partitions.len());
        for_each_on_threads(self.threads, units.len(), &|number| {
            let unit = &units[number];
            let mut items: Vec<Vec<Item>> = (0..count).map(|_| Vec::new()).collect();
            let parsed = pieces[unit.pieces.clone()].iter().try_fold(0, |entries, piece| {
                let found = piece.parse(buffer, file, wanted, &mut |stamp, at, entry| {
                    let hash = hash_of(hasher, entry);
                    // The low bits are the slots' in the partition's table.
                    items[(hash >> 40) as usize % count].push(Item { hash, stamp, at });
                });
                Ok(entries + found?)
            });
            *lock(&unit.parsed) = parsed.map(|entries| Parsed { entries, items });
        });
        let mut parsed = Vec::with_capacity(units.len());
        for unit in units {
            parsed.push(unit.parsed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?);
        }
        let fault = Mutex::new(None);
        for_each_on_threads(self.threads, count, &|number| {
            let mut rows = lock(&partitions[number]);
            for unit in &parsed {
                let items = &unit.items[number];
                for (index, item) in items.iter().enumerate() {
                    // A search would wait for memory three times, so each wait is begun some items ahead.
                    let ahead = |steps: usize| items.get(index + steps * AHEAD);
                    ahead(3).into_iter().for_each(|item| rows.prefetch_slot(item.hash));
                    ahead(2).into_iter().for_each(|item| rows.prefetch_row(item.hash));
                    ahead(1).into_iter().for_each(|item| {
                        rows.prefetch_bytes(item.hash);
                        prefetch_bytes(&raw const buffer[item.at], PREFETCHED_BYTES);
                    });
                    // It was parsed before.
                    if let Some(Ok(entry)) = entry::read(&buffer[item.at..]).next() {
                        rows.apply(item.hash, item.stamp, &entry, item.at);
                    }
                }
            }
            if let Some(at) = rows.settle() {
                lock(&fault).get_or_insert(at);
            }
        });
        match fault.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(at) => Err(OpenError::corrupt(file, place(at), "a part of a row without the row")),
            None => Ok(parsed.iter().map(|unit| unit.entries).sum()),
        }
    }

    fn units<T: Piece>(&self, pieces: &[T]) -> Vec<Unit> {
        let mut units = Vec::new();
        let (mut start, mut bytes) = (0, 0);
        for (index, piece) in pieces.iter().enumerate() {
            bytes += piece.bytes();
            if bytes >= UNIT_BYTES || index + 1 == pieces.len() {
                units.push(Unit { pieces: start..index + 1, parsed: Mutex::new(Ok(Parsed::default())) });
                (start, bytes) = (index + 1, 0);
            }
        }
        units
    }

    fn advance(&mut self, bytes: u64) {
        self.progress.bytes += bytes;
        self.progress.rows = self.partitions.iter().map(|rows| lock(rows).len() as u64).sum();
        (self.tell)(self.progress);
    }
}

/// Reads all and hands the rows to `apply`. Returns the last stamp.
pub(super) fn replay(
    storage: &dyn Storage,
    survey: &Survey,
    threads: usize,
    progress: &(dyn Fn(Progress) + Sync),
    apply: &(dyn Fn(RecoveredRow<'_>) + Sync),
) -> Result<Stamp, OpenError> {
    let (partitions, last) = rows(storage, survey, threads, progress)?;
    let threads = threads.clamp(1, THREADS_MAX);
    for_each_on_threads(threads, partitions.len(), &|number| {
        let mut rows = std::mem::take(&mut *lock(&partitions[number]));
        rows.for_each(|structure, key, value, overlays| {
            apply(RecoveredRow { structure, key, value, overlays });
        });
    });
    Ok(last)
}

/// Reads all, and counts the rows that survive. Returns the last stamp, too.
pub(super) fn count_rows(
    storage: &dyn Storage,
    survey: &Survey,
    threads: usize,
) -> Result<(u64, Stamp), OpenError> {
    let (partitions, last) = rows(storage, survey, threads, &|_| ())?;
    Ok((partitions.iter().map(|rows| lock(rows).len() as u64).sum(), last))
}

/// Reads all.
fn rows(
    storage: &dyn Storage,
    survey: &Survey,
    threads: usize,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<(Vec<Mutex<Rows>>, Stamp), OpenError> {
    let threads = threads.clamp(1, THREADS_MAX);
    let count = threads * PARTITIONS_PER_THREAD;
    let hasher = FixedState::with_seed(new_salt());
    let bytes_total = survey.report.checkpoint_bytes + survey.report.segment_bytes;
    let mut replay = Replay {
        threads,
        partitions: (0..count).map(|_| Mutex::new(Rows::default())).collect(),
        hasher,
        progress: Progress { bytes_total, ..Progress::default() },
        tell,
    };
    let mut buffer = Vec::new();
    let catalog = survey.catalog.clone().unwrap_or_default();
    if let Some(file) = &survey.checkpoint {
        let mut reader = BlockReader::new(storage, file);
        let mut blocks = Vec::new();
        let mut entries = 0;
        let wanted = Wanted::new(&catalog, 0);
        loop {
            let start = reader.offset;
            reader.next(&mut buffer, &mut blocks)?;
            if blocks.is_empty() {
                break;
            }
            entries += replay.round(&buffer, &blocks, &file.name, &wanted, &|at| start + at as u64)?;
            replay.advance(reader.offset - start);
        }
        if entries != file.rows {
            let reason = format!("it has {entries} rows instead of {}", file.rows);
            return Err(OpenError::corrupt(&file.name, file.length, reason));
        }
    }
    let epoch_min = survey.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.epoch);
    let wanted = Wanted::new(&catalog, epoch_min);
    let mut order_max = 0;
    let mut frames = Vec::new();
    for (index, (segment, end)) in survey.segments.iter().enumerate() {
        let mut scanner = Scanner::new(storage, &catalog, segment, *end);
        loop {
            let start = scanner.offset;
            if let Some(bad) = scanner.next(&mut buffer, &mut frames)? {
                return Err(OpenError::corrupt(&segment.name, bad.offset, bad.reason));
            }
            if frames.is_empty() {
                break;
            }
            replay.round(&buffer, &frames, &segment.name, &wanted, &|at| start + at as u64)?;
            order_max = last_order(&buffer, &frames, survey.bound - 1).unwrap_or(order_max);
            replay.advance(scanner.offset - start);
        }
        let next = survey.segments.get(index + 1).map(|(next, _)| &next.header);
        if next.is_some_and(|next| next.sequence != scanner.sequence || next.floor < scanner.bound) {
            let reason = "the segment after it does not begin where it ends";
            return Err(OpenError::corrupt(&segment.name, scanner.offset, reason));
        }
    }
    Ok((replay.partitions, Stamp { epoch: survey.bound - 1, order: order_max }))
}

/// Largest order of the records of the last epoch, if the frames have any.
fn last_order(buffer: &[u8], frames: &[Frame], epoch: u64) -> Option<u64> {
    let mut order = None;
    for frame in frames.iter().filter(|frame| frame.header.bound > epoch) {
        let mut bytes = &buffer[frame.records()];
        while let Some((record, rest)) = split_record(bytes) {
            if record.stamp.epoch == epoch {
                order = order.max(Some(record.stamp.order));
            }
            bytes = rest;
        }
    }
    order
}
