use hotrow::Value;

#[derive(Clone, Copy, Value)]
#[value(inline)]
struct Row {
    wide: u64,
    byte: u8,
}

fn main() {}
