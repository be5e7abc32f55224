use hotrow::Value;

#[derive(Clone, Copy, Value)]
#[value(inline)]
struct Row {
    number: u64,
    name: &'static str,
}

fn main() {}
