use hotrow::Value;

#[derive(Clone, Copy, Value)]
#[value(inline)]
struct Row<T> {
    value: T,
}

fn main() {}
