//! Insertions, updates and deletions.

use super::entries::{add_entry, duplicate, has_null, remove_entry};
use super::scan::Flow;
use super::{Run, Stop, Tuple, key_of, row_key};
use crate::catalog::Relation;
use crate::error::SqlError;
use crate::hashing::Set;
use crate::plan::expression::Expression;
use crate::plan::modify::{AtCommit, Insert, Inserted, Modification, ModificationKind, OnConflict, Target};
use crate::plan::select::TableSource;
use crate::row::Row;
use crate::run::evaluate::empty_tuple;
use crate::values::{self, Datum, Type};

/// A change of a row that is put off.
pub(super) enum Change {
    /// A new row, with its number if its table has no primary key.
    Add(Row),
    /// The row as it was, and as it will be.
    Replace(Row, Row),
    Remove(Row),
}

impl<'t, 'w> Run<'t, 'w> {
    /// Changes rows: their number, and the rows that the statement returns.
    pub(crate) fn modify(&mut self, modification: &Modification) -> Result<(u64, Vec<Row>), Stop> {
        let result = self.modify_later(modification)?;
        self.make_changes()?;
        Ok(result)
    }

    /// As `modify`, but [`make_changes`](Self::make_changes) makes the changes: no part of a statement sees those of another.
    pub(super) fn modify_later(&mut self, modification: &Modification) -> Result<(u64, Vec<Row>), Stop> {
        match &modification.kind {
            ModificationKind::Insert(insert) => self.insert(modification, insert),
            ModificationKind::Update { sources, from, filter, assignments, at_commit } => {
                if let Some(at_commit) = at_commit
                    && let Some(count) = self.add_at_commit(&modification.target.table, at_commit)?
                {
                    return Ok((count, Vec::new()));
                }
                let tuples = self.matches(sources, from, filter)?;
                let mut returned = Vec::new();
                let mut changes = Vec::with_capacity(tuples.len());
                for mut tuple in tuples {
                    let old = tuple[0].clone();
                    let mut new = old.to_vec();
                    for (column, value) in assignments {
                        new[*column] = self.evaluate(value, &tuple)?;
                    }
                    let new = self.checked(&modification.target, new)?;
                    changes.push(Change::Replace(old, new.clone()));
                    if let Some(returning) = &modification.returning {
                        tuple[0] = new;
                        returned.push(self.row(returning, &tuple)?);
                    }
                }
                let count = changes.len() as u64;
                self.put_off(modification, changes);
                Ok((count, returned))
            }
            ModificationKind::Delete { sources, from, filter } => {
                let tuples = self.matches(sources, from, filter)?;
                let mut returned = Vec::new();
                let mut changes = Vec::with_capacity(tuples.len());
                for tuple in tuples {
                    if let Some(returning) = &modification.returning {
                        returned.push(self.row(returning, &tuple)?);
                    }
                    changes.push(Change::Remove(tuple[0].clone()));
                }
                let count = changes.len() as u64;
                self.put_off(modification, changes);
                Ok((count, returned))
            }
        }
    }

    fn put_off(&mut self, modification: &Modification, changes: Vec<Change>) {
        self.put_off.push((modification.target.table.clone(), changes));
    }

    /// Makes the changes that were put off. Of several parts of a statement that change one row the first one does.
    pub(crate) fn make_changes(&mut self) -> Result<(), Stop> {
        let put_off = std::mem::take(&mut self.put_off);
        let several = put_off.len() > 1;
        let mut changed = Set::default();
        for (target, changes) in put_off {
            for change in changes {
                self.step()?;
                if let (true, Change::Replace(old, _) | Change::Remove(old)) = (several, &change)
                    && !changed.insert((target.relation.oid, row_key(&target.relation, old)))
                {
                    continue;
                }
                match change {
                    Change::Add(row) => self.store(&target, row)?,
                    Change::Replace(old, new) => self.replace(&target, &old, new)?,
                    Change::Remove(row) => self.remove(&target, &row)?,
                }
            }
        }
        Ok(())
    }

