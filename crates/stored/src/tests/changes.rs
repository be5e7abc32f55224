//! Changes of types.

use super::*;

/// Declares types of the same name, one after the other, in modules of their own.
macro_rules! versions {
    ($($version:ident { $($item:item)+ })+) => {$(
        mod $version {
            #![allow(unreachable_pub, unused_imports)]
            use super::*;
            $(
                #[derive(Debug, Clone, PartialEq, Stored)]
                #[hotrow(crate = "crate::facade")]
                $item
            )+
        }
    )+};
}

fn change<Old: Stored, New: Stored>() -> Result<Change, Difference> {
    // What a later program knows of the earlier type is what the catalog has kept.
    let kept = Schema::from_bytes(&Schema::of::<Old>().to_bytes()).unwrap();
    Schema::of::<New>().change_from(&kept, "row")
}

#[track_caller]
fn refused<Old: Stored, New: Stored>(words: &str) {
    assert_eq!(change::<Old, New>().unwrap_err().to_string(), words);
}

/// Reads a value of an earlier type as one of the present type.
#[track_caller]
fn read_as<Old: Stored, New: Stored>(old: &Old) -> New {
    let bytes = bytes_of(old);
    let bytes = match change::<Old, New>().unwrap() {
        Change::None | Change::Names => bytes,
        Change::Bytes(plan) => plan.convert(&bytes).unwrap(),
    };
    Reader::read(&bytes, New::get).unwrap()
}

versions! {
    first {
        pub struct Order {
            pub item: String,
            pub count: u32,
            pub state: State,
            pub lines: Vec<Line>,
        }
        pub enum State {
            New,
            Paid(u32),
            Sent { to: String },
        }
        pub struct Line {
            pub price: u32,
            pub inside: Vec<Line>,
        }
    }
    second {
        pub struct Order {
            #[stored(default = "nobody".to_owned())]
            pub owner: String,
            pub item: String,
            #[stored(alias = "count")]
            pub pieces: u32,
            pub state: Status,
            pub lines: Vec<Line>,
            #[stored(default)]
            pub notes: Vec<String>,
        }
        pub enum Status {
            #[stored(alias = "New")]
            Open,
            Paid(u32),
            Sent {
                to: String,
                #[stored(default = 7)]
                days: u8,
            },
            Lost,
        }
        pub struct Line {
            pub price: u32,
            #[stored(default = true)]
            pub taxed: bool,
            pub inside: Vec<Line>,
        }
    }
    names {
        pub struct Order {
            #[stored(alias = "item")]
            pub what: String,
            pub count: u32,
            pub state: State,
            pub lines: Vec<Line>,
        }
        pub enum State {
            New,
            #[stored(alias = "Paid")]
            Settled(u32),
            Sent { to: String },
            Lost,
        }
        pub struct Line {
            pub price: u32,
            pub inside: Vec<Line>,
        }
    }
    signed { pub enum State { New, Paid(i32), Sent { to: String } } }
    fewer { pub enum State { New, Paid(u32) } }
    between { pub enum State { New, Lost, Paid(u32), Sent { to: String } } }
    exchanged { pub struct Line { pub inside: Vec<Line>, pub price: u32 } }
    without { pub struct Line { pub price: u32 } }
    more { pub struct Line { pub price: u32, pub taxed: bool, pub inside: Vec<Line> } }
    deep { pub struct Line { pub price: u32, pub inside: Vec<Other> } pub struct Other { pub price: u64, pub inside: Vec<Line> } }
}

