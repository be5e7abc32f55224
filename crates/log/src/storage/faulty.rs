//! Files in memory, with the faults of devices and file systems.

use super::Storage;
use hotrow_sync::random::Random;
use hotrow_sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Bytes that a device writes whole or not at all, at best.
const SECTOR: usize = 512;

/// A fault of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The operation fails and does nothing, except that a write may have written a part, and that a sync makes what was
    /// not synced before never durable.
    Error(io::ErrorKind),
    /// The operation and all later ones fail, as if the device or the process had gone.
    Broken,
    /// A write writes only a part, and says so. No fault of other operations.
    Short,
    /// A write does not reach the device but says that it does; a sync syncs nothing and says that it does. The device
    /// lies. No fault of other operations.
    Lost,
    /// A write writes one wrong byte; a read returns one. The device lies. No fault of other operations.
    Corrupt,
}

/// Probabilities of faults, 0 to 1, for each operation that can have them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Faults {
    /// A write is short.
    pub short_write: f64,
    /// A write fails.
    pub failed_write: f64,
    /// A sync of a file or of the directory fails.
    pub failed_sync: f64,
    /// A creation, renaming or deletion fails.
    pub failed_name: f64,
    /// A read fails, or asking for lengths and names, or the lock.
    pub failed_read: f64,
}

/// Storage in memory that does to files what devices and file systems do at their worst: what [`Storage`] allows, and with
/// [`Fault::Lost`] and [`Fault::Corrupt`] what it does not.
///
/// The same seed and the same calls give the same faults. Works in simulations.
#[derive(Debug)]
pub struct Faulty {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: Random,
    files: Vec<File>,
    /// The names as the process sees them, with the index of the file.
    names: BTreeMap<String, usize>,
    /// The names as they survive a loss of power, before the pending changes.
    durable_names: BTreeMap<String, usize>,
    pending: Vec<NameChange>,
    operations: u64,
    planned: BTreeMap<u64, Fault>,
    faults: Faults,
    broken: bool,
    capacity: Option<u64>,
    read_only: bool,
    locked: bool,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    /// Number of bytes that were there at the last successful sync.
    synced: usize,
    /// Writes since the last successful sync over bytes that were there then: the offset, and what was there.
    replaced: Vec<(usize, Vec<u8>)>,
    /// Ranges that are not on the device although they should be.
    holes: Vec<Range<usize>>,
}

#[derive(Debug)]
enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Delete(String),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, file) => drop(names.insert(name.clone(), *file)),
            // If the file's creation did not survive, neither does its new name.
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Delete(name) => drop(names.remove(name)),
        }
    }
}

/// Kind of an operation, which decides about the probability of a fault.
#[derive(Clone, Copy)]
enum Kind {
    Write,
    Sync,
    Name,
    Read,
}

fn injected(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, format!("injected fault ({kind})"))
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no file {name}"))
}

impl State {
    /// Counts an operation and draws its fault.
    fn step(&mut self, kind: Kind) -> io::Result<Option<Fault>> {
        self.operations += 1;
        if self.read_only && matches!(kind, Kind::Write | Kind::Name) {
            return Err(injected(io::ErrorKind::ReadOnlyFilesystem));
        }
        if self.broken {
            return Err(injected(io::ErrorKind::BrokenPipe));
        }
        let fault = self.planned.remove(&self.operations).or_else(|| self.draw(kind));
        if fault == Some(Fault::Broken) {
            self.broken = true;
        }
        Ok(fault)
    }

    fn draw(&mut self, kind: Kind) -> Option<Fault> {
        let faults = self.faults;
        let mut happens = |probability: f64| probability > 0.0 && self.random.chance(probability);
        let failed = match kind {
            Kind::Write if happens(faults.short_write) => return Some(Fault::Short),
            Kind::Write => faults.failed_write,
            Kind::Sync => faults.failed_sync,
            Kind::Name => faults.failed_name,
            Kind::Read => faults.failed_read,
        };
        happens(failed).then_some(Fault::Error(io::ErrorKind::Other))
    }

    /// As [`step`](Self::step), for operations that can only fail.
    fn step_or_fail(&mut self, kind: Kind) -> io::Result<()> {
        match self.step(kind)? {
            Some(Fault::Error(error)) => Err(injected(error)),
            Some(Fault::Broken) => Err(injected(io::ErrorKind::BrokenPipe)),
            _ => Ok(()),
        }
    }

