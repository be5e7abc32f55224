//! Copying a directory into a cluster.

use super::digest::Digest;
use super::image::KeyForm;
use super::{MoveError, MoveProgress, Moved, rows};
use crate::catalog::{Form, Shape};
use crate::cluster::Cluster;
use crate::layout::part;
use crate::marker::{unique_numbers, until};
use crate::resuming::{delete_all, step};
use crate::shared::Shared;
use crate::store::{At, Commit, Limits, Marker, Mutation, Outcome, Span, StoreError, Version};
use hotrow_durable::OpenError;
use hotrow_durable::storage::{Directory, Storage};
use hotrow_durable::structures::{SEQUENCE, Structure, Structures, TABLE};
use hotrow_stored::{Reader, Stored, Writer};
use hotrow_sync::Arc;
use hotrow_sync::clock::now;
use std::path::Path;

/// Copies the database in a directory, which no process has open, into a cluster without tables. Continues a copy of the same state that
/// was not completed, and does nothing after one that was. `tell` is called from time to time.
///
/// # Errors
///
/// [`MoveError::Open`] if there is no database; [`MoveError::Nothing`]; [`MoveError::Table`] for keys whose order only the program knows, and for rows that are larger
/// than the store takes, before anything is written; [`MoveError::NotEmpty`]; [`MoveError::Store`] if the store does not answer for as
/// long as the cluster's settings allow.
pub fn into_cluster(
    directory: &Path,
    cluster: &Cluster,
    tell: &mut dyn FnMut(MoveProgress),
) -> Result<Moved, MoveError> {
    let storage = Directory::existing(directory)
        .map_err(|reason| OpenError::Directory { path: directory.to_owned(), reason })?;
    storage_into_cluster(Arc::new(storage), cluster, tell)
}

pub(crate) fn storage_into_cluster(
    storage: Arc<dyn Storage>,
    cluster: &Cluster,
    tell: &mut dyn FnMut(MoveProgress),
) -> Result<Moved, MoveError> {
    let source = Source::read(storage)?;
    let mut copy = Copy::begin(&source, &cluster.shared)?;
    copy.run(tell)
}

/// A database that is to be copied.
struct Source {
    structures: Structures,
    forms: Vec<KeyForm>,
    digest: u128,
    rows: u64,
}

/// A row: its key in the store, and its value.
type Row = (Vec<u8>, Vec<u8>);

impl Source {
    fn read(storage: Arc<dyn Storage>) -> Result<Self, MoveError> {
        let structures = Structures::read(storage, &|_| ())?;
        if structures.list().len() == 0 {
            return Err(MoveError::Nothing { place: "the directory".to_owned() });
        }
        let (mut digest, mut rows, mut forms) = (Digest::default(), 0, Vec::new());
        for (at, structure) in structures.list().enumerate() {
            let Structure { name, kind, key, row } = structure;
            let failed = |reason| MoveError::Table { table: name.clone(), reason };
            forms.push(KeyForm::of(key).map_err(failed)?);
            digest.add(&[name.as_bytes(), kind.as_bytes(), &key.to_bytes(), &row.to_bytes()]);
            let counted = structures.for_each_row(at, |key, row| {
                digest.add(&[&(at as u64).to_le_bytes(), key, row]);
                rows += u64::from(kind != SEQUENCE);
                Ok::<_, String>(())
            });
            counted.map_err(failed)?;
        }
        Ok(Self { structures, forms, digest: digest.number(), rows })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.structures.list().map(|structure| &*structure.name)
    }

    /// Visits the rows of a structure, whose keys in the store begin with `prefix`, in any order.
    fn for_each_row(
        &self,
        at: usize,
        prefix: &[u8],
        mut visit: impl FnMut(Row) -> Result<(), String>,
    ) -> Result<(), MoveError> {
        let visited = self.structures.for_each_row(at, |key, row| {
            let mut place = prefix.to_vec();
            self.forms[at].put_image(key, &mut place).map_err(|malformed| malformed.to_string())?;
            visit((part(&place, 0), rows::value(key, row)?))
        });
        visited.map_err(|reason| self.failed(at, reason))
    }

