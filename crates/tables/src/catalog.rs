//! The tables and secondary indexes of a database, by number and by name.

use crate::misuse::TableMisuse;
use crate::reference::{IndexRef, TableRef};
use hotrow_core::Misuse;
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU64};
use hotrow_sync::{Mutex, OnceLock, lock};
use std::any::{Any, type_name};
use std::collections::BTreeMap;

/// The number of a table or index, and that of its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartId {
    catalog: u64,
    number: u32,
}

impl PartId {
    /// The number within the database.
    pub(crate) fn number(self) -> u32 {
        self.number
    }
}

/// A table or an index, with its name and that of its type.
pub(crate) struct Part {
    name: String,
    value: Box<dyn Any + Send + Sync>,
    type_name: &'static str,
}

impl Part {
    pub(crate) fn new<T: Any + Send + Sync>(name: &str, value: T) -> Self {
        Self { name: name.to_owned(), value: Box::new(value), type_name: type_name::<T>() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// A place for a part, which is filled once.
type Slot = OnceLock<Part>;

/// The number of parts that are found without a look at where the others are.
const FIRST: usize = if cfg!(test) { 2 } else { 32 };
/// The maximum number of other parts.
const OTHERS_MAX: usize = 1 << 16;

/// The tables and indexes of a database. Parts are added at any time, and found without a lock.
pub(crate) struct Catalog {
    number: u64,
    first: [Slot; FIRST],
    others: OnceLock<Box<[Slot]>>,
    /// The parts by name. Whoever adds a part holds the lock.
    names: Mutex<Names>,
}

/// The numbers of the parts by name; `None` for a name that is reserved for a part in the making.
#[derive(Default)]
struct Names {
    by_name: BTreeMap<String, Option<u32>>,
    next: u32,
}

impl Names {
    fn reserve(&mut self, new: &[String]) -> Result<(), Misuse> {
        for (at, name) in new.iter().enumerate() {
            if self.by_name.contains_key(name) || new[..at].contains(name) {
                return Err(TableMisuse::NameTaken { name: name.clone() }.into());
            }
        }
        let max = FIRST + OTHERS_MAX;
        let reserved = self.by_name.values().filter(|number| number.is_none()).count();
        if self.next as usize + reserved + new.len() > max {
            let limit =
                format!("a database has at most {max} tables and indexes, those that were dropped included");
            return Err(Misuse::Unsupported(limit));
        }
        self.by_name.extend(new.iter().map(|name| (name.clone(), None)));
        Ok(())
    }
}

/// A number that no catalog has, and no other call returns.
fn unused_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The numbers of parts that are kept elsewhere than in a catalog of this process.
#[derive(Debug)]
pub struct Elsewhere {
    number: u64,
}

impl Elsewhere {
    /// Parts that no other catalog has.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { number: unused_number() }
    }

    /// A reference to the table with this number.
    pub fn table<K, R>(&self, number: u32) -> TableRef<K, R> {
        TableRef::new(PartId { catalog: self.number, number })
    }

    /// A reference to the index with this number.
    pub fn index<S, K, R>(&self, number: u32) -> IndexRef<S, K, R> {
        IndexRef::new(PartId { catalog: self.number, number })
    }

    /// The number of a table; `None` if it is another one's.
    pub fn table_number<K, R>(&self, table: TableRef<K, R>) -> Option<u32> {
        self.number_of(table.part)
    }

    /// The number of an index; `None` if it is another one's.
    pub fn index_number<S, K, R>(&self, index: IndexRef<S, K, R>) -> Option<u32> {
        self.number_of(index.part)
    }

    fn number_of(&self, part: PartId) -> Option<u32> {
        (part.catalog == self.number).then_some(part.number)
    }
}

impl Catalog {
    pub(crate) fn new() -> Self {
        let number = unused_number();
        let first = std::array::from_fn(|_| OnceLock::new());
        Self { number, first, others: OnceLock::new(), names: Mutex::default() }
    }

    /// Reserves names for parts in the making, all or none. Others find no part there, and cannot take the names.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NameTaken`](crate::TableMisuse::NameTaken) if there is a part with one of the names; [`Misuse::Unsupported`] if the catalog is full.
    pub(crate) fn reserve(&self, new: &[String]) -> Result<(), Misuse> {
        lock(&self.names).reserve(new)
    }

    /// Gives back names that were [reserved](Self::reserve) and not filled.
    pub(crate) fn release(&self, names: &[String]) {
        let Names { by_name, .. } = &mut *lock(&self.names);
        for name in names {
            if by_name.get(name) == Some(&None) {
                by_name.remove(name);
            }
        }
    }

    /// Adds parts under names that are reserved for them.
    pub(crate) fn fill(&self, parts: Vec<Part>) -> Vec<PartId> {
        let Names { by_name, next } = &mut *lock(&self.names);
        let mut add = |part: Part| {
            let number = *next;
            *next += 1;
            let slot = self.first.get(number as usize).unwrap_or_else(|| {
                let others = || (0..OTHERS_MAX).map(|_| OnceLock::new()).collect();
                &self.others.get_or_init(others)[number as usize - FIRST]
            });
            by_name.insert(part.name.clone(), Some(number));
            assert!(slot.set(part).is_ok(), "the next slot is empty");
            PartId { catalog: self.number, number }
        };
        parts.into_iter().map(&mut add).collect()
    }

    /// The part with this name.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NoSuchName`](crate::TableMisuse::NoSuchName) if there is none, [`TableMisuse::OtherTypes`](crate::TableMisuse::OtherTypes) if it is of another type.
    pub(crate) fn find<T: Any>(&self, name: &str) -> Result<&T, TableMisuse> {
        self.find_with_id(name).map(|(_, part)| part)
    }

    /// As [`find`](Self::find), with the part's number.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub(crate) fn find_with_id<T: Any>(&self, name: &str) -> Result<(PartId, &T), TableMisuse> {
        let number = lock(&self.names).by_name.get(name).copied().flatten();
        let number = number.ok_or_else(|| TableMisuse::NoSuchName { name: name.to_owned() })?;
        let part = self.slot(number).expect("named after it was added");
        let value = part.value.downcast_ref::<T>().ok_or_else(|| TableMisuse::OtherTypes {
            name: name.to_owned(),
            made_as: part.type_name.to_owned(),
            wanted: type_name::<T>().to_owned(),
        })?;
        Ok((PartId { catalog: self.number, number }, value))
    }

    /// Forgets names. The parts stay, for those who know their numbers.
    pub(crate) fn forget<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        let Names { by_name, .. } = &mut *lock(&self.names);
        for name in names {
            by_name.remove(name);
        }
    }

