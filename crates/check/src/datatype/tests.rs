//! The kit finds datatypes that are wrong.

use super::{Datatype, Effort, check_datatype_under};
use hotrow_core::{Abort, Commuting, CommutingSegment, Engine, Protocol, Seen, Transaction};
use hotrow_protocols::{Any, Occ};

/// A number to which transactions add at their commits, if a test by some condition found room.
struct Bounded;

const BOUND: i64 = 2;

#[derive(Debug, Clone, Copy)]
enum Operation {
    AddIfRoom,
    Take,
}

/// The fault of a wrong datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// A test leaves no condition.
    Forgets,
    /// A condition is that the number has not changed at all, which is more than the test needs.
    Overdoes,
    /// A transaction does not see its own change.
    OverlooksItself,
    /// A change that was undone has its effect.
    AddsTooMuch,
}

struct Tested<const FAULT: u8>;

impl<const FAULT: u8> Tested<FAULT> {
    const FAULT: Fault =
        [Fault::None, Fault::Forgets, Fault::Overdoes, Fault::OverlooksItself, Fault::AddsTooMuch]
            [FAULT as usize];
}

impl Commuting for Bounded {
    type Value = i64;
    type Change = i64;
    /// The least and the greatest number; all numbers, if there are none.
    type Condition = Option<(i64, i64)>;

    fn holds(&self, condition: &Self::Condition, _: Option<&i64>, value: &i64) -> bool {
        condition.is_none_or(|(low, high)| (low..=high).contains(value))
    }

    fn apply(&self, change: i64, value: &mut i64) {
        *value += change;
    }
}

impl<const FAULT: u8> Datatype for Tested<FAULT> {
    type Model = i64;
    type Operation = Operation;
    type Output = bool;
    type Object<P: Protocol> = CommutingSegment<Bounded, P>;

    fn states() -> Vec<i64> {
        vec![0, 1]
    }

    fn operations() -> Vec<Operation> {
        vec![Operation::AddIfRoom, Operation::Take]
    }

    fn apply(model: &mut i64, operation: &Operation) -> bool {
        match operation {
            Operation::AddIfRoom => {
                let has_room = *model < BOUND;
                *model += i64::from(has_room);
                has_room
            }
            Operation::Take => {
                *model -= 1;
                true
            }
        }
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &i64) -> Self::Object<P> {
        CommutingSegment::of(engine, "bounded", Bounded, *state)
    }

    fn operate<P: Protocol>(
        object: &Self::Object<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<bool, Abort> {
        if let Operation::Take = operation {
            object.enter(tx)?.change(|change| *change -= 1)?;
            return Ok(true);
        }
        let look = |seen: Seen<'_, Bounded>| {
            let own = seen.change.copied().unwrap_or_default();
            (*seen.value, if Self::FAULT == Fault::OverlooksItself { 0 } else { own })
        };
        let has_room = object.enter(tx)?.test(look, |(value, own), condition| {
            let has_room = value + own < BOUND;
            let (low, high) = condition.unwrap_or((i64::MIN, i64::MAX));
            *condition = match Self::FAULT {
                Fault::Forgets => None,
                Fault::Overdoes => Some((low.max(value), high.min(value))),
                _ if has_room => Some((low, high.min(BOUND - 1 - own))),
                _ => Some((low.max(BOUND - own), high)),
            };
            has_room
        })?;
        if has_room {
            let amount = if Self::FAULT == Fault::AddsTooMuch { 2 } else { 1 };
            object.enter(tx)?.change(|change| *change += amount)?;
        }
        Ok(has_room)
    }

    fn state<P: Protocol>(object: &Self::Object<P>, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
        object.enter(tx)?.read(|seen| *seen.value + seen.change.copied().unwrap_or_default())
    }
}

/// Returns what the kit says of a fault.
fn message<const FAULT: u8, P: Protocol>(variant: &str) -> Option<String> {
    let check = || check_datatype_under::<Tested<FAULT>, P>(variant, Effort::SHORT);
    std::panic::catch_unwind(check).err().map(|panic| *panic.downcast::<String>().expect("a message"))
}

#[test]
fn a_right_datatype_passes() {
    assert_eq!(message::<0, Occ>("occ"), None);
    assert_eq!(message::<0, Any>("wait-die"), None);
    assert_eq!(message::<2, Occ>("occ"), None, "conflicts that need not be are no errors");
}

#[test]
fn a_forgotten_condition_is_found_in_a_schedule() {
    let message = message::<1, Occ>("occ").expect("found");
    assert!(message.starts_with("no serial order explains occ: from"), "{message}");
}

#[test]
fn a_transaction_that_does_not_see_its_own_changes_is_found_alone() {
    let message = message::<3, Occ>("occ").expect("found");
    assert!(message.contains("occ: from"), "{message}");
    assert!(message.contains("left: true\n right: false"), "{message}");
}

#[test]
fn a_wrong_state_is_found_alone() {
    let message = message::<4, Any>("wait-die").expect("found");
    assert!(message.contains("wait-die: from"), "{message}");
}
