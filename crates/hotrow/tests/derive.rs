//! The derive macros, as users meet them.

#[path = "derived/boxed_generic.rs"]
mod boxed_generic;
#[path = "derived/inline_without_padding.rs"]
mod inline_without_padding;
#[path = "derived/stored.rs"]
mod stored;

use hotrow::cell::{Boxed, Inline, Plain};
use hotrow::key::{KeyPart, LONG, Packer, words};
use hotrow::{Key, Text, Value};
use std::any::TypeId;
use std::fmt::Debug;

fn cell_of<T: Value>() -> TypeId {
    TypeId::of::<T::Cell>()
}

fn assert_inline<T: Plain + Value>() {
    assert_eq!(cell_of::<T>(), TypeId::of::<Inline<T>>());
}

fn assert_boxed<T: Value>() {
    assert_eq!(cell_of::<T>(), TypeId::of::<Boxed<T>>());
}

#[derive(Debug, Clone, Copy, PartialEq, Value)]
#[value(inline)]
struct Account {
    balance: i64,
    owner: Text<6>,
    frozen: bool,
    grade: Grade,
}

#[derive(Debug, Clone, Copy, PartialEq, Value)]
#[value(inline)]
#[repr(u8)]
enum Grade {
    Good = 1,
    #[expect(dead_code, reason = "a second variant, so that some bit patterns are valid and others are not")]
    Bad = 2,
}

#[derive(Clone, Copy, Value)]
#[value(inline)]
#[expect(dead_code, reason = "only its layout counts")]
struct Pair(u32, [u16; 2]);

#[derive(Clone, Copy, Value)]
#[value(inline)]
struct Present {}

#[derive(Clone, Value)]
struct Article {
    title: String,
    votes: Vec<u64>,
}

#[derive(Clone, Value)]
#[value(boxed)]
#[expect(dead_code, reason = "only its cell counts")]
enum Shape<T, const N: usize>
where
    T: Debug,
{
    Point,
    Polygon([T; N]),
}

mod renamed {
    pub(crate) mod elsewhere {
        pub(crate) use hotrow::*;
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, elsewhere::Key, elsewhere::Value)]
    #[hotrow(crate = "elsewhere")]
    #[value(inline)]
    pub(crate) struct Number {
        pub(crate) number: u32,
    }
}

#[test]
fn the_attribute_decides_which_cell_holds_a_value() {
    assert_inline::<Account>();
    assert_inline::<Grade>();
    assert_inline::<Pair>();
    assert_inline::<Present>();
    assert_inline::<renamed::Number>();
    assert_boxed::<Article>();
    assert_boxed::<Shape<u64, 3>>();
    assert_boxed::<Shape<String, 1>>();
}

