//! The catalog: which database this is, which files it has, and which structures (tables, objects) entries belong to.
//!
//! The file is written anew for each change, under a temporary name, and renamed. So it is whole at all times, and any
//! fault in it is damage. Whatever it does not list is a leftover of a step that was not completed; whatever it lists must be there.

use crate::files::{CheckpointState, SegmentState};
use crate::layout::{
    CATALOG, CATALOG_MAGIC, TEMPORARY, begin_header, check_header, put_u32, put_u64, put_u128, seal_header,
    u32_at, u64_at, u128_at,
};
use crate::shared::Shared;
use crate::storage::{Storage, create_new, read_full, with_retries, write_all};
use crate::{Failure, OpenError};
use hotrow_sync::atomic::Ordering;
use hotrow_sync::lock;
use std::collections::BTreeSet;
use std::io;

/// A structure whose changes are logged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogEntry {
    /// The number that entries have for it.
    pub structure: u32,
    /// The name by which it is found again.
    pub name: String,
    /// Facts that the engine needs to read its rows (its types, for instance). The log does not look at them.
    pub shape: Vec<u8>,
}

/// Content of the catalog.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Catalog {
    /// True while a backup is being written: its files are not all there.
    pub(crate) is_unfinished_backup: bool,
    /// Random number of the database, in all its files.
    pub(crate) identity: u128,
    /// Number of changes so far. Frames have that of the catalog that they need.
    pub(crate) generation: u32,
    /// Number that no structure has had. Smaller ones without an entry were dropped.
    pub(crate) next_structure: u32,
    /// Number of the checkpoint; 0 for none.
    pub(crate) checkpoint: u64,
    /// Numbers of the first segment that recovery needs and of the last one there is; 0 in a new log.
    pub(crate) segments: (u64, u64),
    /// Bytes of the last segment that were durable when the catalog was written.
    pub(crate) last_bytes: u64,
    pub(crate) entries: Vec<CatalogEntry>,
    /// Numbers that were given out, and have no entry yet. In memory only.
    pub(crate) reserved: BTreeSet<u32>,
}

/// Bytes of the file before the entries.
const HEADER: usize = 80;

/// Bytes that a catalog may have, so that a damaged length takes no more memory.
const BYTES_MAX: usize = 256 << 20;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