    /// The tuples that a statement changes: all of them before the first change, and each row of the target once.
    fn matches(
        &mut self,
        sources: &[crate::plan::select::Source],
        from: &crate::plan::select::Join,
        filter: &[Expression],
    ) -> Result<Vec<Tuple>, Stop> {
        let crate::plan::select::Source::Table(target) = &sources[0] else { return Ok(Vec::new()) };
        let mut seen = Set::default();
        let mut tuples = Vec::new();
        let mut tuple = empty_tuple(sources.len());
        let _ = self.join(sources, from, &mut tuple, &mut |run, tuple| {
            if run.all_hold(filter, tuple)?
                && (sources.len() == 1 || seen.insert(row_key(&target.relation, &tuple[0])))
            {
                run.keep(&[])?;
                tuples.push(tuple.clone());
            }
            Ok(Flow::Continue(()))
        })?;
        Ok(tuples)
    }

    /// A row that may be stored: its values have their columns' lengths, and its conditions hold.
    fn checked(&mut self, target: &Target, mut values: Vec<Datum>) -> Result<Row, Stop> {
        let relation = &target.table.relation;
        fit(relation, &mut values)?;
        let row = Row::new(values);
        for (name, check) in &target.checks {
            if self.evaluate(check, std::slice::from_ref(&row))? == Datum::Bool(false) {
                let table = &relation.name;
                let message =
                    format!("new row for relation \"{table}\" violates check constraint \"{name}\"");
                let error = SqlError::new("23514", message).table(table).constraint(name);
                return Err(error.detail(failing_row(relation, &row)).into());
            }
        }
        Ok(row)
    }

    /// The row that is made of given values, and of defaults for the other columns.
    fn new_row(&mut self, target: &Target, columns: &[Inserted], given: &[Datum]) -> Result<Row, Stop> {
        // One more for the number of a row without a primary key.
        let mut values = Vec::with_capacity(columns.len() + 1);
        for column in columns {
            values.push(match column {
                Inserted::Given(at) => given[*at].clone(),
                Inserted::Default(default) => self.evaluate(default, &[])?,
            });
        }
        self.checked(target, values)
    }

    fn insert(&mut self, modification: &Modification, insert: &Insert) -> Result<(u64, Vec<Row>), Stop> {
        let rows = self.query(&insert.rows)?;
        let target = &*modification.target.table;
        let mut returned = Vec::new();
        let mut count = 0;
        // Returned values may be those of queries, and changes by other parts of the statement are not made yet.
        let is_put_off = insert.on_conflict.is_none()
            && (modification.returning.is_some() || self.is_one_of_several || !self.put_off.is_empty());
        if !is_put_off {
            self.make_changes()?;
        }
        let mut changes = Vec::new();
        let mut touched = Set::default();
        for given in rows {
            self.step()?;
            let row = self.new_row(&modification.target, &insert.columns, &given)?;
            let stored = match &insert.on_conflict {
                None if is_put_off => {
                    let row = self.numbered(target, row);
                    self.keep(&row)?;
                    changes.push(Change::Add(row.clone()));
                    Some(row)
                }
                None => Some(self.add(target, row)?),
                Some(on_conflict) => self.insert_or(modification, on_conflict, row, &mut touched)?,
            };
            let Some(stored) = stored else { continue };
            count += 1;
            if let Some(returning) = &modification.returning {
                returned.push(self.row(returning, std::slice::from_ref(&stored))?);
            }
        }
        if is_put_off {
            self.put_off(modification, changes);
        }
        Ok((count, returned))
    }

    /// Inserts a row, or does what is said for one whose key exists. None if nothing was changed.
    fn insert_or(
        &mut self,
        modification: &Modification,
        on_conflict: &OnConflict,
        row: Row,
        touched: &mut Set<Vec<u8>>,
    ) -> Result<Option<Row>, Stop> {
        let target = &*modification.target.table;
        let Some(existing) = self.conflicting(target, on_conflict.index, &row)? else {
            let stored = self.add(target, row)?;
            touched.insert(row_key(&target.relation, &stored));
            return Ok(Some(stored));
        };
        let Some((assignments, filter)) = &on_conflict.update else { return Ok(None) };
        if touched.contains(&row_key(&target.relation, &existing)) {
            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
            return Err(SqlError::new("21000", message).hint(hint).into());
        }
        let tuple = vec![existing.clone(), row];
        if let Some(filter) = filter
            && !self.holds(filter, &tuple)?
        {
            return Ok(None);
        }
        let mut new = existing.to_vec();
        for (column, value) in assignments {
            new[*column] = self.evaluate(value, &tuple)?;
        }
        let new = self.checked(&modification.target, new)?;
        self.replace(target, &existing, new.clone())?;
        touched.insert(row_key(&target.relation, &new));
        Ok(Some(new))
    }

