//! Copying a cluster to a directory.

use super::rows::WholeRows;
use super::{MoveError, MoveProgress, Moved, files};
use crate::catalog::{Named, Shape, named};
use crate::cluster::Cluster;
use crate::layout::behind_row;
use crate::marker::until;
use crate::shared::Shared;
use crate::store::{At, Commit, Freshness, Hold, Mutation, Outcome, Span, Stamped, StoreError, Version};
use hotrow_durable::OpenError;
use hotrow_durable::storage::{Directory, Storage};
use hotrow_durable::structures::{SEQUENCE, SEQUENCE_KEY, Structure, StructuresWriter, TABLE};
use hotrow_stored::{Malformed, Reader, Schema, Stored, Writer};
use hotrow_sync::Arc;
use hotrow_sync::clock::now;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// Copies a cluster to a directory that is empty or not there, as a durable database. Continues a copy that was not completed, as long as the store
/// keeps the state. Until it is completed, the directory has the ending `.copying`. `tell` is called from time to time.
///
/// # Errors
///
/// [`MoveError::Nothing`]; [`MoveError::NotEmpty`]; [`MoveError::Write`] if the disk is full; [`MoveError::Store`] if the store does not answer for as long as the
/// cluster's settings allow, or does not keep a state for long enough.
pub fn into_directory(
    cluster: &Cluster,
    directory: &Path,
    tell: &mut dyn FnMut(MoveProgress),
) -> Result<Moved, MoveError> {
    check_free(directory)?;
    check_tables(&cluster.shared)?;
    let partial = partial(directory)?;
    let copied = match into_partial(cluster, &partial, tell)? {
        Some(copied) => copied,
        None => {
            // It has a bookmark: it is a copy's.
            fs::remove_dir_all(&partial).map_err(files(&partial))?;
            into_partial(cluster, &partial, tell)?.ok_or(StoreError::Compacted { version: 0 })?
        }
    };
    let (writer, moved) = copied;
    writer.flush()?;
    // The log has a handle of the directory, so that it goes on under the new name. What is left is to delete the bookmark.
    fs::rename(&partial, directory).map_err(files(directory))?;
    sync_names(&partial).map_err(files(directory))?;
    writer.end()?;
    Ok(moved)
}

fn into_partial(
    cluster: &Cluster,
    partial: &Path,
    tell: &mut dyn FnMut(MoveProgress),
) -> Result<Option<(StructuresWriter, Moved)>, MoveError> {
    let storage = Directory::new(partial)
        .map_err(|reason| OpenError::Directory { path: partial.to_owned(), reason })?;
    into_storage(cluster, Arc::new(storage), tell)
}

/// Checks that a cluster has a table.
fn check_tables(shared: &Shared) -> Result<(), MoveError> {
    let (span, deadline) = (shared.layout.catalogs(), now() + shared.settings.deadline);
    let page = until(deadline, || shared.store.range(&span, At::Newest, 1, deadline))?;
    match page.rows.is_empty() {
        true => Err(MoveError::Nothing { place: "the cluster".to_owned() }),
        false => Ok(()),
    }
}

/// Checks that a directory is empty, or not there.
fn check_free(directory: &Path) -> Result<(), MoveError> {
    match fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(found) => Err(MoveError::NotEmpty {
                place: directory.display().to_string(),
                found: format!("it has {:?}", found.map_err(files(directory))?.file_name()),
            }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(files(directory)(error)),
    }
}

/// The name of a directory that is not complete.
fn partial(directory: &Path) -> Result<PathBuf, MoveError> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no name at its end");
    let mut name = directory.file_name().ok_or_else(|| files(directory)(no_name()))?.to_owned();
    name.push(".copying");
    Ok(directory.with_file_name(name))
}

/// Makes the name of a directory durable.
fn sync_names(directory: &Path) -> io::Result<()> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) { File::open(parent.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}

/// The state of a copy, in the log.
#[derive(Debug, Clone, PartialEq, Eq, Stored)]
#[hotrow(crate = "hotrow_stored::facade")]
struct Bookmark {
    cluster: u128,
    version: Version,
    /// The lowest key that was not copied.
    at: Vec<u8>,
    rows: u64,
}

/// The bytes of something of which nothing can be refused.
fn bytes_of(of: &impl Stored) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = Writer::write(&mut bytes, |to| of.put(to));
    debug_assert_eq!(written, Ok(()));
    bytes
}