    /// The number below which all of a sequence are taken, if any are.
    fn sequence(&self, at: usize) -> Result<Option<u64>, MoveError> {
        let mut number = None;
        let read = self.structures.for_each_row(at, |_, row| {
            number = Some(Reader::read(row, u64::get).map_err(|malformed| malformed.to_string())?);
            Ok::<_, String>(())
        });
        read.map_err(|reason| self.failed(at, reason))?;
        Ok(number)
    }

    fn failed(&self, at: usize, reason: String) -> MoveError {
        MoveError::Table { table: self.names().nth(at).unwrap_or_default().to_owned(), reason }
    }

    /// The rows of a structure in the order of their keys.
    fn sorted(&self, at: usize, prefix: &[u8]) -> Result<Vec<Row>, MoveError> {
        let mut rows = Vec::new();
        self.for_each_row(at, prefix, |row| {
            rows.push(row);
            Ok(())
        })?;
        rows.sort_unstable();
        match rows.windows(2).find(|two| two[0].0 == two[1].0) {
            None => Ok(rows),
            Some(_) => Err(self.failed(at, "two of its keys have the same place in the order".to_owned())),
        }
    }
}

/// The state of a copy, in the store.
#[derive(Debug, Clone, PartialEq, Eq, Stored)]
#[hotrow(crate = "hotrow_stored::facade")]
struct Mark {
    /// The digest of the database.
    digest: u128,
    /// The number of the first table. The others follow.
    first: u32,
    tables: u32,
    /// Tables of an earlier copy that are not deleted yet: the first number, and how many.
    superseded: Vec<(u32, u32)>,
    /// The last key that was copied.
    at: Vec<u8>,
    /// Rows that were copied.
    rows: u64,
    is_finished: bool,
}

impl Mark {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Nothing of it can be refused.
        let written = Writer::write(&mut bytes, |to| self.put(to));
        debug_assert_eq!(written, Ok(()));
        bytes
    }
}

/// A copy that goes on.
struct Copy<'c> {
    source: &'c Source,
    shared: &'c Shared,
    mark: Mark,
    /// The version of the mark.
    version: Version,
}

impl<'c> Copy<'c> {
    /// Finds an unfinished copy, or begins one.
    fn begin(source: &'c Source, shared: &'c Shared) -> Result<Self, MoveError> {
        let found = read_mark(shared)?;
        let mark = match &found {
            Some((mark, _)) if mark.digest == source.digest => mark.clone(),
            Some((mark, _)) if mark.is_finished => {
                return Err(not_empty("it has a copy of another database, or of another state"));
            }
            other => {
                check_sizes(source, shared)?;
                if other.is_none() {
                    check_empty(shared)?;
                }
                let tables = source.forms.len() as u32;
                let deadline = now() + shared.settings.deadline;
                let (numbers, count) = (shared.layout.numbers("table"), u64::from(tables));
                let first = unique_numbers(&*shared.store, numbers, 1, count, deadline)?;
                let first = u32::try_from(first).ok().filter(|first| first.checked_add(tables).is_some());
                let first = first.ok_or_else(|| MoveError::Malformed("no numbers for tables".to_owned()))?;
                let mut superseded = Vec::new();
                if let Some((mark, _)) = other {
                    superseded.clone_from(&mark.superseded);
                    superseded.push((mark.first, mark.tables));
                }
                let (digest, at) = (source.digest, Vec::new());
                Mark { digest, first, tables, superseded, at, rows: 0, is_finished: false }
            }
        };
        let (before, version) = match found {
            Some((before, version)) => (Some(before), version),
            None => (None, 0),
        };
        let is_new = before.as_ref() != Some(&mark);
        let mut copy = Self { source, shared, mark: mark.clone(), version };
        if is_new {
            copy.advance(Commit::default(), mark)?;
        }
        Ok(copy)
    }