    /// The row that has the same key as another one: the primary key, that of one index, or any.
    fn conflicting(
        &mut self,
        target: &TableSource,
        index: Option<Option<usize>>,
        row: &Row,
    ) -> Result<Option<Row>, Stop> {
        let relation = &target.relation;
        if !matches!(index, Some(Some(_)))
            && let Some(primary) = &relation.primary_key
        {
            let found = target.rows.get(self.tx, &key_of(relation, &primary.columns, row))?;
            if found.is_some() || index == Some(None) {
                return Ok(found);
            }
        }
        for (at, unique) in relation.indexes.iter().enumerate() {
            if !unique.is_unique
                || index.is_some_and(|wanted| wanted != Some(at))
                || has_null(&unique.columns, row)
            {
                continue;
            }
            let entry = target.indexes[at].get(self.tx, &key_of(relation, &unique.columns, row))?;
            if let Some(entry) = entry
                && let Datum::Bytes(key) = &entry[0]
                && let Some(found) = target.rows.get(self.tx, &**key)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Stores a new row with its entries in indexes. One of a table without a primary key gets its number.
    pub(crate) fn add(&mut self, target: &TableSource, row: Row) -> Result<Row, Stop> {
        let row = self.numbered(target, row);
        self.store(target, row.clone())?;
        Ok(row)
    }

    /// A new row with its number, if its table has no primary key.
    fn numbered(&mut self, target: &TableSource, row: Row) -> Row {
        if !target.relation.has_hidden_key() {
            return row;
        }
        let number = self.shared.row_numbers.next(self.tx);
        row.iter().cloned().chain([Datum::Int8(number as i64)]).collect()
    }

    fn store(&mut self, target: &TableSource, row: Row) -> Result<(), Stop> {
        let relation = &target.relation;
        let key = row_key(relation, &row);
        if !target.rows.insert_if_absent(self.tx, key.clone(), row.clone())? {
            let primary = relation.primary_key.as_ref().expect("numbers are drawn once");
            return Err(duplicate(relation, &primary.name, &primary.columns, &row).into());
        }
        for (at, index) in relation.indexes.iter().enumerate() {
            add_entry(self.tx, target, at, &index.columns, &row, &key)?;
        }
        Ok(())
    }

    /// Replaces a row by another one, with its entries in indexes.
    fn replace(&mut self, target: &TableSource, old: &Row, new: Row) -> Result<(), Stop> {
        let relation = &target.relation;
        let (old_key, new_key) = (row_key(relation, old), row_key(relation, &new));
        if old_key != new_key {
            self.remove(target, old)?;
            if !target.rows.insert_if_absent(self.tx, new_key.clone(), new.clone())? {
                let primary = relation.primary_key.as_ref().expect("numbers do not change");
                return Err(duplicate(relation, &primary.name, &primary.columns, &new).into());
            }
            for (at, index) in relation.indexes.iter().enumerate() {
                add_entry(self.tx, target, at, &index.columns, &new, &new_key)?;
            }
            return Ok(());
        }
        target.rows.replace_if_present(self.tx, &new_key, new.clone())?;
        for (at, index) in relation.indexes.iter().enumerate() {
            let is_same = index.columns.iter().all(|column| old[*column as usize] == new[*column as usize]);
            if !is_same {
                remove_entry(self.tx, target, at, &index.columns, old, &old_key)?;
                add_entry(self.tx, target, at, &index.columns, &new, &new_key)?;
            }
        }
        Ok(())
    }

    /// Removes a row with its entries in indexes.
    pub(super) fn remove(&mut self, target: &TableSource, row: &Row) -> Result<(), Stop> {
        let key = row_key(&target.relation, row);
        target.rows.delete(self.tx, &key)?;
        for (at, index) in target.relation.indexes.iter().enumerate() {
            remove_entry(self.tx, target, at, &index.columns, row, &key)?;
        }
        Ok(())
    }

    /// Adds to columns of a row when the transaction commits: the number of rows that there are. None if it has to be done at once, because a
    /// condition does not seem to hold, or the statement could not be run again if it did not hold at the commit.
    fn add_at_commit(&mut self, target: &TableSource, plan: &AtCommit) -> Result<Option<u64>, Stop> {
        if !plan.conditions.is_empty() && !self.session.may_guess.get() {
            return Ok(None);
        }
        let relation = &target.relation;
        let columns = relation.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
        let types: Vec<Type> = columns.iter().map(|at| relation.columns[*at as usize].ty).collect();
        let Some(key) = self.probe(&plan.key, &types, &[])? else { return Ok(Some(0)) };
        let mut additions = Vec::with_capacity(plan.additions.len());
        for (column, amount) in &plan.additions {
            // The sum with null is null.
            let Some(amount) = self.evaluate(amount, &[])?.as_integer() else { return Ok(None) };
            additions.push((*column, amount));
        }
        let mut conditions = Vec::with_capacity(plan.conditions.len());
        for condition in &plan.conditions {
            let value = self.evaluate(&condition.value, &[])?;
            conditions.push((condition.column, condition.operation, value, condition.is_turned));
        }
        let hold = move |row: &[Datum]| {
            conditions.iter().all(|(column, operation, value, is_turned)| {
                let column = &row[*column];
                let (left, right) = if *is_turned { (value, column) } else { (column, value) };
                matches!(operation.apply(left, right), Ok(Datum::Bool(true)))
            })
        };
        if !plan.conditions.is_empty() {
            let seen = self.tx.untracked(|tx| target.rows.get(tx, &key))?;
            if !seen.is_some_and(|row| hold(&row)) {
                return Ok(None);
            }
            self.session.has_guessed.set(true);
        }
        let is_there = target.rows.change_if_present(self.tx, &key, move |row| {
            if !hold(row) {
                return None;
            }
            let values = row.values_mut();
            let sums = additions.iter().map(|(column, amount)| sum(&values[*column], *amount));
            // All sums before the first change.
            let sums: Vec<Datum> = sums.collect::<Option<_>>()?;
            for ((column, _), sum) in additions.iter().zip(sums) {
                values[*column] = sum;
            }
            Some(())
        })?;
        Ok(Some(u64::from(is_there)))
    }

    /// Stores rows that have a value for each column of a table: those of `COPY`.
    pub(crate) fn copy_rows(
        &mut self,
        target: &Target,
        columns: &[Inserted],
        rows: impl Iterator<Item = Result<Vec<Datum>, SqlError>>,
    ) -> Result<u64, Stop> {
        let mut count = 0;
        for given in rows {
            self.step()?;
            let row = self.new_row(target, columns, &given?)?;
            self.add(&target.table, row)?;
            count += 1;
        }
        Ok(count)
    }
}

/// The sum of a column's value and an amount; none if it leaves the type's range.
fn sum(value: &Datum, amount: i64) -> Option<Datum> {
    Some(match value {
        Datum::Int2(value) => Datum::Int2(i16::try_from(i64::from(*value).checked_add(amount)?).ok()?),
        Datum::Int4(value) => Datum::Int4(i32::try_from(i64::from(*value).checked_add(amount)?).ok()?),
        Datum::Int8(value) => Datum::Int8(value.checked_add(amount)?),
        _ => Datum::Null,
    })
}

/// Gives values their columns' lengths, and refuses nulls where there must be none.
pub(crate) fn fit(relation: &Relation, values: &mut [Datum]) -> Result<(), SqlError> {
    for (column, value) in relation.columns.iter().zip(&mut *values) {
        if column.modifier >= 0 && !value.is_null() {
            *value =
                values::apply_modifier(std::mem::replace(value, Datum::Null), column.ty, column.modifier)?;
        }
    }
    let missing =
        relation.columns.iter().zip(&*values).find(|(column, value)| column.not_null && value.is_null());
    if let Some((column, _)) = missing {
        let message = format!(
            "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
            column.name, relation.name
        );
        let error = SqlError::new("23502", message).table(&relation.name).column(&column.name);
        return Err(error.detail(failing_row(relation, values)));
    }
    Ok(())
}

fn failing_row(relation: &Relation, values: &[Datum]) -> String {
    let shown = relation.columns.iter().zip(values).map(|(column, value)| match value {
        Datum::Null => "null".to_owned(),
        value => value.to_text(column.ty),
    });
    format!("Failing row contains ({}).", shown.collect::<Vec<_>>().join(", "))
}
