use hotrow::{Key, Value};

#[derive(Clone, Value)]
#[value(large)]
struct Row {
    name: String,
}

#[derive(Clone, Copy, Value)]
#[value(inline, boxed)]
struct Both {
    number: u64,
}

#[derive(Clone, Copy, Value)]
#[value]
struct Neither {
    number: u64,
}

#[derive(Clone, Copy, Value)]
struct Inside {
    #[value(inline)]
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
#[hotrow(create = "hotrow")]
struct Number {
    number: u64,
}

fn main() {}
