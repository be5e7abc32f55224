use hotrow::Key;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum Never {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum Level {
    High = 2,
    Low = 1,
}

#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum Place {
    Shelf(u8) = 1,
    Nowhere = 0,
}

#[derive(Clone, Copy, Key)]
union Either {
    number: u64,
    other: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct Generic<T> {
    number: T,
}

fn main() {}
