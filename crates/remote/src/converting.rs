//! Conversion of tables that were copied from a directory.
//!
//! A directory does not say which groups of columns and which indexes a program declares. So a copied table has whole rows, and an entry of
//! the catalog with which nobody can open it ([`Form::Copied`]). The first program that opens it makes it a table of the declared form:
//!
//! 1. It writes all rows as parts, and the entries of all indexes, to tables with new numbers, in steps that are
//!    [resumed](crate::resuming). Nobody can find these tables yet, and nobody changes the copied rows.
//! 2. The last step replaces the entry of the catalog, and makes those of the indexes. From then on the table is one like others.
//! 3. The copied rows are deleted, and then the mark.
//!
//! The first mark has the condition that the entry is still that of the copy, and each later one has that of a mark before it. So none that is
//! late can come after the end. A table that is declared without groups and indexes keeps its number and its rows.
//!
//! A declaration other than that of an unfinished conversion supersedes it: the program may have been changed since. A process of which the
//! conversion is superseded ends with an error, so that two of them do not supersede one another for ever.

use crate::catalog::{Form, Shape, other_types};
use crate::companions::{EntryMaker, MaintainedIndex};
use crate::error::ClusterError;
use crate::layout::{self, behind_row};
use crate::marker::{unique_numbers, until};
use crate::resuming::{delete_all, send_blindly, step};
use crate::rows::RowForm;
use crate::shared::Shared;
use crate::store::{At, Commit, Limits, Marker, Mutation, Outcome, Span, Stamped, StoreError, Version};
use hotrow_core::{Abort, Misuse, Value};
use hotrow_stored::{Malformed, Reader, Stored, Writer};
use hotrow_sync::clock::now;
use hotrow_tables::TableMisuse;
use hotrow_tables::key::Key;

/// A table as a program declares it.
pub(crate) struct Declared<'d, K, R> {
    pub(crate) name: &'d str,
    pub(crate) shape: &'d Shape,
    pub(crate) form: &'d RowForm<K, R>,
    pub(crate) indexes: Vec<&'d dyn MaintainedIndex<K, R>>,
}

/// The state of a conversion, in the store.
#[derive(Debug, Clone, PartialEq, Eq, Stored)]
#[hotrow(crate = "hotrow_stored::facade")]
struct Mark {
    /// The table as it will be.
    table: Shape,
    /// Its indexes, in the order of their names.
    indexes: Vec<Shape>,
    /// Tables that are not used any more: the first number, and how many.
    superseded: Vec<(u32, u32)>,
    /// The lowest key of the copied rows that was not written yet.
    at: Vec<u8>,
    is_finished: bool,
}

impl Mark {
    fn to_bytes(&self) -> Result<Vec<u8>, ClusterError> {
        let mut bytes = Vec::new();
        Writer::write(&mut bytes, |to| self.put(to)).map_err(Misuse::Unsupported)?;
        Ok(bytes)
    }

    /// True if it is of a table that was declared so.
    fn is_of(&self, table: &Shape, indexes: &[Shape]) -> bool {
        let same =
            |a: &Shape, b: &Shape| Shape { number: 0, ..a.clone() } == Shape { number: 0, ..b.clone() };
        same(&self.table, table)
            && self.indexes.len() == indexes.len()
            && self.indexes.iter().zip(indexes).all(|(a, b)| same(a, b))
    }

    /// The new tables: the first number, and how many.
    fn tables(&self) -> (u32, u32) {
        (self.table.number, 1 + self.indexes.len() as u32)
    }
}

/// Brings a table that was copied into the form that is declared, as far as that was not done. Does nothing for other tables.
///
/// # Errors
///
/// [`TableMisuse::OtherTypes`] if it has other keys or rows, or another process declares something else at the same time;
/// [`DuplicateKey`](hotrow_tables::DuplicateKey); [`TableMisuse::NameTaken`] if an index has the name of a table;
/// [`ClusterError::Store`].
pub(crate) fn convert<K: Key, R: Value>(
    shared: &Shared,
    mut declared: Declared<'_, K, R>,
    copied_rows: RowForm<K, R>,
) -> Result<(), ClusterError> {
    declared.indexes.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    let Declared { name, shape: table, .. } = declared;
    let indexes = declared.indexes.iter().map(|index| index.shape()).collect::<Result<Vec<_>, _>>()?;
    let mut conversion = Conversion { shared, declared: &declared, indexes, copied_rows };
    let mut has_begun = false;
    loop {
        let (entry, mark) = conversion.look()?;
        match (entry, mark) {
            (Some((copied, at)), mark) if copied.form == Form::Copied => match mark {
                Some((mark, version)) if mark.is_of(table, &conversion.indexes) => {
                    has_begun = true;
                    conversion.go_on(&copied, at, mark, version)?;
                }
                Some((mark, _)) if has_begun => return Err(other_types(name, &mark.table, table).into()),
                mark => has_begun |= conversion.begin(&copied, at, mark)?,
            },
            (_, Some((mark, version))) => conversion.end(&mark, version)?,
            (_, None) => return Ok(()),
        }
    }
}