#[test]
fn an_inline_value_comes_out_of_its_cell_as_it_went_in() {
    use hotrow::cell::Cell as _;
    let account =
        Account { balance: -7, owner: "anna".try_into().unwrap(), frozen: true, grade: Grade::Good };
    let cell = <Inline<Account>>::new(account);
    // SAFETY: nobody else knows the cell.
    assert_eq!(unsafe { *cell.in_place() }, account);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct District {
    warehouse: u16,
    district: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct Line {
    order: Order,
    line: i8,
    open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct Order(District, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct Name {
    district: District,
    last: Text<12>,
    initial: char,
    code: [u8; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct Only;

fn assert_ordered<K: Key>(keys: &[K]) {
    for a in keys {
        for b in keys {
            assert_eq!(a.cmp(b), a.image().cmp(&b.image()), "{a:?} {b:?}");
        }
    }
}

#[test]
fn a_key_is_packed_into_as_few_words_as_it_needs() {
    assert_eq!(District { warehouse: 0x1234, district: 0x56 }.image(), [0x1234_5600_0000_0000]);
    let order = Order(District { warehouse: 1, district: 2 }, 3);
    assert_eq!(order.image(), [0x0001_0200_0000_0300]);
    assert_eq!(Line { order, line: 1, open: true }.image(), [0x0001_0200_0000_0381, 0x8000_0000_0000_0000]);
    assert_eq!(Only.image(), [0]);
    assert_eq!(renamed::Number { number: 7 }.image(), [7 << 32]);
    assert_eq!(<Name as KeyPart>::BITS, 24 + 96 + 21 + 24);
    assert_eq!(size_of::<<Name as Key>::Image>(), 8 * words(165));
}

#[test]
fn a_key_nests_in_another_with_the_same_bits() {
    let district = District { warehouse: 9, district: 8 };
    let mut nested = [0];
    district.pack(&mut Packer::new(&mut nested));
    assert_eq!(nested, district.image());
}

#[test]
fn the_images_order_is_that_of_the_fields() {
    let mut lines = Vec::new();
    let mut names = Vec::new();
    for warehouse in [0, 1, 256, u16::MAX] {
        for (order, line) in [(0, 0), (1, -128), (1, -1), (1, 0), (1, 127), (u32::MAX, 5)] {
            let district = District { warehouse, district: 255 - warehouse as u8 };
            for open in [false, true] {
                lines.push(Line { order: Order(district, order), line, open });
            }
            let last = Text::prefix_of(["", "a", "ab", "b", "zzzzzzzzzzzz", "ä"][order as usize % 6]);
            names.push(Name { district, last, initial: 'x', code: [line as u8, 1, 2] });
            names.push(Name { district, last, initial: char::MAX, code: [0; 3] });
        }
    }
    assert_ordered(&lines);
    assert_ordered(&names);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum Colour {
    Red,
    Green,
    Blue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum Level {
    Low = -5,
    High = 1 << 20,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum Place {
    Nowhere,
    Shelf(u8, Option<u32>),
    Drawer { colour: Colour, depth: i16 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct Thing {
    place: Place,
    number: u128,
    level: (Level, bool),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum Contact {
    None,
    Mail { name: String, host: Box<str> },
    Phone(Vec<u8>, Option<i8>),
    Near(Thing),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct Visit {
    contact: Option<Contact>,
    note: String,
    day: i32,
}

/// All values of a few that lie at borders.
fn places() -> Vec<Place> {
    let mut places = vec![Place::Nowhere];
    for shelf in [0, 1, u8::MAX] {
        for box_ in [None, Some(0), Some(1), Some(u32::MAX)] {
            places.push(Place::Shelf(shelf, box_));
        }
    }
    for colour in [Colour::Red, Colour::Green, Colour::Blue] {
        places.extend([i16::MIN, -1, 0, 1, i16::MAX].map(|depth| Place::Drawer { colour, depth }));
    }
    places
}

fn things() -> Vec<Thing> {
    let mut things = Vec::new();
    for place in places() {
        for number in [0, 1, 1 << 64, u128::MAX] {
            for level in [(Level::Low, true), (Level::High, false)] {
                things.push(Thing { place, number, level });
            }
        }
    }
    things
}

#[test]
fn enums_have_the_order_of_their_variants_and_fields() {
    assert_ordered(&[Colour::Red, Colour::Green, Colour::Blue]);
    assert_ordered(&[Level::Low, Level::High]);
    assert_ordered(&places());
    assert_ordered(&things());
    assert_eq!(<Colour as KeyPart>::BITS, 2);
    // The number of the variant, and what the largest one needs.
    assert_eq!(<Place as KeyPart>::BITS, 2 + 8 + 1 + 32);
    assert_eq!(size_of::<<Thing as Key>::Image>(), 8 * 3);
}

#[test]
fn keys_of_any_length_have_the_order_of_their_fields() {
    let mut contacts = vec![Contact::None];
    for name in ["", "a", "a\0", "a\0b", "ab", "é"] {
        contacts.extend(["", "x", "\0"].map(|host| Contact::Mail { name: name.into(), host: host.into() }));
        contacts.extend([None, Some(-1), Some(1)].map(|kind| Contact::Phone(name.into(), kind)));
    }
    contacts.extend(things().into_iter().step_by(17).map(Contact::Near));
    assert_ordered(&contacts);
    let mut visits = Vec::new();
    for contact in contacts.iter().step_by(3).cloned().map(Some).chain([None]) {
        for note in ["", "\0", "\u{1}", "b"] {
            visits.extend([i32::MIN, 0, 7].map(|day| Visit {
                contact: contact.clone(),
                note: note.into(),
                day,
            }));
        }
    }
    assert_ordered(&visits);
    assert_eq!(<Visit as KeyPart>::BITS, LONG);
    let visit = &visits[0];
    assert!(Key::heap_bytes(visit) >= visit.note.capacity());
}

#[test]
fn types_of_many_shapes_are_derived() {
    boxed_generic::main();
    inline_without_padding::main();
    stored::main();
}

#[test]
fn a_misuse_of_the_macros_does_not_compile() {
    // Cases that compile are in modules of this file (`derived`): with them among these, all that the tests use would be compiled once more.
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}

/// A type that is no value, with bytes that nobody knows of.
#[derive(Clone)]
struct Unknown {
    _text: String,
}

#[derive(Clone, Value)]
struct Everything<T> {
    bytes: Vec<u8>,
    pair: (u64, String),
    part: Option<Part>,
    slice: Box<[u8]>,
    unknown: Unknown,
    generic: T,
    number: u64,
}

#[derive(Clone, Value)]
enum Part {
    Named { text: String },
    Nested(Box<[u64; 4]>, u8),
    Nothing,
}

#[derive(Clone, Copy, Value)]
#[repr(C, packed)]
struct Packed {
    small: u8,
    large: u64,
}

#[test]
fn the_bytes_that_a_value_owns_are_the_sum_over_its_fields() {
    let unknown = || Unknown { _text: "unseen".to_owned() };
    let row = Everything {
        bytes: Vec::with_capacity(1_000),
        pair: (1, String::with_capacity(100)),
        part: None,
        slice: vec![1; 10].into_boxed_slice(),
        unknown: unknown(),
        generic: String::with_capacity(5_000),
        number: 1,
    };
    assert_eq!(row.heap_bytes(), 6_110);
    let of_a_value_only = Everything { generic: 1u8, part: Some(Part::Nothing), ..with(unknown()) };
    assert_eq!(of_a_value_only.heap_bytes(), 0);
    assert_eq!(of_a_value_only.number, 2);
    assert_eq!(Part::Named { text: String::with_capacity(70) }.heap_bytes(), 70);
    assert_eq!(Part::Nested(Box::new([1; 4]), 1).heap_bytes(), 32);
    assert_eq!(Part::Nothing.heap_bytes(), 0);
    let packed = Packed { small: 1, large: 2 };
    assert_eq!(packed.heap_bytes() + packed.small as usize + { packed.large } as usize, 3);
}

fn with(unknown: Unknown) -> Everything<u8> {
    let slice = Box::new([]);
    Everything {
        bytes: Vec::new(),
        pair: (1, String::new()),
        part: None,
        slice,
        unknown,
        generic: 0,
        number: 2,
    }
}