/// Copies all to a storage, which is not ended. `None` if there is an unfinished copy of another cluster, or of a state that is not kept any
/// more.
pub(crate) fn into_storage(
    cluster: &Cluster,
    storage: Arc<dyn Storage>,
    tell: &mut dyn FnMut(MoveProgress),
) -> Result<Option<(StructuresWriter, Moved)>, MoveError> {
    let shared = &*cluster.shared;
    let identity = identity(shared)?;
    let (mut writer, found) = StructuresWriter::open(storage)?;
    let deadline = now() + shared.settings.deadline;
    let hold = |version| until(deadline, || shared.store.hold(version, deadline));
    let found = found.map(|bytes| Reader::read(&bytes, Bookmark::get)).transpose();
    let (bookmark, held): (Bookmark, Hold) = match found {
        Ok(None) => {
            let newest = || shared.store.read_version(Freshness::Newest, deadline);
            let held = until(deadline, || shared.store.hold(newest()?, deadline))?;
            let bookmark = Bookmark { cluster: identity, version: held.version(), at: Vec::new(), rows: 0 };
            writer.step([], &bytes_of(&bookmark))?;
            writer.flush()?;
            (bookmark, held)
        }
        Ok(Some(bookmark)) if bookmark.cluster == identity => match hold(bookmark.version) {
            Ok(held) => (bookmark, held),
            Err(StoreError::Compacted { .. } | StoreError::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        _ => return Ok(None),
    };
    let rows_before = bookmark.rows;
    let mut copy = Copy { shared, writer, bookmark };
    let copied = copy.run(tell);
    drop(held);
    match copied {
        Ok(tables) => {
            let moved = Moved { tables, rows: copy.bookmark.rows, rows_before };
            Ok(Some((copy.writer, moved)))
        }
        // The hold was one of a server that has not heard of this process for too long.
        Err(MoveError::Store(StoreError::Compacted { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The number by which a cluster is known again. It gets one if it has none.
fn identity(shared: &Shared) -> Result<u128, MoveError> {
    let (key, deadline) = (shared.layout.identity(), now() + shared.settings.deadline);
    let found = until(deadline, || {
        let read = shared.store.get_many(std::slice::from_ref(&key), At::Newest, deadline)?;
        if let Some(found) = read.values.into_iter().next().flatten() {
            return Ok(found.value);
        }
        let random = [0; 2].map(|_| RandomState::new().hash_one(0u8).to_le_bytes());
        let put = Mutation::Put { key: key.clone(), value: random.concat() };
        let commit = Commit { keys: vec![(key.clone(), 0)], mutations: vec![put], ..Commit::default() };
        match shared.store.commit(&commit, deadline) {
            // The next look tells which one it is.
            Ok(Outcome::Committed(_) | Outcome::Conflict(_)) | Err(StoreError::Unknown { .. }) => {
                Err(StoreError::Unreachable { reason: "the cluster gets its identity".to_owned() })
            }
            Err(error) => Err(error),
        }
    })?;
    let number = found.try_into().map(u128::from_le_bytes);
    number.map_err(|_| MoveError::Malformed("an identity that is no number".to_owned()))
}

/// A copy that goes on.
struct Copy<'c> {
    shared: &'c Shared,
    writer: StructuresWriter,
    bookmark: Bookmark,
}

/// A table of the cluster.
struct Table {
    structure: Structure,
    shape: Shape,
}

impl Copy<'_> {
    /// Copies all that is left. Returns the number of tables.
    fn run(&mut self, tell: &mut dyn FnMut(MoveProgress)) -> Result<u64, MoveError> {
        let tables = self.tables()?;
        for (at, table) in tables.iter().enumerate() {
            self.writer.enter(at as u32 + 1, &table.structure)?;
        }
        let sequences = self.sequences()?;
        for (at, (structure, number)) in sequences.iter().enumerate() {
            if tables.iter().any(|table| table.structure.name == structure.name) {
                let (table, reason) = (structure.name.clone(), "a sequence has the same name".to_owned());
                return Err(MoveError::Table { table, reason });
            }
            let at = (tables.len() + at) as u32 + 1;
            self.writer.enter(at, structure)?;
            let (key, row) = (bytes_of(&SEQUENCE_KEY), bytes_of(number));
            self.writer.step([(at, &*key, &*row)], &bytes_of(&self.bookmark))?;
        }
        for (at, table) in tables.iter().enumerate() {
            self.copy(at as u32 + 1, table, tell)?;
        }
        Ok((tables.len() + sequences.len()) as u64)
    }

    /// A part of a range.
    fn page(&self, span: &Span) -> Result<(Vec<(Vec<u8>, Stamped)>, bool), MoveError> {
        let (shared, at) = (self.shared, At::Version(self.bookmark.version));
        let deadline = now() + shared.settings.deadline;
        let page = until(deadline, || shared.store.range(span, at, shared.settings.page.max(1), deadline))?;
        Ok((page.rows, page.has_more))
    }

    /// The tables, in the order of their numbers, which is that of their keys.
    fn tables(&self) -> Result<Vec<Table>, MoveError> {
        let layout = &self.shared.layout;
        let kinds = self.all(layout.kinds(), |bytes| String::from_utf8(bytes).ok())?;
        let mut tables = Vec::new();
        for (name, shape) in self.all(layout.catalogs(), |bytes| Shape::from_bytes(&bytes).ok())? {
            // The program declares indexes in the local database, which makes their entries when it is opened.
            if !shape.has_users_rows() {
                continue;
            }
            let kind = kinds.iter().find(|(of, _)| *of == name).map_or(TABLE, |(_, kind)| kind);
            let (kind, key, row) = (kind.to_owned(), shape.key.clone(), shape.row.clone());
            tables.push(Table { structure: Structure { name, kind, key, row }, shape });
        }
        tables.sort_unstable_by_key(|table| table.shape.number);
        Ok(tables)
    }

    /// The sequences, and the number of each below which all are taken.
    fn sequences(&self) -> Result<Vec<(Structure, u64)>, MoveError> {
        let number = |bytes: Vec<u8>| bytes.try_into().ok().map(u64::from_le_bytes);
        let sequences = self.all(self.shared.layout.sequences(), number)?.into_iter();
        let structure = |name| {
            let (key, row) = (Schema::of::<u64>(), Schema::of::<u64>());
            Structure { name, kind: SEQUENCE.to_owned(), key, row }
        };
        Ok(sequences.map(|(name, number)| (structure(name), number)).collect())
    }

    /// All values of a kind, by name.
    fn all<T>(&self, span: Span, read: impl Fn(Vec<u8>) -> Option<T>) -> Result<Vec<(String, T)>, MoveError> {
        let found = named(self.shared, span, At::Version(self.bookmark.version))?;
        let read = |(name, value): Named| match read(value) {
            Some(value) => Ok((name, value)),
            None => Err(MoveError::Malformed(format!("something else as the entry of {name}"))),
        };
        found.into_iter().map(read).collect()
    }

    /// Copies what is left of a table.
    fn copy(
        &mut self,
        number: u32,
        table: &Table,
        tell: &mut dyn FnMut(MoveProgress),
    ) -> Result<(), MoveError> {
        let mut span = Span::of_prefix(&self.shared.layout.table(table.shape.number));
        let form = WholeRows::of(&table.shape);
        span.start = span.start.max(self.bookmark.at.clone());
        let mut parts: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        while !span.is_empty() {
            let (found, has_more) = self.page(&span)?;
            match found.last() {
                Some((last, _)) if has_more => span.start = [&**last, &[0]].concat(),
                _ => span.start.clone_from(&span.end),
            }
            parts.extend(found.into_iter().map(|(key, found)| (key, found.value)));
            // The last row may be cut off.
            let behind = if span.is_empty() { parts.len() } else { begin_of_last_row(&parts) };
            let rest = parts.split_off(behind);
            let whole = std::mem::replace(&mut parts, rest);
            let Some((last, _)) = whole.last() else { continue };
            let at = behind_row(last);
            let malformed = |malformed: Malformed| MoveError::Table {
                table: table.structure.name.clone(),
                reason: malformed.to_string(),
            };
            let rows = joined(&form, whole).map_err(malformed)?;
            let rows_so_far = self.bookmark.rows + rows.len() as u64;
            let bookmark = Bookmark { at, rows: rows_so_far, ..self.bookmark.clone() };
            let entries = rows.iter().map(|(key, row)| (number, &**key, &**row));
            self.writer.step(entries, &bytes_of(&bookmark))?;
            self.bookmark = bookmark;
            tell(MoveProgress { rows: rows_so_far, rows_total: None });
        }
        Ok(())
    }
}

/// The name of the row to which a part belongs.
fn row_of(part: &[u8]) -> &[u8] {
    part.split_last().map_or(part, |(_, row)| row)
}

fn begin_of_last_row(parts: &[(Vec<u8>, Vec<u8>)]) -> usize {
    let Some((last, _)) = parts.last() else { return 0 };
    parts.iter().rposition(|(key, _)| row_of(key) != row_of(last)).map_or(0, |at| at + 1)
}

/// The rows that have these parts, without those that were deleted.
fn joined(form: &WholeRows, parts: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Malformed> {
    let mut rows = Vec::new();
    for row in parts.chunk_by(|a, b| row_of(&a.0) == row_of(&b.0)) {
        let number = |key: &[u8]| usize::from(key.last().copied().unwrap_or_default());
        let there = row.iter().filter(|(_, value)| !value.is_empty());
        let there: Vec<_> = there.map(|(key, value)| (number(key), value.clone())).collect();
        if !there.is_empty() {
            rows.push(form.join(there)?);
        }
    }
    Ok(rows)
}