    fn index(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| missing(name))
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    /// The bytes of a file that a loss of power leaves.
    fn survivors(file: &File, random: &mut Random) -> Vec<u8> {
        let mut bytes = file.bytes.clone();
        let unsynced = file.bytes.len() - file.synced;
        let kept = match random.below(4) {
            0 => unsynced,
            1 => 0,
            _ => random.between(0, unsynced as u64) as usize,
        };
        bytes.truncate(file.synced + kept);
        let tail = file.synced..bytes.len();
        // Nearly all, some or nearly none of the sectors survive.
        let survival = [0.02, 0.5, 0.98][random.below(3) as usize];
        for range in file.holes.iter().cloned().chain([tail]) {
            // A write that was lost may lie where nothing is left.
            let end = range.end.min(bytes.len());
            for sector in sectors(range.start, end) {
                if !random.chance(survival) {
                    lose(&mut bytes[sector], None, random);
                }
            }
        }
        for (start, old) in file.replaced.iter().rev() {
            for sector in sectors(*start, start + old.len()) {
                if !random.chance(survival) {
                    let old = &old[sector.start - start..sector.end - start];
                    lose(&mut bytes[sector], Some(old), random);
                }
            }
        }
        bytes
    }
}

/// The sectors of a range of bytes, the first and the last cut off.
fn sectors(mut start: usize, end: usize) -> impl Iterator<Item = Range<usize>> {
    std::iter::from_fn(move || {
        let sector = start..end.min((start / SECTOR + 1) * SECTOR);
        start = sector.end.max(start);
        (!sector.is_empty()).then_some(sector)
    })
}

/// Does to a sector what happens when its write did not end. What was there before is zeros, unless it is given.
fn lose(sector: &mut [u8], old: Option<&[u8]>, random: &mut Random) {
    let (torn, end) = (random.between(0, sector.len() as u64) as usize, sector.len());
    let mut put_back = |range: Range<usize>| match old {
        Some(old) => sector[range.clone()].copy_from_slice(&old[range]),
        None => sector[range].fill(0),
    };
    match random.below(4) {
        0 => put_back(0..end),
        1 => put_back(torn..end),
        2 => put_back(0..torn),
        _ => sector[torn..].iter_mut().for_each(|byte| *byte = random.bits() as u8),
    }
}

impl Faulty {
    /// Empty storage without faults, until some are asked for.
    pub fn new(seed: u64) -> Self {
        Self::with_files(seed, BTreeMap::new())
    }

    /// Storage with files, all of them durable.
    pub fn with_files(seed: u64, files: BTreeMap<String, Vec<u8>>) -> Self {
        let mut names = BTreeMap::new();
        let mut stored = Vec::new();
        for (name, bytes) in files {
            names.insert(name, stored.len());
            stored.push(File { synced: bytes.len(), bytes, ..File::default() });
        }
        let state = State {
            random: Random::seeded(seed),
            files: stored,
            durable_names: names.clone(),
            names,
            pending: Vec::new(),
            operations: 0,
            planned: BTreeMap::new(),
            faults: Faults::default(),
            broken: false,
            capacity: None,
            read_only: false,
            locked: false,
        };
        Self { state: Mutex::new(state) }
    }

    /// The content of all files, as the process sees it.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = lock(&self.state);
        state.names.iter().map(|(name, &file)| (name.clone(), state.files[file].bytes.clone())).collect()
    }

    /// Sets the probabilities of faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        lock(&self.state).faults = faults;
    }

    /// Has the operation with a number fail in a certain way. The first operation has number 1.
    pub fn plan(&self, operation: u64, fault: Fault) {
        lock(&self.state).planned.insert(operation, fault);
    }

    /// Number of operations so far.
    pub fn operations(&self) -> u64 {
        lock(&self.state).operations
    }

    /// Limits the bytes of all files together, or ends the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        lock(&self.state).capacity = bytes;
    }

    /// Makes the storage a medium that can only be read, or ends that.
    pub fn set_read_only(&self, read_only: bool) {
        lock(&self.state).read_only = read_only;
    }

    /// Ends the effect of [`Fault::Broken`], and all faults that were asked for: the process, not the power, was lost.
    pub fn repair(&self) {
        let mut state = lock(&self.state);
        state.broken = false;
        state.planned.clear();
        state.faults = Faults::default();
    }

    /// Changes a durable byte by exclusive or. Returns false if the file has no such byte.
    pub fn corrupt(&self, name: &str, offset: u64, mask: u8) -> bool {
        let mut state = lock(&self.state);
        let Ok(file) = state.index(name) else { return false };
        let byte = state.files[file].bytes.get_mut(offset as usize);
        byte.map(|byte| *byte ^= mask).is_some()
    }

    /// Storage that a loss of power at this moment may leave, decided by the seed: all that was synced, and of the rest each sector
    /// whole, in part, as garbage or not at all. Each change of a name since the directory was synced survives or not. The
    /// new storage has no faults, and is not locked.
    pub fn power_loss(&self, seed: u64) -> Self {
        let state = lock(&self.state);
        let mut random = Random::stream(seed, 1);
        let mut names = state.durable_names.clone();
        // Journals keep a prefix of the changes; others keep any of them.
        let journaled = random.chance(0.5);
        let prefix = random.between(0, state.pending.len() as u64) as usize;
        for (position, change) in state.pending.iter().enumerate() {
            if if journaled { position < prefix } else { random.chance(0.5) } {
                change.apply(&mut names);
            }
        }
        let files = names.into_iter().map(|(name, file)| {
            let bytes = State::survivors(&state.files[file], &mut random);
            (name, bytes)
        });
        Self::with_files(seed, files.collect())
    }
}

