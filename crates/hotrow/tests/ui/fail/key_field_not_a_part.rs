use hotrow::Key;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
struct Name {
    number: u64,
    name: String,
}

fn main() {}
