//! Images of random keys of each kind of types.

use super::*;
use hotrow::{Key as DeriveKey, Stored as DeriveStored, Text};
use hotrow_sync::random::Random;
use std::fmt::Debug;
use uuid::Uuid;

/// Random values of a type.
trait Arbitrary {
    fn arbitrary(random: &mut Random) -> Self;
}

macro_rules! integers {
    ($($of:ty)*) => {$(
        impl Arbitrary for $of {
            fn arbitrary(random: &mut Random) -> Self {
                let wide = u128::from(random.below(u64::MAX)) << 64 | u128::from(random.below(u64::MAX));
                let few = [0, 1, <$of>::MAX, <$of>::MIN, <$of>::MAX / 2];
                match random.below(3) {
                    0 => few[random.below(5) as usize],
                    _ => (wide >> random.below(120)) as $of,
                }
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

macro_rules! arbitrary {
    ($($of:ty: |$random:ident| $make:expr;)*) => {$(
        impl Arbitrary for $of {
            fn arbitrary($random: &mut Random) -> Self {
                $make
            }
        }
    )*};
}
arbitrary! {
    (): |_random| ();
    bool: |random| random.below(2) == 1;
    char: |random| char::from_u32(random.below(0x11_0000) as u32).unwrap_or('x');
    Vec<u8>: |random| (0..random.below(12)).map(|_| [0, 1, 7, 0xff][random.below(4) as usize]).collect();
    String: |random| (0..random.below(12)).map(|_| ['\0', 'a', 'b', '\u{ff}'][random.below(4) as usize]).collect();
    Box<str>: |random| String::arbitrary(random).into();
    Box<[u8]>: |random| Vec::arbitrary(random).into();
    Text<7>: |random| String::arbitrary(random).chars().filter(|c| *c == 'a').take(7).collect::<String>().parse().unwrap();
    Uuid: |random| Uuid::from_u128(u128::arbitrary(random));
}

impl<const N: usize> Arbitrary for [u8; N] {
    fn arbitrary(random: &mut Random) -> Self {
        std::array::from_fn(|_| u8::arbitrary(random))
    }
}

impl<T: Arbitrary> Arbitrary for Option<T> {
    fn arbitrary(random: &mut Random) -> Self {
        bool::arbitrary(random).then(|| T::arbitrary(random))
    }
}

macro_rules! tuples {
    ($(($($part:ident)*))*) => {$(
        impl<$($part: Arbitrary),*> Arbitrary for ($($part,)*) {
            fn arbitrary(random: &mut Random) -> Self {
                ($($part::arbitrary(random),)*)
            }
        }
    )*};
}
tuples! { (A B) (A B C) (A B C D) }

macro_rules! derived {
    ($($(#[$attribute:meta])* struct $name:ident { $($field:ident: $of:ty),* })*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveKey, DeriveStored)]
        struct $name { $($field: $of),* }

        impl Arbitrary for $name {
            fn arbitrary(random: &mut Random) -> Self {
                Self { $($field: Arbitrary::arbitrary(random)),* }
            }
        }
    )*};
}
derived! {
    struct Packed { a: u8, b: Option<u16>, c: bool, d: char, e: i128, f: [u8; 3], g: (i32, Option<bool>) }
    struct Short { a: bool }
    struct Long { a: u8, b: String, c: Option<Vec<u8>>, d: i64, e: Text<7>, f: Uuid, g: (bool, char) }
    struct Nested { a: Choice, b: Packed, c: Other, d: u8 }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveKey, DeriveStored)]
enum Choice {
    None,
    Small(u8),
    Large { a: u32, b: Option<i8> },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveKey, DeriveStored)]
enum Other {
    Only(Short),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveKey, DeriveStored)]
enum Named {
    Number(u64),
    Name(String, Choice),
}

impl Arbitrary for Choice {
    fn arbitrary(random: &mut Random) -> Self {
        match random.below(3) {
            0 => Self::None,
            1 => Self::Small(Arbitrary::arbitrary(random)),
            _ => Self::Large { a: Arbitrary::arbitrary(random), b: Arbitrary::arbitrary(random) },
        }
    }
}

impl Arbitrary for Other {
    fn arbitrary(random: &mut Random) -> Self {
        Self::Only(Arbitrary::arbitrary(random))
    }
}

impl Arbitrary for Named {
    fn arbitrary(random: &mut Random) -> Self {
        match bool::arbitrary(random) {
            true => Self::Number(Arbitrary::arbitrary(random)),
            false => Self::Name(Arbitrary::arbitrary(random), Arbitrary::arbitrary(random)),
        }
    }
}

/// Checks that the images of random keys are those that the type makes.
fn check<K: Key + Arbitrary + Debug>() {
    let stored = K::stored().unwrap();
    let form = KeyForm::of(&stored.schema()).unwrap();
    let mut random = Random::seeded(7);
    for _ in 0..300 {
        let key = K::arbitrary(&mut random);
        let mut bytes = Vec::new();
        hotrow_stored::Writer::write(&mut bytes, |to| (stored.put)(&key, to)).unwrap();
        let mut image = Vec::new();
        form.put_image(&bytes, &mut image).unwrap_or_else(|wrong| panic!("{key:?}: {wrong}"));
        assert_eq!(image, image_bytes(&key), "{} {key:?}", std::any::type_name::<K>());
        // Bytes that are no key are refused, or are another one.
        let at = random.below(bytes.len() as u64 + 1) as usize;
        bytes.insert(at, u8::arbitrary(&mut random));
        let is_key = Reader::read(&bytes, stored.get).is_ok();
        assert_eq!(form.put_image(&bytes, &mut Vec::new()).is_ok(), is_key, "{bytes:?}");
    }
}

macro_rules! check_all {
    ($($of:ty),* $(,)?) => { $(check::<$of>();)* };
}

#[test]
fn images_are_those_of_the_types() {
    check_all!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, bool, char, ());
    check_all!(String, Box<str>, Vec<u8>, Box<[u8]>, [u8; 1], [u8; 8], [u8; 9], [u8; 64], Text<7>, Uuid);
    check_all!(Option<u8>, Option<String>, Option<u128>, Option<Option<u8>>, Option<Option<String>>);
    check_all!(
        Option<[u8; 9]>,
        Option<(u8, i128)>,
        Option<(String, u8)>,
        Option<(u8, Vec<u8>)>,
        Option<Uuid>
    );
}

#[test]
fn images_of_tuples_are_those_of_the_types() {
    check_all!((u8, i16), (String, u32), (u32, String), (String, Vec<u8>), (bool, char, ()), ((), String));
    check_all!((u8, String, u8), (String, String, String), (u128, [u8; 9], Uuid, Text<7>), ((u8, u8), i8));
    check_all!(((String, u8), u8), (u8, (String, u8), u8), (Option<String>, u8), (u8, Option<(u8, String)>));
    check_all!((String, u8, Option<u64>, Vec<u8>), (Option<u8>, Option<u8>, Option<u8>, Option<u8>));
}

#[test]
fn images_of_derived_keys_are_those_of_the_types() {
    check_all!(Packed, Short, Long, Nested, Choice, Other, Named);
    check_all!(Option<Packed>, Option<Long>, Option<Choice>, Option<Named>);
    check_all!((Packed, u8), (Long, u8), (u8, Named), (Choice, Other), (Named, Long, Short, String));
}

#[test]
fn keys_of_which_the_order_is_not_known_are_refused() {
    let refused = |schema: Schema| KeyForm::of(&schema).unwrap_err();
    assert!(refused(Schema::of::<f64>()).ends_with("there are floating-point numbers"));
    assert!(refused(Schema::of::<Vec<u32>>()).ends_with("there are several values"));
    assert!(refused(Schema::of::<std::net::IpAddr>()).ends_with("a type is of the program's own"));
    #[derive(DeriveStored)]
    struct List {
        next: Option<Box<List>>,
    }
    assert!(refused(Schema::of::<List>()).ends_with("a type contains itself"));
}
