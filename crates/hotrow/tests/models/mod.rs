//! Plain models of the datatypes: what the kit compares each with.

pub(crate) mod boosted;
mod changes;
mod counter;
mod lists;
mod maps;
mod queues;
mod vector;
mod words;

pub(crate) type Vector = vector::Vector;
pub(crate) type List = lists::List;
pub(crate) type ListSet = lists::ListSet;
pub(crate) type Queue = queues::As<queues::FirstIn>;
pub(crate) type PriorityQueue = queues::As<queues::GreatestFirst>;
pub(crate) type HashMap = maps::As<maps::Hashed, false>;
pub(crate) type OrderedMap = maps::As<maps::Sorted, true>;
pub(crate) type TreeMap = maps::As<maps::Tree, true>;
pub(crate) type BoostedMap = maps::As<boosted::Boosted, false>;
pub(crate) type Counter = counter::Counter;
pub(crate) type Words = words::Words;
/// A number in a box, in an array or in a row, changed at the commit.
pub(crate) type Number<const PLACE: usize> = changes::Number<PLACE>;

/// Calls a macro with a name and the model of each datatype.
macro_rules! for_each_model {
    ($then:ident) => {
        $then! {
            vector: Vector,
            list: List,
            list_set: ListSet,
            queue: Queue,
            priority_queue: PriorityQueue,
            hash_map: HashMap,
            ordered_map: OrderedMap,
            tree_map: TreeMap,
            boosted_map: BoostedMap,
            counter: Counter,
            words: Words,
            number_in_a_box: Number<0>,
            number_in_an_array: Number<1>,
            number_in_a_row: Number<2>,
        }
    };
}
pub(crate) use for_each_model;
