use hotrow::Key;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Key)]
struct Number {
    number: u64,
}

fn main() {}