    /// The names of all parts, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = lock(&self.names);
        names.by_name.iter().filter(|(_, number)| number.is_some()).map(|(name, _)| name.clone()).collect()
    }

    #[inline(always)]
    fn slot(&self, number: u32) -> Option<&Part> {
        match self.first.get(number as usize) {
            Some(slot) => slot.get(),
            None => self.others.get()?.get(number as usize - FIRST)?.get(),
        }
    }

    /// The part with this number; `None` if the number is of another database.
    ///
    /// # Safety
    ///
    /// If the number is one of this catalog's, its part was added as a `T`.
    #[inline(always)]
    pub(crate) unsafe fn find_part<T: Any>(&self, id: PartId) -> Option<&T> {
        if id.catalog != self.number {
            return None;
        }
        let part = self.slot(id.number).expect("numbered after it was added");
        debug_assert!(part.value.is::<T>());
        // SAFETY: the number is this catalog's; the caller's promise.
        Some(unsafe { &*std::ptr::from_ref(&*part.value).cast::<T>() })
    }

    /// The part with this number.
    ///
    /// # Safety
    ///
    /// As for [`find_part`](Self::find_part).
    ///
    /// # Panics
    ///
    /// If the number is of another database.
    #[inline(always)]
    pub(crate) unsafe fn part<T: Any>(&self, id: PartId) -> &T {
        // SAFETY: the caller's promise.
        unsafe { self.find_part(id) }.expect("the reference belongs to another database")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_name_and_number_with_their_types() {
        let catalog = Catalog::new();
        let part = |number: u64| Part::new(&format!("part {number}"), number);
        let add = |parts: Vec<Part>| {
            catalog.reserve(&parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>())?;
            Ok::<_, Misuse>(catalog.fill(parts))
        };
        let mut ids = add(vec![part(0), part(1), part(2)]).unwrap();
        ids.extend(add(vec![part(3), part(4)]).unwrap());
        for (number, id) in ids.iter().enumerate() {
            // SAFETY: added as this type.
            assert_eq!(unsafe { catalog.part::<u64>(*id) }, &(number as u64));
        }
        assert_eq!(catalog.find::<u64>("part 3"), Ok(&3));
        assert!(matches!(catalog.find::<u64>("part 5"), Err(TableMisuse::NoSuchName { .. })));
        assert!(matches!(catalog.find::<u32>("part 3"), Err(TableMisuse::OtherTypes { .. })));
        assert!(matches!(
            add(vec![part(5), part(3)]).unwrap_err().downcast_ref(),
            Some(TableMisuse::NameTaken { .. })
        ));
        assert!(matches!(
            add(vec![part(5), part(5)]).unwrap_err().downcast_ref(),
            Some(TableMisuse::NameTaken { .. })
        ));
        assert_eq!(catalog.names().len(), 5);
        catalog.forget(["part 1"]);
        assert!(matches!(catalog.find::<u64>("part 1"), Err(TableMisuse::NoSuchName { .. })));
        let again = add(vec![Part::new("part 1", 7_u64)]).unwrap();
        // SAFETY: added as this type.
        assert_eq!(unsafe { (catalog.part::<u64>(again[0]), catalog.part::<u64>(ids[1])) }, (&7, &1));
    }
}
