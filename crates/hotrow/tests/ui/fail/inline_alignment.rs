use hotrow::Value;

#[derive(Clone, Copy, Value)]
#[value(inline)]
#[repr(align(16))]
struct Row {
    values: [u64; 2],
}

fn main() {}
