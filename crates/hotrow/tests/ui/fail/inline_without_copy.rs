use hotrow::Value;

#[derive(Clone, Value)]
#[value(inline)]
struct Row {
    value: u64,
}

fn main() {}
