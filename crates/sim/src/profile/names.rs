//! Names of lines: the segment, the index, or the piece of memory that they belong to.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::machine::LINE_BYTES;

/// A segment's lines: this many bytes from its address on may belong to it.
const SEGMENT_BYTES_MAX: usize = 1024;

/// The owner of a line, or of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// Nothing in particular.
    Nothing,
    /// The segment at an address.
    Segment(usize),
    /// An index of an object.
    Index(usize),
    /// A piece of memory that has a name: the position of its name.
    Named(usize),
    /// Something that was accessed under a label.
    Label(&'static str),
}

#[derive(Debug)]
struct Segment {
    object: usize,
    key: Option<String>,
}

/// The names that a run has learned.
#[derive(Debug)]
pub(super) struct Names {
    lines: BTreeMap<u64, Owner>,
    objects: BTreeMap<usize, String>,
    segments: BTreeMap<usize, Segment>,
}

/// A named piece of memory.
#[derive(Clone, Debug)]
struct Named {
    first: usize,
    past: usize,
    name: String,
}

thread_local! {
    static NAMED: RefCell<Vec<Named>> = const { RefCell::new(Vec::new()) };
}

/// Names a piece of memory for the profiles of this thread's simulations. A later name of the same memory replaces an earlier
/// one.
pub fn name_memory(address: usize, bytes: usize, name: impl Into<String>) {
    let named = Named { first: address, past: address + bytes, name: name.into() };
    NAMED.with_borrow_mut(|all| {
        all.retain(|other| other.past <= named.first || named.past <= other.first);
        all.push(named);
    });
}

fn line_of(address: usize) -> u64 {
    (address / LINE_BYTES) as u64
}

/// The position of the name of the memory at an address.
fn named(first: usize, past: usize) -> Option<usize> {
    NAMED.with_borrow(|all| all.iter().position(|named| named.first < past && first < named.past))
}

impl Names {
    pub(super) fn new() -> Self {
        Self { lines: BTreeMap::new(), objects: BTreeMap::new(), segments: BTreeMap::new() }
    }

    /// The owner of an address, 0 for none.
    pub(super) fn owner_of(&self, address: usize) -> Owner {
        if address == 0 {
            return Owner::Nothing;
        }
        if self.segments.contains_key(&address) {
            return Owner::Segment(address);
        }
        if let Some(named) = named(address, address + 1) {
            return Owner::Named(named);
        }
        self.lines.get(&line_of(address)).copied().unwrap_or(Owner::Nothing)
    }

    pub(super) fn owner_of_segment(&self, address: usize) -> Owner {
        Owner::Segment(address)
    }

    /// The owner of a line; if it has none, the label under which it is accessed now.
    pub(super) fn owner_of_line(&self, line: u64, label: &'static str) -> Owner {
        self.lines.get(&line).copied().unwrap_or(Owner::Label(label))
    }

    pub(super) fn owner_of_known_line(&self, line: u64) -> Owner {
        self.lines.get(&line).copied().unwrap_or(Owner::Nothing)
    }

    pub(super) fn own_by_segment(&mut self, line: u64, address: usize) {
        let first = line_of(address);
        if (first..=line_of(address + SEGMENT_BYTES_MAX)).contains(&line) {
            let object = self.object_of(address);
            let owner =
                self.lines.entry(line).or_insert_with(|| Self::owner_or(line, Owner::Segment(address)));
            // A lookup may have reached the segment's line before it was known to be one.
            if *owner == Owner::Index(object) {
                *owner = Owner::Segment(address);
            }
        } else {
            self.own_by_object(line, self.object_of(address));
        }
    }

    pub(super) fn own_by_object(&mut self, line: u64, object: usize) {
        self.lines.entry(line).or_insert_with(|| Self::owner_or(line, Owner::Index(object)));
    }

    pub(super) fn label(&mut self, line: u64, label: &'static str) {
        self.lines.entry(line).or_insert_with(|| Self::owner_or(line, Owner::Label(label)));
    }

    fn owner_or(line: u64, owner: Owner) -> Owner {
        let first = line as usize * LINE_BYTES;
        named(first, first + LINE_BYTES).map_or(owner, Owner::Named)
    }

    pub(super) fn knows_object(&self, object: usize) -> bool {
        self.objects.contains_key(&object)
    }

    pub(super) fn name_object(&mut self, object: usize, name: String) {
        self.objects.insert(object, name);
    }

    pub(super) fn object_of(&self, segment: usize) -> usize {
        self.segments.get(&segment).map_or(0, |segment| segment.object)
    }

    /// Notes that a segment is about to be accessed. A new one forgets what was in its memory before.
    pub(super) fn touch(&mut self, address: usize, object: usize, is_new: bool) {
        let is_same = |segment: &mut Segment| segment.object == object && !is_new;
        if self.segments.get_mut(&address).is_some_and(is_same) {
            return;
        }
        self.segments.insert(address, Segment { object, key: None });
        let line = line_of(address);
        match self.lines.get(&line) {
            Some(Owner::Segment(other)) if *other != address && self.object_of(*other) == object => {}
            Some(Owner::Named(_)) => {}
            _ => _ = self.lines.insert(line, Owner::Segment(address)),
        }
    }

    pub(super) fn lacks_key(&self, address: usize) -> bool {
        self.segments.get(&address).is_some_and(|segment| segment.key.is_none())
    }

    pub(super) fn name_segment(&mut self, address: usize, key: String) {
        if let Some(segment) = self.segments.get_mut(&address) {
            segment.key = Some(key);
        }
    }

    fn object(&self, object: usize) -> &str {
        self.objects.get(&object).map_or("(unknown object)", String::as_str)
    }

    pub(super) fn name(&self, owner: Owner) -> String {
        match owner {
            Owner::Nothing => String::from("(nothing named)"),
            Owner::Segment(address) => match self.segments.get(&address) {
                None => String::from("(unknown segment)"),
                Some(Segment { object, key: Some(key) }) => format!("{} {key}", self.object(*object)),
                Some(Segment { object, key: None }) => format!("{}, other rows", self.object(*object)),
            },
            Owner::Index(object) => format!("{}, index", self.object(object)),
            Owner::Named(position) => {
                NAMED.with_borrow(|all| all.get(position).map_or(String::new(), |named| named.name.clone()))
            }
            Owner::Label(label) => format!("(unnamed, first in {label})"),
        }
    }
}