    /// Copies all that is left.
    fn run(&mut self, tell: &mut dyn FnMut(MoveProgress)) -> Result<Moved, MoveError> {
        let (rows_before, rows_total) = (self.mark.rows, self.source.rows);
        let moved = Moved { tables: u64::from(self.mark.tables), rows: rows_total, rows_before };
        if self.mark.is_finished {
            return Ok(Moved { rows_before: rows_total, ..moved });
        }
        self.delete_superseded()?;
        for (at, structure) in self.source.structures.list().enumerate() {
            if structure.kind == SEQUENCE {
                continue;
            }
            let prefix = self.shared.layout.table(self.mark.first + at as u32);
            if Span::of_prefix(&prefix).end <= self.mark.at {
                continue;
            }
            let rows = self.source.sorted(at, &prefix)?;
            loop {
                tell(MoveProgress { rows: self.mark.rows, rows_total: Some(rows_total) });
                let rest = &rows[rows.partition_point(|(key, _)| *key <= self.mark.at)..];
                let batch = fitting(rest, &self.shared.store.limits(), self.overhead());
                let Some((last, _)) = batch.last() else { break };
                let copied = self.mark.rows + batch.len() as u64;
                let mark = Mark { at: last.clone(), rows: copied, ..self.mark.clone() };
                let puts = batch.iter().cloned().map(|(key, value)| Mutation::Put { key, value });
                self.advance(Commit { mutations: puts.collect(), ..Commit::default() }, mark)?;
            }
        }
        while !self.mark.is_finished {
            let finished = Mark { is_finished: true, ..self.mark.clone() };
            self.advance(catalog(self.source, self.shared, self.mark.first)?, finished)?;
        }
        Ok(moved)
    }

    /// The bytes of the marker of a commit, without the last key.
    fn overhead(&self) -> usize {
        let mark = Mark { at: Vec::new(), rows: u64::MAX, ..self.mark.clone() };
        overhead(self.shared, &mark)
    }

    /// Deletes the rows of earlier copies.
    fn delete_superseded(&mut self) -> Result<(), MoveError> {
        let shared = self.shared;
        for (first, tables) in self.mark.superseded.clone() {
            let start = shared.layout.table(first);
            delete_all(shared, &Span { start, end: shared.layout.table(first.saturating_add(tables)) })?;
        }
        while !self.mark.superseded.is_empty() {
            let mark = Mark { superseded: Vec::new(), ..self.mark.clone() };
            self.advance(Commit::default(), mark)?;
        }
        Ok(())
    }

    /// Commits, and replaces the mark. If the mark is another one of the same copy, that one counts: an earlier sending was applied, or
    /// another process copies, too.
    fn advance(&mut self, commit: Commit, next: Mark) -> Result<(), MoveError> {
        let (shared, value) = (self.shared, next.to_bytes());
        let (key, replaces) = (shared.layout.moving(), self.version);
        let conflict = match step(shared, commit, Marker { key, replaces, value })? {
            Outcome::Committed(version) => {
                (self.mark, self.version) = (next, version);
                return Ok(());
            }
            Outcome::Conflict(key) => key,
        };
        match read_mark(shared)? {
            Some((_, version)) if version == self.version => {
                let name = conflict.unwrap_or_default().escape_ascii().to_string();
                Err(MoveError::Disturbed(format!("others have made a table or a sequence: {name}")))
            }
            Some((mark, version)) if (mark.digest, mark.first) == (next.digest, next.first) => {
                (self.mark, self.version) = (mark, version);
                Ok(())
            }
            _ => Err(MoveError::Disturbed("another copy to the same cluster goes on".to_owned())),
        }
    }
}

fn read_mark(shared: &Shared) -> Result<Option<(Mark, Version)>, MoveError> {
    let (key, deadline) = (shared.layout.moving(), now() + shared.settings.deadline);
    let read = until(deadline, || shared.store.get_many(std::slice::from_ref(&key), At::Newest, deadline))?;
    let Some(found) = read.values.into_iter().next().flatten() else { return Ok(None) };
    match Reader::read(&found.value, Mark::get) {
        Ok(mark) => Ok(Some((mark, found.version))),
        Err(malformed) => Err(MoveError::Malformed(format!("a mark that cannot be read: {malformed}"))),
    }
}

