//! Random schemas, values and bytes.

use super::*;
use fastrand::Rng;

#[derive(Debug, Clone, PartialEq, Stored)]
#[hotrow(crate = "crate::facade")]
enum Tree {
    Leaf,
    Number(i64, Option<u8>),
    Text { words: Vec<String>, mark: char },
    Branch(Vec<Tree>),
    Map(BTreeMap<String, Tree>),
    Wide { id: NonZero<u32>, address: IpAddr, age: Duration, nothing: Vec<()>, flags: [bool; 3] },
}

fn text(random: &mut Rng) -> String {
    (0..random.usize(..4)).map(|_| random.char(..)).collect()
}

fn tree(random: &mut Rng, depth: u32) -> Tree {
    match random.u8(if depth > 5 { 0..3 } else { 0..6 }) {
        0 => Tree::Leaf,
        1 => Tree::Number(random.i64(..) >> random.u8(..64), random.bool().then(|| random.u8(..))),
        2 => Tree::Text {
            words: (0..random.usize(..3)).map(|_| text(random)).collect(),
            mark: random.char(..),
        },
        3 => Tree::Branch((0..random.usize(..4)).map(|_| tree(random, depth + 1)).collect()),
        4 => Tree::Map((0..random.usize(..4)).map(|_| (text(random), tree(random, depth + 1))).collect()),
        _ => Tree::Wide {
            id: NonZero::new(random.u32(1..)).unwrap(),
            address: if random.bool() {
                Ipv4Addr::from(random.u32(..)).into()
            } else {
                Ipv6Addr::from(random.u128(..)).into()
            },
            age: Duration::new(random.u64(..), random.u32(..1_000_000_000)),
            nothing: vec![(); random.usize(..5)],
            flags: [random.bool(), random.bool(), random.bool()],
        },
    }
}

#[test]
fn random_values_are_read_as_they_were_written() {
    let mut random = Rng::with_seed(1);
    for _ in 0..300 {
        let value = tree(&mut random, 0);
        let bytes = bytes_of(&value);
        assert_eq!(Reader::read(&bytes, Tree::get), Ok(value));
        assert_eq!(Schema::of::<Tree>().plan().convert(&bytes), Ok(bytes));
    }
}

#[test]
fn damaged_bytes_are_a_value_or_refused() {
    let mut random = Rng::with_seed(2);
    let plan = Schema::of::<Tree>().plan();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = bytes_of(&tree(&mut random, 3));
        for _ in 0..random.usize(1..3) {
            let at = random.usize(..bytes.len());
            match random.u8(..4) {
                0 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.usize(..5)],
                1 => bytes[at] ^= 1 << random.u8(..8),
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, random.u8(..)),
            }
        }
        match Reader::read(&bytes, Tree::get) {
            Ok(value) => {
                read += 1;
                assert_eq!(Reader::read(&bytes_of(&value), Tree::get), Ok(value));
                assert_eq!(plan.convert(&bytes), Ok(bytes));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 100 && refused > 100, "{read} values were read, {refused} refused");
}

/// A random type, and the structs and enums in it.
fn schema(random: &mut Rng) -> Schema {
    let count = random.u32(1..4);
    let fields = |random: &mut Rng| {
        let some = random.usize(..4);
        let field = |at: usize| Field::new(format!("field {at}"), any_type(random, count, 0));
        (0..some).map(field).collect::<Vec<_>>()
    };
    let definitions = (0..count).map(|_| match random.bool() {
        true => Definition::Struct(fields(random)),
        false => Definition::Enum(
            (0..random.usize(1..4)).map(|at| Variant::new(format!("Variant{at}"), fields(random))).collect(),
        ),
    });
    let definitions = definitions.collect();
    Schema { root: any_type(random, count, 0), definitions }
}

fn any_type(random: &mut Rng, count: u32, depth: u32) -> Type {
    let mut part = || Box::new(if depth > 4 { Type::UNIT } else { any_type(random, count, depth + 1) });
    let (one, two) = (part(), part());
    match random.u8(..9) {
        0 => Type::Optional(one),
        1 => Type::List(one),
        2 => Type::Array(random.u64(..3), one),
        3 => Type::Map(one, two),
        4 => Type::Tuple(vec![*one, *two]),
        5 => Type::Checked("odd".into(), one),
        6 => Type::Defined(random.u32(..count)),
        _ => {
            let kinds = [Kind::Unit, Kind::U8, Kind::U64, Kind::I128, Kind::F64, Kind::Text, Kind::Char];
            Type::Plain(kinds[random.usize(..kinds.len())])
        }
    }
}

#[test]
fn random_schemas_are_read_as_they_were_written_and_walk_any_bytes() {
    let mut random = Rng::with_seed(3);
    let mut walked = 0;
    for _ in 0..2_000 {
        let schema = schema(&mut random);
        assert_eq!(Schema::from_bytes(&schema.to_bytes()), Ok(schema.clone()));
        assert!(!schema.to_string().is_empty());
        // A struct may contain itself and nothing else: its values have no end, and are refused.
        for _ in 0..5 {
            let bytes: Vec<u8> = (0..random.usize(..20)).map(|_| random.u8(..4)).collect();
            walked += usize::from(schema.plan().convert(&bytes).is_ok_and(|same| same == bytes));
        }
    }
    assert!(walked > 100, "{walked} values");
}

#[test]
fn damaged_schemas_are_a_schema_or_refused() {
    let mut random = Rng::with_seed(4);
    for _ in 0..5_000 {
        let mut bytes = schema(&mut random).to_bytes();
        let at = random.usize(..bytes.len());
        bytes[at] = random.u8(..);
        if let Ok(schema) = Schema::from_bytes(&bytes) {
            let _ = schema.to_string();
            let _ = schema.plan().convert(&bytes);
        }
    }
}
