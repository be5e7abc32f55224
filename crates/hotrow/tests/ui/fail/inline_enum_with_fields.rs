use hotrow::Value;

#[derive(Clone, Copy, Value)]
#[value(inline)]
#[repr(u8)]
enum Row {
    Nothing,
    Something(u64),
}

fn main() {}