impl Catalog {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        begin_header(&mut bytes, CATALOG_MAGIC);
        put_u32(&mut bytes, 12, u32::from(self.is_unfinished_backup));
        put_u128(&mut bytes, 16, self.identity);
        put_u32(&mut bytes, 32, self.generation);
        put_u32(&mut bytes, 36, self.next_structure);
        put_u64(&mut bytes, 40, self.checkpoint);
        put_u64(&mut bytes, 48, self.segments.0);
        put_u64(&mut bytes, 56, self.segments.1);
        put_u64(&mut bytes, 64, self.last_bytes);
        put_u32(&mut bytes, 72, self.entries.len() as u32);
        for entry in &self.entries {
            bytes.extend_from_slice(&entry.structure.to_le_bytes());
            bytes.extend_from_slice(&(entry.name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&(entry.shape.len() as u32).to_le_bytes());
            bytes.extend_from_slice(entry.name.as_bytes());
            bytes.extend_from_slice(&entry.shape);
        }
        bytes.extend_from_slice(&[0; 4]);
        seal_header(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, OpenError> {
        if bytes.len() < 16 {
            return Err(OpenError::corrupt(CATALOG, 0, "it is cut off"));
        }
        check_header(bytes, CATALOG_MAGIC).map_err(|fault| OpenError::header(CATALOG, fault))?;
        if bytes.len() < HEADER + 4 {
            return Err(OpenError::corrupt(CATALOG, 0, "it is cut off"));
        }
        let end = bytes.len() - 4;
        let mut rest = &bytes[HEADER..end];
        let mut entries: Vec<CatalogEntry> = Vec::new();
        let next_structure = u32_at(bytes, 36);
        while !rest.is_empty() {
            let offset = (end - rest.len()) as u64;
            let malformed = || OpenError::corrupt(CATALOG, offset, "an entry is malformed");
            let (entry, behind) = split_entry(rest).ok_or_else(malformed)?;
            if entry.structure >= next_structure {
                return Err(malformed());
            }
            entries.push(entry);
            rest = behind;
        }
        if entries.len() != u32_at(bytes, 72) as usize {
            return Err(OpenError::corrupt(CATALOG, 72, "the number of its entries is wrong"));
        }
        let segments = (u64_at(bytes, 48), u64_at(bytes, 56));
        if segments.0 > segments.1 || (segments.0 == 0) != (segments.1 == 0) || segments.1 == u64::MAX {
            return Err(OpenError::corrupt(CATALOG, 48, "the numbers of its segments are wrong"));
        }
        Ok(Self {
            is_unfinished_backup: u32_at(bytes, 12) != 0,
            identity: u128_at(bytes, 16),
            generation: u32_at(bytes, 32),
            next_structure,
            checkpoint: u64_at(bytes, 40),
            segments,
            last_bytes: u64_at(bytes, 64),
            entries,
            reserved: BTreeSet::new(),
        })
    }

    /// Reads the catalog. `None` if there is none.
    pub(crate) fn load(storage: &dyn Storage) -> Result<Option<Self>, OpenError> {
        let failed = |error| OpenError::io("read", CATALOG, 0, error);
        match with_retries(|| storage.length(CATALOG)) {
            Ok(length) if length > BYTES_MAX as u64 => {
                let reason = format!("it has {length} bytes, and a catalog has at most {BYTES_MAX}");
                return Err(OpenError::corrupt(CATALOG, 0, reason));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let mut bytes = Vec::new();
        loop {
            let have = bytes.len();
            bytes.resize(have + CHUNK, 0);
            let read = read_full(storage, CATALOG, have as u64, &mut bytes[have..]).map_err(failed)?;
            bytes.truncate(have + read);
            if read < CHUNK {
                return Self::decode(&bytes).map(Some);
            }
        }
    }

    /// Writes the catalog so that it is durable, whole or not at all.
    pub(crate) fn store(&self, storage: &dyn Storage) -> Result<(), (&'static str, io::Error)> {
        let bytes = self.encode();
        if bytes.len() > BYTES_MAX {
            return Err(("write", io::Error::new(io::ErrorKind::FileTooLarge, "the catalog is too large")));
        }
        let temporary = format!("{CATALOG}{TEMPORARY}");
        create_new(storage, &temporary).map_err(|error| ("create", error))?;
        write_all(storage, &temporary, 0, &bytes).map_err(|error| ("write", error))?;
        storage.sync(&temporary).map_err(|error| ("sync", error))?;
        storage.rename(&temporary, CATALOG).map_err(|error| ("rename", error))?;
        storage.sync_directory().map_err(|error| ("sync the directory of", error))
    }

    /// The error of a file that needs a later catalog.
    pub(crate) fn is_older_than(&self, file: &str, offset: u64) -> OpenError {
        let reason = format!(
            "it is an older one (change {}): {file} needs a later one at byte {offset}",
            self.generation
        );
        OpenError::corrupt(CATALOG, 32, reason)
    }
}

/// The first entry, and the bytes behind it.
fn split_entry(bytes: &[u8]) -> Option<(CatalogEntry, &[u8])> {
    let (header, rest) = bytes.split_at_checked(12)?;
    let (name, rest) = rest.split_at_checked(u32_at(header, 4) as usize)?;
    let (shape, rest) = rest.split_at_checked(u32_at(header, 8) as usize)?;
    let name = std::str::from_utf8(name).ok()?.to_owned();
    Some((CatalogEntry { structure: u32_at(header, 0), name, shape: shape.to_vec() }, rest))
}

/// A change of the log's files.
#[derive(Default)]
pub(crate) struct FilesChange {
    /// A segment that was begun. It has no frames yet.
    pub(crate) segment: Option<SegmentState>,
    /// A checkpoint that was written.
    pub(crate) checkpoint: Option<CheckpointState>,
}

impl Shared {
    /// Gives out a number that no structure has had, nor will have but the one that is entered with it.
    pub(crate) fn reserve_structure(&self) -> u32 {
        let mut catalog = lock(&self.catalog);
        let behind_reserved = catalog.reserved.last().map_or(0, |last| last.saturating_add(1));
        let number = catalog.next_structure.max(behind_reserved);
        catalog.reserved.insert(number);
        number
    }

    /// Adds an entry to the catalog, or replaces the one of the same structure. A failure is one of the whole log.
    pub(crate) fn put_catalog(&self, entry: CatalogEntry) -> Result<(), Failure> {
        self.change_entries(|catalog| {
            match catalog.entries.iter_mut().find(|known| known.structure == entry.structure) {
                Some(known) => *known = entry,
                None => {
                    let is_reserved = catalog.reserved.remove(&entry.structure);
                    if entry.structure < catalog.next_structure && !is_reserved {
                        return Err(Failure::Dropped { structure: entry.structure });
                    }
                    catalog.next_structure = catalog.next_structure.max(entry.structure.saturating_add(1));
                    catalog.entries.push(entry);
                }
            }
            Ok(())
        })
    }

    /// Takes a structure out of the catalog. A failure is one of the whole log.
    pub(crate) fn drop_structure(&self, structure: u32) -> Result<(), Failure> {
        self.change_entries(|catalog| {
            catalog.entries.retain(|entry| entry.structure != structure);
            Ok(())
        })
    }

    fn change_entries(
        &self,
        change: impl FnOnce(&mut Catalog) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let claim = self.claim()?;
        self.check()?;
        let mut refused = None;
        let stored = self.change_catalog(&**claim.storage(), FilesChange::default(), |catalog| {
            refused = change(catalog).err();
        });
        match (refused, stored) {
            (Some(refused), _) => Err(refused),
            (None, Ok(())) => Ok(()),
            (None, Err((operation, error))) => {
                let failure = Failure::io(operation, CATALOG, 0, error);
                self.fail(failure.clone());
                Err(failure)
            }
        }
    }

    /// Changes the catalog, and then the list of files. Segments that the checkpoint makes superfluous are taken out, to be deleted.
    ///
    /// After an error the old catalog or the new one may be on the device. Both hold: no file of either was deleted.
    pub(crate) fn change_catalog(
        &self,
        storage: &dyn Storage,
        files_change: FilesChange,
        change: impl FnOnce(&mut Catalog),
    ) -> Result<(), (&'static str, io::Error)> {
        let FilesChange { segment, checkpoint } = files_change;
        // Held to the end: changes come one after the other.
        let mut catalog = lock(&self.catalog);
        let mut changed = catalog.clone();
        change(&mut changed);
        {
            let files = lock(&self.files);
            let newest = checkpoint.or(files.checkpoint);
            changed.checkpoint = newest.map_or(0, |newest| newest.number);
            let first = files.first_needed(newest.map_or(0, |newest| newest.epoch), segment.as_ref());
            if let (Some(first), Some(last)) = (first, segment.as_ref().or(files.segments.back())) {
                changed.segments = (first, last.number);
                changed.last_bytes = last.bytes;
            }
        }
        if changed == *catalog {
            return Ok(());
        }
        changed.generation = changed.generation.saturating_add(1);
        changed.store(storage)?;
        lock(&self.files).change(segment, checkpoint, changed.segments.0, self.is_limited());
        // Release: pairs with the acquire of the logger, which enters it in frames.
        self.generation.store(changed.generation, Ordering::Release);
        *catalog = changed;
        Ok(())
    }
}
