//! Schemas, their changes, and bytes: good ones and any.

use crate::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

mod changes;
mod random;

/// Writes a value, reads it again, and checks that each of its beginnings is refused.
#[track_caller]
fn round_trip<T: Stored + PartialEq + std::fmt::Debug>(value: T) -> Vec<u8> {
    let bytes = bytes_of(&value);
    assert_eq!(Reader::read(&bytes, T::get), Ok(value));
    for end in 0..bytes.len() {
        assert!(Reader::read(&bytes[..end], T::get).is_err(), "{end} bytes of {bytes:?}");
    }
    let more: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    assert!(Reader::read(&more, T::get).is_err(), "more than {bytes:?}");
    // The schema knows the end of each value.
    assert_eq!(Schema::of::<T>().plan().convert(&bytes), Ok(bytes.clone()));
    bytes
}

fn bytes_of<T: Stored>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::write(&mut bytes, |to| value.put(to)).unwrap();
    bytes
}

#[derive(Debug, Clone, PartialEq, Stored)]
#[hotrow(crate = "crate::facade")]
struct Node<T> {
    value: T,
    next: Option<Box<Node<T>>>,
    children: Vec<Node<T>>,
}

impl<T> Node<T> {
    fn new(value: T) -> Self {
        Self { value, next: None, children: Vec::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Stored)]
#[hotrow(crate = "crate::facade")]
struct Nothing;

#[derive(Debug, Clone, PartialEq, Stored)]
#[hotrow(crate = "crate::facade")]
enum State {
    New,
    Paid(u32),
    Sent { at: SystemTime, to: [String; 2] },
}

#[derive(Debug, Clone, PartialEq, Stored)]
#[hotrow(crate = "crate::facade")]
#[stored(as = "i64")]
struct Even(i64);

impl From<&Even> for i64 {
    fn from(even: &Even) -> i64 {
        even.0
    }
}

impl TryFrom<i64> for Even {
    type Error = String;
    fn try_from(number: i64) -> Result<Self, String> {
        if number % 2 == 0 { Ok(Self(number)) } else { Err(format!("{number} is odd")) }
    }
}

#[derive(Debug, Clone, PartialEq, Stored)]
#[hotrow(crate = "crate::facade")]
struct Foreign {
    #[stored(with = "AsText")]
    one: NonZero<u8>,
    #[stored(with = "OptionalOf<ListOf<AsText>>")]
    many: Option<Vec<f64>>,
    r#type: u8,
}

#[test]
fn values_of_all_types_are_read_as_they_were_written() {
    for number in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN, 1 << 40] {
        round_trip(number);
        round_trip(number as u64);
        round_trip(number as usize);
        round_trip(number as isize);
        round_trip(number as i32);
        round_trip(number as u32);
        round_trip(number as i16);
        round_trip(number as u16);
        round_trip(number as i8);
        round_trip(number as u8);
        round_trip(i128::from(number) << 60);
        round_trip(number as u128);
        round_trip(number as f64);
        round_trip(number as f32);
    }
    round_trip((u128::MAX, i128::MIN, i128::MAX));
    assert_eq!(round_trip(-1i64), [1], "numbers near zero are short");
    round_trip((true, false, 'ä', char::MAX));
    round_trip((String::new(), String::from("ö"), Box::<str>::from("b"), Arc::<str>::from("c")));
    round_trip((Some(7u8), None::<u8>, Some(None::<u8>)));
    round_trip((Ok::<u8, String>(1), Err::<u8, String>("no".into())));
    round_trip((vec![1u8, 2, 3], vec![300u16], vec![String::new(); 3], [[1u8; 3]; 2]));
    round_trip(([0u32; 0], [vec![1u64], vec![]], Box::new(5u8), Box::<[u16]>::from([1, 2])));
    round_trip(VecDeque::from([1u8, 2]));
    round_trip(Arc::new(7u8));
    round_trip(BTreeMap::from([(1u8, "a".to_owned()), (2, "b".to_owned())]));
    round_trip(HashMap::<u32, Vec<u8>>::from([(1, vec![1]), (2, vec![])]));
    round_trip((BTreeSet::from([3u8, 1]), HashSet::<char>::from(['a', 'b'])));
    round_trip((NonZero::<u8>::MIN, NonZero::<i64>::MAX, NonZero::<u128>::MAX));
    round_trip((Duration::MAX, SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH - Duration::from_nanos(5)));
    round_trip((Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST, IpAddr::V6(Ipv6Addr::LOCALHOST)));
    round_trip(SocketAddr::from(([127, 0, 0, 1], 80)));
    round_trip((std::marker::PhantomData::<str>, 1u8));
    round_trip(vec![
        State::New,
        State::Paid(7),
        State::Sent { at: SystemTime::UNIX_EPOCH, to: ["a".into(), "b".into()] },
    ]);
    round_trip(Node { next: Some(Box::new(Node::new(2))), children: vec![Node::new(3)], ..Node::new(1u32) });
    round_trip(Foreign { one: NonZero::<u8>::MIN, many: Some(vec![0.5, -1e300]), r#type: 1 });
    round_trip(Even(4));
}

#[cfg(feature = "uuid")]
#[test]
fn a_uuid_is_stored() {
    round_trip(uuid::Uuid::from_u128(7));
    assert_eq!(Schema::of::<uuid::Uuid>().to_string(), "UUID 16 of u8");
}

#[test]
fn a_list_of_nothing_has_a_byte_for_each_element() {
    assert_eq!(round_trip(vec![Nothing; 3]), [3, 0, 0, 0]);
    assert_eq!(round_trip(vec![((), [0u8; 0]); 2]), [2, 0, 0]);
    assert!(Reader::read(&[1, 1], Vec::<()>::get).is_err());
}

#[test]
fn what_no_value_has_is_refused() {
    fn refused<T: Stored + std::fmt::Debug>(bytes: &[u8], reason: &str) {
        let read = Reader::read(bytes, T::get).unwrap_err();
        assert!(read.to_string().contains(reason), "{read}");
    }
    refused::<bool>(&[2], "neither true nor false");
    refused::<char>(&[0x80, 0xb0, 3], "character");
    refused::<String>(&[1, 0xff], "UTF-8");
    refused::<u16>(&[0x80, 0x80, 4], "too large");
    refused::<u64>(&[0xff; 10], "too long");
    refused::<u64>(&[0x80, 0], "too long");
    refused::<u128>(&[0xff; 19], "too long");
    refused::<NonZero<u32>>(&[0], "zero");
    refused::<Duration>(&[0, 0x80, 0x94, 0xeb, 0xdc, 3], "nanoseconds");
    refused::<SystemTime>(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], "too far");
    refused::<Option<u8>>(&[2, 0], "option");
    refused::<State>(&[3], "variant 3");
    refused::<Even>(&[2], "1 is odd");
    refused::<BTreeMap<u8, u8>>(&[2, 1, 1, 1, 1], "twice");
    refused::<HashSet<u8>>(&[2, 1, 1], "twice");
    // No memory for what cannot be there.
    refused::<Vec<[u64; 1000]>>(&[0xff, 0xff, 0xff, 0xff, 0xf], "cut off");
}

#[test]
fn what_cannot_be_read_back_is_refused_when_it_is_written() {
    let mut deep = Node::new(());
    for _ in 0..200 {
        deep = Node { next: Some(Box::new(deep)), ..Node::new(()) };
    }
    let refused = Writer::write(&mut Vec::new(), |to| deep.put(to)).unwrap_err();
    assert_eq!(refused, "it is nested more than 100 times");
    assert!(Reader::read(&[1; 1000], Node::<()>::get).is_err());

    // Text that does not lead back.
    struct Lossy;
    impl std::fmt::Display for Lossy {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("lossy")
        }
    }
    impl std::str::FromStr for Lossy {
        type Err = String;
        fn from_str(text: &str) -> Result<Self, String> {
            Err(format!("{text:?} is nothing"))
        }
    }
    let refused = Writer::write(&mut Vec::new(), |to| AsText::put(&Lossy, to)).unwrap_err();
    assert_eq!(refused, "its stored form cannot be read back: \"lossy\" is nothing");
    let refused = Writer::write(&mut Vec::new(), |to| Even(3).put(to)).unwrap_err();
    assert_eq!(refused, "its stored form cannot be read back: 3 is odd");
}