impl Storage for Faulty {
    fn lock(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.step_or_fail(Kind::Read)?;
        if state.locked {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "another log has the storage"));
        }
        state.locked = true;
        Ok(())
    }

    fn unlock(&self) {
        lock(&self.state).locked = false;
    }

    fn create(&self, name: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.step_or_fail(Kind::Name)?;
        let file = state.files.len();
        state.files.push(File::default());
        state.change(NameChange::Create(name.to_owned(), file));
        Ok(())
    }

    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.state);
        let fault = state.step(Kind::Write)?;
        let file = state.index(name)?;
        let old_length = state.files[file].bytes.len();
        let start = offset as usize;
        if start > old_length {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a write leaves a hole in the file"));
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let mut length = bytes.len();
        let mut result = None;
        match fault {
            Some(Fault::Error(io::ErrorKind::Interrupted)) => {
                return Err(injected(io::ErrorKind::Interrupted));
            }
            Some(Fault::Error(error)) => {
                length = state.random.below(bytes.len() as u64 + 1) as usize;
                result = Some(injected(error));
            }
            Some(Fault::Broken) => {
                length = state.random.below(bytes.len() as u64 + 1) as usize;
                result = Some(injected(io::ErrorKind::BrokenPipe));
            }
            Some(Fault::Short) => length = state.random.between(1, bytes.len() as u64) as usize,
            _ => {}
        }
        if let Some(capacity) = state.capacity {
            let used: u64 = state.names.values().map(|&file| state.files[file].bytes.len() as u64).sum();
            let room = (old_length - start) as u64 + capacity.saturating_sub(used);
            if room == 0 {
                return Err(injected(io::ErrorKind::StorageFull));
            }
            length = length.min(room as usize);
        }
        let at = state.random.below(length.max(1) as u64) as usize;
        let end = start + length;
        let stored = &mut state.files[file];
        if start < stored.synced.min(end) {
            stored.replaced.push((start, stored.bytes[start..stored.synced.min(end)].to_vec()));
        }
        stored.bytes.resize(old_length.max(end), 0);
        stored.bytes[start..end].copy_from_slice(&bytes[..length]);
        match fault {
            Some(Fault::Corrupt) => stored.bytes[start + at] ^= 1 << (at % 8),
            Some(Fault::Lost) => stored.holes.push(start..end),
            _ => {}
        }
        result.map_or(Ok(length), Err)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        let fault = state.step(Kind::Sync)?;
        let file = state.index(name)?;
        let stored = &mut state.files[file];
        let unsynced = stored.synced..stored.bytes.len();
        let result = match fault {
            Some(Fault::Broken) => return Err(injected(io::ErrorKind::BrokenPipe)),
            Some(Fault::Error(error)) => Err(injected(error)),
            Some(Fault::Lost) => Ok(()),
            _ => {
                stored.synced = stored.bytes.len();
                stored.replaced.clear();
                return Ok(());
            }
        };
        // The system takes the pages for clean from now on, so no later sync writes them.
        stored.synced = stored.bytes.len();
        let replaced = std::mem::take(&mut stored.replaced);
        stored.holes.push(unsynced);
        stored.holes.extend(replaced.into_iter().map(|(start, old)| start..start + old.len()));
        result
    }

    fn read(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut state = lock(&self.state);
        let fault = state.step(Kind::Read)?;
        let file = state.index(name)?;
        match fault {
            Some(Fault::Error(error)) => return Err(injected(error)),
            Some(Fault::Broken) => return Err(injected(io::ErrorKind::BrokenPipe)),
            _ => {}
        }
        let rest = state.files[file].bytes.get(offset as usize..).unwrap_or_default();
        let mut length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        if length > 0 && matches!(fault, Some(Fault::Short | Fault::Corrupt)) {
            let at = state.random.below(length as u64) as usize;
            if fault == Some(Fault::Short) {
                length = at + 1;
            } else {
                into[at] ^= 1 << (at % 8);
            }
        }
        Ok(length)
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        let mut state = lock(&self.state);
        state.step_or_fail(Kind::Read)?;
        let file = state.index(name)?;
        Ok(state.files[file].bytes.len() as u64)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.step_or_fail(Kind::Name)?;
        state.index(from)?;
        state.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.step_or_fail(Kind::Name)?;
        state.index(name)?;
        state.change(NameChange::Delete(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = lock(&self.state);
        state.step_or_fail(Kind::Read)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        match state.step(Kind::Sync)? {
            Some(Fault::Error(error)) => Err(injected(error)),
            Some(Fault::Broken) => Err(injected(io::ErrorKind::BrokenPipe)),
            Some(Fault::Lost) => Ok(()),
            _ => {
                state.durable_names = state.names.clone();
                state.pending.clear();
                Ok(())
            }
        }
    }
}
