//! The catalog: which structures (tables, objects) the log's entries belong to.
//!
//! The file is written anew for each change, under a temporary name, and renamed. So it is whole at all times, and any
//! fault in it is damage.

use crate::layout::{
    CATALOG, CATALOG_MAGIC, TEMPORARY, begin_header, check_header, put_u32, seal_header, u32_at,
};
use crate::shared::Shared;
use crate::storage::{Storage, read_full, with_retries, write_all};
use crate::{Failure, OpenError};
use hotrow_sync::lock;
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

/// Bytes of the file before the entries: magic, version, number of entries.
const HEADER: usize = 16;

fn encode(entries: &[CatalogEntry]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    begin_header(&mut bytes, CATALOG_MAGIC);
    put_u32(&mut bytes, 12, entries.len() as u32);
    for entry in entries {
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

/// The first entry, and the bytes behind it.
fn split_entry(bytes: &[u8]) -> Option<(CatalogEntry, &[u8])> {
    let (header, rest) = bytes.split_at_checked(12)?;
    let (name, rest) = rest.split_at_checked(u32_at(header, 4) as usize)?;
    let (shape, rest) = rest.split_at_checked(u32_at(header, 8) as usize)?;
    let name = std::str::from_utf8(name).ok()?.to_owned();
    Some((CatalogEntry { structure: u32_at(header, 0), name, shape: shape.to_vec() }, rest))
}

/// Reads the catalog. `None` if there is none.
pub(crate) fn load(storage: &dyn Storage) -> Result<Option<Vec<CatalogEntry>>, OpenError> {
    let failed = |error| OpenError::io("read", CATALOG, 0, error);
    let length = match with_retries(|| storage.length(CATALOG)) {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    let read = read_full(storage, CATALOG, 0, &mut bytes).map_err(failed)?;
    bytes.truncate(read);
    if bytes.len() < HEADER + 4 {
        return Err(OpenError::corrupt(CATALOG, 0, "it is cut off"));
    }
    check_header(&bytes, CATALOG_MAGIC).map_err(|fault| OpenError::header(CATALOG, fault))?;
    let end = bytes.len() - 4;
    let mut rest = &bytes[HEADER..end];
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let offset = (end - rest.len()) as u64;
        let malformed = || OpenError::corrupt(CATALOG, offset, "an entry is malformed");
        let (entry, behind) = split_entry(rest).ok_or_else(malformed)?;
        entries.push(entry);
        rest = behind;
    }
    if entries.len() != u32_at(&bytes, 12) as usize {
        return Err(OpenError::corrupt(CATALOG, 12, "the number of its entries is wrong"));
    }
    Ok(Some(entries))
}

/// Writes the catalog so that it is durable, whole or not at all.
pub(crate) fn store(
    storage: &dyn Storage,
    entries: &[CatalogEntry],
) -> Result<(), (&'static str, io::Error)> {
    let temporary = format!("{CATALOG}{TEMPORARY}");
    storage.create(&temporary).map_err(|error| ("create", error))?;
    write_all(storage, &temporary, 0, &encode(entries)).map_err(|error| ("write", error))?;
    storage.sync(&temporary).map_err(|error| ("sync", error))?;
    storage.rename(&temporary, CATALOG).map_err(|error| ("rename", error))?;
    storage.sync_directory().map_err(|error| ("sync the directory of", error))
}

impl Shared {
    /// Adds an entry to the catalog, or replaces the one of the same structure. A failure is one of the whole log.
    pub(crate) fn put_catalog(&self, entry: CatalogEntry) -> Result<(), Failure> {
        let mut catalog = lock(&self.catalog);
        let claim = self.claim()?;
        self.check()?;
        let mut changed = catalog.clone();
        match changed.iter_mut().find(|known| known.structure == entry.structure) {
            Some(known) => *known = entry,
            None => changed.push(entry),
        }
        if let Err((operation, error)) = store(&**claim.storage(), &changed) {
            let failure = Failure::io(operation, CATALOG, 0, error);
            self.fail(failure.clone());
            return Err(failure);
        }
        *catalog = changed;
        Ok(())
    }
}
