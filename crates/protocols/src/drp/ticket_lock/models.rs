//! Models of turns and of stable reads (docs/memory-model.md, Q1 to Q4).

use super::*;
use crate::stable::models::stable_reads_are_whole;
use hotrow_sync::Arc;
use hotrow_sync::atomic::fence;
use hotrow_sync::model::{Model, Part, UnsafeCell};
use hotrow_sync::thread::{spawn, yield_now};

/// A line, and a value that only an attempt at its turn touches. Not atomic.
#[derive(Default)]
struct Turns {
    line: TicketLock,
    value: UnsafeCell<u64>,
}

impl Turns {
    fn wait(&self, position: Ticket, writes: bool) {
        while !self.line.is_turn(position, writes) {
            yield_now();
        }
    }

    fn write(&self, worker: u32) {
        let (position, _) = self.line.join_writing(worker);
        self.wait(position, true);
        // SAFETY: it is this writer's turn.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.line.leave_writing(position, ClockBlock::default());
    }

    /// The value must be the one that the writers before have left.
    fn read(&self) {
        let (position, _) = self.line.join_reading();
        self.wait(position, false);
        // SAFETY: it is this reader's turn, which it shares with readers.
        let value = self.value.with(|value| unsafe { *value });
        assert_eq!(value, u64::from(position.version()));
        self.line.leave_reading();
    }
}

#[test]
fn writers_take_turns() {
    Model::new().preemptions(3).needs(Part::LOADS).needs(Part::STORES).check(|| {
        let turns = Arc::new(Turns::default());
        let other = turns.clone();
        let other = spawn(move || other.write(1));
        turns.write(0);
        other.join().unwrap();
        assert_eq!(turns.line.version(), Some(2));
    });
}

#[test]
fn a_writer_comes_after_the_readers_before_it_and_before_those_behind_it() {
    Model::new().preemptions(3).needs(Part::LOADS).needs(Part::STORES).needs(Part::UPDATES).check(|| {
        let turns = Arc::new(Turns::default());
        let other = turns.clone();
        let other = spawn(move || other.read());
        turns.write(0);
        other.join().unwrap();
        assert_eq!(turns.line.version(), Some(1));
    });
}

/// The first reader's load must be over, too, though the second reader lets the writer go on.
#[test]
fn a_writer_comes_after_two_readers() {
    Model::new().needs(Part::LOADS).needs(Part::UPDATES).check(|| {
        let turns = Arc::new(Turns::default());
        [(); 2].iter().for_each(|()| _ = turns.line.join_reading());
        let (position, _) = turns.line.join_writing(0);
        let readers = [turns.clone(), turns.clone()].map(|turns| {
            spawn(move || {
                // SAFETY: it is the readers' turn.
                assert_eq!(turns.value.with(|value| unsafe { *value }), 0);
                turns.line.leave_reading();
            })
        });
        if turns.line.is_turn(position, true) {
            // SAFETY: it is the writer's turn.
            turns.value.with_mut(|value| unsafe { *value += 1 });
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_stable_read_is_whole_and_is_the_value_of_its_version() {
    stable_reads_are_whole::<TicketLock>(
        |line, store| {
            let (position, _) = line.join_writing(0);
            // As in `Drp::install`.
            fence(Ordering::Release);
            store();
            line.leave_writing(position, ClockBlock::default());
        },
        |line, load| line.stable(load).map(|(version, value)| (u64::from(version), value)),
    );
}

/// Write skew: each joins the line of the other's read, and then checks its own read.
#[test]
fn of_two_that_join_and_then_check_one_sees_the_other_in_line() {
    Model::totally_ordered().needs(Part::TOTAL_ORDER).check(|| {
        let lines = Arc::new([TicketLock::default(), TicketLock::default()]);
        let other = lines.clone();
        let other = spawn(move || {
            other[1].join_writing(1);
            other[0].version().is_some()
        });
        lines[0].join_writing(0);
        let passes = lines[1].version().is_some();
        assert!(!(other.join().unwrap() && passes), "both are certified");
    });
}
