use hotrow::Value;
use std::rc::Rc;

#[derive(Clone, Value)]
struct Row<T> {
    value: T,
}

fn assert_value<V: Value>() {}

fn main() {
    assert_value::<Row<u64>>();
    assert_value::<Row<Rc<u64>>>();
}
