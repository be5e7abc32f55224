use hotrow::Value;

#[derive(Clone, Copy, Value)]
#[value(inline)]
enum State {
    Open,
    Closed,
}

fn main() {}