#[test]
fn a_schema_says_all_that_the_bytes_depend_on() {
    assert_eq!(
        Schema::of::<Node<State>>().to_string(),
        "{value: New | Paid(u32) | Sent {at: time (bool, duration (u64, u32)), to: 2 of text}, \
         next: optional …, children: list of …}"
    );
    assert_eq!(Schema::of::<(u8, HashMap<u8, i8>)>().to_string(), "(u8, map of u8 to i8)");
    assert_eq!(Schema::of::<Foreign>().to_string(), "{one: text, many: optional list of text, type: u8}");
    assert_eq!(Schema::of::<Even>().to_string(), "i64");
    assert_eq!(Schema::of::<NonZero<u8>>().to_string(), "nonzero u8");
}

#[test]
fn a_schema_is_read_as_it_was_written() {
    let schema = Schema::of::<(Node<State>, HashMap<String, [u8; 3]>, Foreign)>();
    let bytes = schema.to_bytes();
    assert_eq!(Schema::from_bytes(&bytes), Ok(schema));
    for end in 0..bytes.len() {
        assert!(Schema::from_bytes(&bytes[..end]).is_err());
    }
    // A definition that is not there.
    assert!(Schema::from_bytes(&[7, 0, 0]).is_err());
}

#[test]
fn a_field_is_written_apart_as_among_the_others() {
    let value = Foreign { one: NonZero::<u8>::MAX, many: None, r#type: 9 };
    let whole = bytes_of(&value);
    let parts = Schema::of::<Foreign>().plan();
    let parts = parts.split(&whole).unwrap();
    assert_eq!(parts.len(), Foreign::FIELDS);
    for (field, part) in parts.into_iter().enumerate() {
        let mut bytes = Vec::new();
        Writer::write(&mut bytes, |to| value.put_field(field, to)).unwrap();
        assert_eq!(bytes, part);
    }
}

#[test]
#[allow(clippy::needless_borrow)]
fn a_type_is_asked_if_it_is_stored() {
    struct No;
    assert!((&Probe::<No>::new()).stored().is_none());
    assert!((&Probe::<State>::new()).stored().is_some());
}
