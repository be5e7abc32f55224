//! Types that are stored.

#![deny(warnings)]

mod inner {
    #[derive(Debug, Clone, Copy, PartialEq, hotrow::Stored, hotrow::Value)]
    #[value(inline)]
    #[repr(u8)]
    pub(crate) enum Kind {
        One = 7,
        Two = 9,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, hotrow::Stored, hotrow::Key)]
struct Id(u32, String);

#[derive(Clone, Copy, hotrow::Stored, hotrow::Value)]
#[value(inline)]
#[repr(C, packed)]
struct Packed {
    small: u8,
    large: u64,
}

#[derive(Clone, hotrow::Stored, hotrow::Value)]
struct Nothing;

#[derive(Clone, hotrow::Stored, hotrow::Value)]
#[value(stored)]
struct Row<T, const N: usize> {
    kind: inner::Kind,
    r#type: T,
    #[stored(default = [1; N], alias = "old", alias = "older")]
    list: [u8; N],
    nothing: Nothing,
    #[stored(with = "hotrow::stored::OptionalOf<hotrow::stored::AsText>")]
    text: Option<std::num::NonZeroU8>,
}

pub(super) fn main() {
    use hotrow::{Key, Value};
    assert!(Id::stored().is_some() && <(Id, u8)>::stored().is_some());
    assert!(Packed::stored().is_some() && Nothing::stored().is_some());
    assert!(<Vec<(Row<String, 3>, Option<inner::Kind>)>>::stored().is_some());
    assert!(<Option<Mortal>>::stored().is_none());
}

#[derive(Clone, hotrow::Value)]
struct Mortal(#[allow(dead_code)] u8);