struct Conversion<'c, K, R> {
    shared: &'c Shared,
    declared: &'c Declared<'c, K, R>,
    /// The shapes of the indexes, in the order of their names.
    indexes: Vec<Shape>,
    copied_rows: RowForm<K, R>,
}

/// Something and its version.
type Versioned<T> = (T, Version);

/// Writes of some copied rows.
struct Batch<K, R> {
    commit: Commit,
    bytes: usize,
    /// Keys of entries that only one row may have: the number of the index, and the row.
    unique: Vec<(Vec<u8>, usize, K, R)>,
}

impl<K, R> Default for Batch<K, R> {
    fn default() -> Self {
        Self { commit: Commit::default(), bytes: 0, unique: Vec::new() }
    }
}

impl<K, R> Batch<K, R> {
    /// True if these writes can go with those of another batch, beside a mark of so many bytes.
    fn takes(&self, more: &Self, limits: &Limits, mark: usize) -> bool {
        self.commit.mutations.len() + more.commit.mutations.len() < limits.changes_max
            && self.commit.keys.len() + more.commit.keys.len() < limits.conditions_max
            && self.bytes + more.bytes + mark <= limits.bytes_max
    }

    fn add(&mut self, more: Self) {
        self.commit.mutations.extend(more.commit.mutations);
        self.commit.keys.extend(more.commit.keys);
        self.bytes += more.bytes;
        self.unique.extend(more.unique);
    }
}