fn not_empty(found: &str) -> MoveError {
    MoveError::NotEmpty { place: "the cluster".to_owned(), found: found.to_owned() }
}

/// Checks that a cluster has nothing but numbers and markers.
fn check_empty(shared: &Shared) -> Result<(), MoveError> {
    let deadline = now() + shared.settings.deadline;
    for span in shared.layout.all_but_numbers() {
        let page = until(deadline, || shared.store.range(&span, At::Newest, 1, deadline))?;
        if let Some((key, _)) = page.rows.first() {
            return Err(not_empty(&format!("it has the key {}", key.escape_ascii())));
        }
    }
    Ok(())
}

/// Checks that the store takes each row, and the catalog.
fn check_sizes(source: &Source, shared: &Shared) -> Result<(), MoveError> {
    let limits = shared.store.limits();
    let mark = Mark {
        digest: source.digest,
        first: u32::MAX,
        tables: u32::MAX,
        // As many as there are after copies that were ended several times.
        superseded: vec![(u32::MAX, u32::MAX); 8],
        at: Vec::new(),
        rows: u64::MAX,
        is_finished: true,
    };
    let overhead = overhead(shared, &mark);
    for at in 0..source.forms.len() {
        source.for_each_row(at, &shared.layout.table(0), |(key, value)| {
            let bytes = overhead + 2 * key.len() + value.len();
            if bytes <= limits.bytes_max {
                return Ok(());
            }
            let key = key.escape_ascii();
            Err(format!("a row takes {bytes} bytes, and the store takes {}: {key}", limits.bytes_max))
        })?;
    }
    let mut last = catalog(source, shared, 0)?;
    last.marker = Some(Marker { key: shared.layout.moving(), replaces: 0, value: mark.to_bytes() });
    let refused = |reason| StoreError::Refused { reason: format!("there are too many tables: {reason}") };
    Ok(limits.check(&last).map_err(refused)?)
}

/// The bytes that a commit has beside its rows and the last key, which the mark has, too.
fn overhead(shared: &Shared, mark: &Mark) -> usize {
    // The number of the last key's bytes may take ten.
    2 * shared.layout.moving().len() + 8 + mark.to_bytes().len() + 10
}

/// The first rows, as many as go into one commit; one at least, unless there are none.
fn fitting<'r>(rows: &'r [Row], limits: &Limits, overhead: usize) -> &'r [Row] {
    let most = limits.changes_max.saturating_sub(1).max(1).min(rows.len());
    let mut bytes = overhead;
    let fit = rows[..most].iter().take_while(|(key, value)| {
        bytes += key.len() + value.len();
        bytes + key.len() <= limits.bytes_max
    });
    &rows[..fit.count().max(1).min(rows.len())]
}

/// The commit by which the tables can be found.
fn catalog(source: &Source, shared: &Shared, first: u32) -> Result<Commit, MoveError> {
    let mut commit = Commit::default();
    for (at, structure) in source.structures.list().enumerate() {
        let Structure { name, kind, key, row } = structure.clone();
        if kind == SEQUENCE {
            if let Some(number) = source.sequence(at)? {
                let place = shared.layout.sequence(&name);
                commit.keys.push((place.clone(), 0));
                commit.mutations.push(Mutation::Put { key: place, value: number.to_le_bytes().to_vec() });
            }
            continue;
        }
        let shape = Shape { number: first + at as u32, ..Shape::new(Form::Copied, (key, row)) };
        let value = shape.to_bytes().map_err(|reason| source.failed(at, reason))?;
        let place = shared.layout.catalog(&name);
        commit.keys.push((place.clone(), 0));
        commit.mutations.push(Mutation::Put { key: place, value });
        if kind != TABLE {
            commit.mutations.push(Mutation::Put { key: shared.layout.kind(&name), value: kind.into_bytes() });
        }
    }
    Ok(commit)
}