#[test]
fn safe_changes_read_earlier_values() {
    let line = |price, inside| first::Line { price, inside };
    let old = first::Order {
        item: "tea".into(),
        count: 2,
        state: first::State::Sent { to: "ada".into() },
        lines: vec![line(1, vec![line(2, vec![]), line(3, vec![line(4, vec![])])])],
    };
    let line = |price, inside| second::Line { price, taxed: true, inside };
    let new = second::Order {
        owner: "nobody".into(),
        item: "tea".into(),
        pieces: 2,
        state: second::Status::Sent { to: "ada".into(), days: 7 },
        lines: vec![line(1, vec![line(2, vec![]), line(3, vec![line(4, vec![])])])],
        notes: vec![],
    };
    assert_eq!(read_as::<_, second::Order>(&old), new);
    assert!(matches!(change::<first::Order, second::Order>(), Ok(Change::Bytes(_))));
    assert_eq!(read_as::<_, second::Status>(&first::State::New), second::Status::Open);
    assert_eq!(read_as::<_, second::Status>(&first::State::Paid(9)), second::Status::Paid(9));
    // And within containers.
    let map = HashMap::from([(Some(1u8), [first::State::New, first::State::Paid(1)])]);
    let read: HashMap<Option<u8>, [second::Status; 2]> = read_as(&map);
    assert_eq!(read[&Some(1)], [second::Status::Open, second::Status::Paid(1)]);
}

#[test]
fn names_and_variants_leave_the_bytes_as_they_are() {
    assert!(matches!(change::<first::Order, names::Order>(), Ok(Change::Names)));
    assert!(matches!(change::<first::Order, first::Order>(), Ok(Change::None)));
    // The way back is none.
    refused::<names::Order, first::Order>("row.item: text is new, and has no default");
    refused::<second::Status, first::State>("row.Open: it is gone");
}

#[test]
fn names_and_places_of_types_do_not_count() {
    versions! { moved { pub enum Renamed { New, Paid(u32), Sent { to: String } } } }
    assert!(matches!(change::<first::State, moved::Renamed>(), Ok(Change::None)));
}

#[test]
fn everything_else_is_refused_with_its_place() {
    refused::<u32, i32>("row: i32 was u32");
    refused::<first::State, signed::State>("row.Paid.0: i32 was u32");
    refused::<first::State, fewer::State>("row.Sent: it is gone");
    refused::<first::State, between::State>(
        "row.Paid: it was at another place among the variants; new ones come behind all others",
    );
    refused::<first::Line, exchanged::Line>("row.inside: it was at another place among the fields");
    refused::<first::Line, without::Line>(
        "row.inside: it is gone, and was list of {price: u32, inside: list of …}",
    );
    refused::<first::Line, more::Line>("row.taxed: bool is new, and has no default");
    refused::<first::Line, deep::Line>("row.inside[].price: u64 was u32");
    refused::<(u8, Vec<Option<u16>>), (u8, Vec<Option<i16>>)>("row.1[]: i16 was u16");
    refused::<HashMap<u8, [u8; 2]>, HashMap<u8, [u8; 3]>>("row.value: 3 of u8 was 2 of u8");
    refused::<u32, NonZero<u32>>("row: nonzero u32 was u32");
    refused::<Vec<u8>, BTreeSet<u8>>("row: set: list of u8 was list of u8");
    refused::<(u8, u8), (u8, u8, u8)>("row: (u8, u8, u8) was (u8, u8)");
    refused::<first::Line, (u32, u8)>("row: (u32, u8) was {price: u32, inside: list of …}");
}

#[test]
fn several_changes_follow_each_other() {
    versions! {
        one { pub struct Row { pub a: u8 } }
        two { pub struct Row { pub a: u8, #[stored(default = 2)] pub b: u8 } }
        three { pub struct Row { #[stored(alias = "a")] pub first: u8, #[stored(default = 2)] pub b: u8, #[stored(default = 3)] pub c: u8 } }
    }
    let row: three::Row = read_as(&read_as::<_, two::Row>(&one::Row { a: 1 }));
    assert_eq!(row, three::Row { first: 1, b: 2, c: 3 });
    assert_eq!(read_as::<_, three::Row>(&one::Row { a: 1 }), row);
}

#[test]
#[should_panic(expected = "the default of field odd cannot be stored")]
fn a_default_can_be_stored() {
    versions! { odd { pub struct Row { #[stored(default = Even(1))] pub odd: Even } } }
    let _ = Schema::of::<odd::Row>();
}