impl<K: Key, R: Value> Conversion<'_, K, R> {
    /// The values of keys, in one state.
    fn read<const N: usize>(&self, keys: [Vec<u8>; N]) -> Result<[Option<Stamped>; N], ClusterError> {
        let deadline = now() + self.shared.settings.deadline;
        let read = until(deadline, || self.shared.store.get_many(&keys, At::Newest, deadline));
        let mut values = read.map_err(ClusterError::Store)?.values.into_iter();
        Ok([(); N].map(|()| values.next().flatten()))
    }

    fn malformed(&self, malformed: &Malformed) -> ClusterError {
        let (table, reason) = (self.declared.name.to_owned(), malformed.to_string());
        TableMisuse::Malformed { table, reason }.into()
    }

    /// The table as the catalog has it, and the mark.
    #[expect(clippy::type_complexity, reason = "two values and their versions")]
    fn look(&self) -> Result<(Option<Versioned<Shape>>, Option<Versioned<Mark>>), ClusterError> {
        let (layout, name) = (&self.shared.layout, self.declared.name);
        let [entry, mark] = self.read([layout.catalog(name), layout.conversion(name)])?;
        let entry = entry.map(|found| Ok((Shape::from_bytes(&found.value)?, found.version)));
        let mark = mark.map(|found| Ok((Reader::read(&found.value, Mark::get)?, found.version)));
        let malformed = |malformed| self.malformed(&malformed);
        Ok((entry.transpose().map_err(malformed)?, mark.transpose().map_err(malformed)?))
    }

    /// Replaces the mark in a step. True if it was replaced; if not, it must be looked at again.
    fn step(&self, commit: Commit, mark: &Mark, replaces: Version) -> Result<Option<Version>, ClusterError> {
        let key = self.shared.layout.conversion(self.declared.name);
        let marker = Marker { key, replaces, value: mark.to_bytes()? };
        match step(self.shared, commit, marker) {
            Ok(Outcome::Committed(version)) => Ok(Some(version)),
            Ok(Outcome::Conflict(_)) => Ok(None),
            Err(StoreError::Refused { reason }) => Err(Misuse::Unsupported(format!(
                "table {} cannot get the form that is declared: {reason}",
                self.declared.name
            ))
            .into()),
            Err(error) => Err(ClusterError::Store(error)),
        }
    }

    /// Makes the first mark, in the place of another declaration's. False if it was not made, perhaps.
    fn begin(
        &self,
        copied: &Shape,
        at: Version,
        before: Option<Versioned<Mark>>,
    ) -> Result<bool, ClusterError> {
        let (shared, &Declared { name, shape, .. }) = (self.shared, self.declared);
        if !shape.can_read(copied) {
            return Err(other_types(name, copied, shape).into());
        }
        self.check_names(at)?;
        let (before, replaces) = before.map_or((None, 0), |(mark, version)| (Some(mark), version));
        let mut superseded = Vec::new();
        if let Some(before) = before {
            superseded.clone_from(&before.superseded);
            superseded.extend((before.table.number != copied.number).then(|| before.tables()));
        }
        let mut table = Shape { number: copied.number, ..shape.clone() };
        let mut indexes = self.indexes.clone();
        if !(shape.parts.is_empty() && indexes.is_empty()) {
            let count = 1 + indexes.len() as u64;
            let deadline = now() + shared.settings.deadline;
            let first = unique_numbers(&*shared.store, shared.layout.numbers("table"), 1, count, deadline);
            let first = first.map_err(ClusterError::Store)?;
            let fits = first.checked_add(count).is_some_and(|end| end <= u64::from(u32::MAX));
            if !fits {
                return Err(self.malformed(&Malformed::new("the store has no number for another table")));
            }
            table.number = first as u32;
            (table.number + 1..).zip(&mut indexes).for_each(|(number, index)| index.number = number);
        }
        let mark = Mark { table, indexes, superseded, at: Vec::new(), is_finished: false };
        let keys = vec![(shared.layout.catalog(name), at)];
        Ok(self.step(Commit { keys, ..Commit::default() }, &mark, replaces)?.is_some())
    }

    /// Checks that no table has the name of an index, while the copied table's entry has this version. Later the names may be those of the
    /// indexes themselves, because another process has finished.
    fn check_names(&self, at: Version) -> Result<(), ClusterError> {
        let layout = &self.shared.layout;
        for index in &self.declared.indexes {
            let [entry, found] =
                self.read([layout.catalog(self.declared.name), layout.catalog(index.name())])?;
            if found.is_some() && entry.is_some_and(|entry| entry.version == at) {
                return Err(TableMisuse::NameTaken { name: index.name().to_owned() }.into());
            }
        }
        Ok(())
    }

    /// Goes on from a mark of this declaration, until all is done, or the mark must be looked at again.
    fn go_on(
        &mut self,
        copied: &Shape,
        at: Version,
        mut mark: Mark,
        mut version: Version,
    ) -> Result<(), ClusterError> {
        if mark.table.number != copied.number && !self.write_rows(copied, &mut mark, &mut version)? {
            return Ok(());
        }
        let (layout, name) = (&self.shared.layout, self.declared.name);
        let mut finished = Mark { is_finished: true, ..mark };
        let number = finished.table.number;
        finished.superseded.extend((number != copied.number).then_some((copied.number, 1)));
        let shape = |shape: &Shape| shape.to_bytes().map_err(Misuse::Unsupported);
        let mut commit = Commit { keys: vec![(layout.catalog(name), at)], ..Commit::default() };
        commit.mutations.push(Mutation::Put { key: layout.catalog(name), value: shape(&finished.table)? });
        for (index, made) in self.declared.indexes.iter().zip(&finished.indexes) {
            let key = layout.catalog(index.name());
            commit.keys.push((key.clone(), 0));
            commit.mutations.push(Mutation::Put { key, value: shape(made)? });
        }
        if self.step(commit, &finished, version)?.is_none() && self.has(version)? {
            self.check_names(at)?;
        }
        Ok(())
    }

    /// True if the mark has a version.
    fn has(&self, version: Version) -> Result<bool, ClusterError> {
        let [mark] = self.read([self.shared.layout.conversion(self.declared.name)])?;
        Ok(mark.is_some_and(|mark| mark.version == version))
    }

    /// Writes the rows that are left. False if the mark must be looked at again.
    fn write_rows(
        &self,
        copied: &Shape,
        mark: &mut Mark,
        version: &mut Version,
    ) -> Result<bool, ClusterError> {
        let (shared, limits) = (self.shared, self.shared.store.limits());
        let prefix = shared.layout.table(mark.table.number);
        let makers = self.declared.indexes.iter().zip(&mark.indexes);
        let makers = makers.map(|(index, made)| index.maker(shared.layout.table(made.number)));
        let makers = makers.collect::<Result<Vec<_>, _>>()?;
        let mut span = Span::of_prefix(&shared.layout.table(copied.number));
        span.start = span.start.max(mark.at.clone());
        loop {
            let (deadline, limit) = (now() + shared.settings.deadline, shared.settings.page.max(1));
            let page = until(deadline, || shared.store.range(&span, At::Newest, limit, deadline));
            let page = page.map_err(ClusterError::Store)?;
            let mut batch = Batch::default();
            for (key, found) in page.rows {
                let next = self.writes(found.value, &prefix, &makers)?;
                // A later mark has a longer key, perhaps; it is in two places, as the key of the marker is.
                let overhead = 2 * (shared.layout.conversion(self.declared.name).len() + key.len())
                    + mark.to_bytes()?.len()
                    + 32;
                if !batch.takes(&next, &limits, overhead) && !batch.commit.mutations.is_empty() {
                    let full = std::mem::take(&mut batch);
                    if !self.write(full, &span.start, mark, version)? {
                        return Ok(false);
                    }
                }
                batch.add(next);
                span.start = behind_row(&key);
            }
            if !batch.commit.mutations.is_empty() && !self.write(batch, &span.start, mark, version)? {
                return Ok(false);
            }
            if !page.has_more {
                return Ok(true);
            }
        }
    }

    /// The writes of a copied row.
    fn writes(
        &self,
        value: Vec<u8>,
        prefix: &[u8],
        makers: &[EntryMaker<'_, K, R>],
    ) -> Result<Batch<K, R>, ClusterError> {
        let key = self.copied_rows.key(&value);
        let read = key.and_then(|key| Ok((key, self.copied_rows.decode(&vec![Some(value)])?)));
        let (key, row) = read.map_err(|malformed| self.malformed(&malformed))?;
        let mut batch = Batch::default();
        let mut put = |key: Vec<u8>, value: Vec<u8>| {
            batch.bytes += key.len() + value.len();
            batch.commit.mutations.push(Mutation::Put { key, value });
        };
        let name = layout::row(prefix, &key);
        let parts = self.declared.form.encode(&key, &row).map_err(Misuse::Unsupported)?;
        parts.into_iter().enumerate().for_each(|(number, part)| put(layout::part(&name, number), part));
        for (number, maker) in makers.iter().enumerate() {
            let (place, value) = maker(&key, &row).map_err(Misuse::Unsupported)?;
            put(place.clone(), value);
            if self.indexes[number].form == Form::Unique {
                batch.unique.push((place, number, key.clone(), row.clone()));
            }
        }
        for (place, ..) in &batch.unique {
            batch.bytes += place.len() + 8;
            batch.commit.keys.push((place.clone(), 0));
        }
        Ok(batch)
    }

    /// Writes a batch, and a mark that has the lowest key behind it. False if the mark must be looked at again.
    fn write(
        &self,
        batch: Batch<K, R>,
        behind: &[u8],
        mark: &mut Mark,
        version: &mut Version,
    ) -> Result<bool, ClusterError> {
        let Batch { commit, mut unique, .. } = batch;
        unique.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(two) = unique.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(self.duplicate(&two[1]));
        }
        let next = Mark { at: behind.to_vec(), ..mark.clone() };
        if let Some(written) = self.step(commit, &next, *version)? {
            (*mark, *version) = (next, written);
            return Ok(true);
        }
        let place = self.shared.layout.conversion(self.declared.name);
        let mut keys = vec![place];
        keys.extend(unique.iter().map(|(place, ..)| place.clone()));
        let deadline = now() + self.shared.settings.deadline;
        let read = until(deadline, || self.shared.store.get_many(&keys, At::Newest, deadline));
        let mut values = read.map_err(ClusterError::Store)?.values.into_iter();
        if values.next().flatten().is_some_and(|mark| mark.version == *version)
            && let Some((_, taken)) = values.zip(&unique).find(|(found, _)| found.is_some())
        {
            // Entries of rows before these, because these were not written.
            return Err(self.duplicate(taken));
        }
        Ok(false)
    }

    fn duplicate(&self, (_, index, key, row): &(Vec<u8>, usize, K, R)) -> ClusterError {
        Abort::because(self.declared.indexes[*index].duplicate(key, row)).into()
    }

    /// Deletes the tables that are not used any more, and the mark.
    fn end(&self, mark: &Mark, version: Version) -> Result<(), ClusterError> {
        let (layout, key) = (&self.shared.layout, self.shared.layout.conversion(self.declared.name));
        for (first, count) in &mark.superseded {
            let (start, end) = (layout.table(*first), layout.table(first.saturating_add(*count)));
            delete_all(self.shared, &Span { start, end }).map_err(ClusterError::Store)?;
        }
        let (keys, mutations) = (vec![(key.clone(), version)], vec![Mutation::Delete { key }]);
        let commit = Commit { keys, mutations, ..Commit::default() };
        send_blindly(self.shared, &commit).map(drop).map_err(ClusterError::Store)
    }
}
