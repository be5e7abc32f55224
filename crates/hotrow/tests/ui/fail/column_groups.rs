use hotrow::Value;

#[derive(Clone, Copy, Value)]
#[value(inline)]
struct Unknown {
    #[value(segment = "hot")]
    number: u64,
}

#[derive(Clone, Copy, Value)]
#[value(inline)]
struct Nameless {
    #[value(group = "")]
    number: u64,
}

#[derive(Clone, Copy, Value)]
#[value(inline)]
struct Twice {
    #[value(group = "hot", group = "cold")]
    number: u64,
}

#[derive(Clone, Value)]
struct Boxed {
    #[value(group = "hot")]
    number: u64,
    name: String,
}

fn main() {}
