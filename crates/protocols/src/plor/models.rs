//! Models of readers, writers and hand-overs (docs/memory-model.md).

use super::*;
use crate::stable::StableWord;
use crate::worker_states::Waited;
use hotrow_core::WaitLimit;
use hotrow_sync::Arc;
use hotrow_sync::atomic::AtomicU64;
use hotrow_sync::clock::Duration;
use hotrow_sync::model::{Model, Part, UnsafeCell, step_is_left_out};
use hotrow_sync::thread::spawn;

/// A segment whose value is two words, always equal when whole.
struct Segment {
    plor: Plor,
    locker: Locker,
    words: [AtomicU64; 2],
    /// A value that only the holder of the right to write touches. Not atomic.
    writes: UnsafeCell<u64>,
}

/// The error that the attempt has lost.
#[derive(Debug, PartialEq, Eq)]
struct Gone;

impl Segment {
    fn new() -> Arc<Self> {
        let plor = Plor {
            options: PlorOptions::default(),
            states: WorkerStates::modelled(),
            overflow: Overflow::new(),
        };
        let words = [(); 2].map(|()| AtomicU64::new(0));
        Arc::new(Self { plor, locker: Locker::default(), words, writes: UnsafeCell::new(0) })
    }

    fn states(&self) -> &WorkerStates {
        &self.plor.states
    }

    fn waited(waited: Waited) -> Result<(), Gone> {
        if waited == Waited::Over { Ok(()) } else { Err(Gone) }
    }

    fn wait_as_reader(&self, stamp: AttemptStamp, seen: Writer) -> Result<(), Gone> {
        let holder = seen.holder().expect("in exclusive mode");
        let over = || self.locker.writer() != seen || self.states().is_over(holder);
        Self::waited(self.states().wait_at_most(WaitLimit::NONE, holder.worker(), stamp, || false, over))
    }

    /// Waits for the right to write as `Plor::wait_for_writer` does.
    fn take(&self, stamp: AttemptStamp, limit: Option<Duration>) -> Result<(), Gone> {
        if self.locker.take(None, stamp.id) && self.locker.is_empty(Set::Waiters) {
            return Ok(());
        }
        self.plor.take_in_turn(&self.locker, stamp, |seen| {
            let Some(holder) = seen.holder() else { return Ok(()) };
            let over = || self.locker.writer() != seen || self.states().is_over(holder);
            Self::waited(self.states().wait_at_most(limit.into(), stamp.worker(), stamp, || false, over))
        })
    }

    /// Loads the value, whole or not.
    fn load(&self) -> [u64; 2] {
        self.words.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    fn read(&self, stamp: AttemptStamp) -> Result<u64, Gone> {
        self.plor.enter_readers(&self.locker, stamp, |seen| self.wait_as_reader(stamp, seen))?;
        let [first, second] = self.load();
        if self.states().is_wounded(stamp) {
            return Err(Gone);
        }
        assert_eq!(first, second, "half of a value");
        Ok(first)
    }

    /// Enters exclusive mode and settles until no reader is left.
    fn make_exclusive(&self, stamp: AttemptStamp) -> Result<(), Gone> {
        if !self.locker.make_exclusive(stamp.id) {
            return Err(Gone);
        }
        if step_is_left_out() {
            return Ok(());
        }
        self.plor.settle(&self.locker, stamp, &mut Vec::new(), |reader| {
            let over = || !self.states().is_running(reader.id);
            Self::waited(self.states().wait_at_most(WaitLimit::NONE, reader.worker(), stamp, || false, over))
        })
    }

    fn install(&self, value: u64) {
        self.locker.begin_install();
        self.words.iter().for_each(|word| word.store(value, Ordering::Relaxed));
        self.locker.end_install();
        self.plor.release(&self.locker);
    }

    /// The end of a commit after its commit point, and of an abort. An attempt without the right does not check it
    /// again.
    fn end(&self, stamp: AttemptStamp, taken: bool) {
        self.locker.leave(Set::Readers, stamp.worker(), &self.plor.overflow);
        if taken {
            // (It has no effect on a committed attempt.)
            self.states().wound(stamp.id, 0);
            self.locker.release_if_held(stamp.id);
            fence(Ordering::SeqCst);
            self.plor.hand_over(&self.locker);
        }
        self.states().end(stamp);
        self.states().tell(stamp);
    }

    /// Checks that nobody has the right to write and nobody waits for it.
    fn is_at_rest(&self) {
        assert_eq!(self.locker.writer().holder(), None, "given to an attempt that does not know of it");
        assert!(self.locker.is_empty(Set::Waiters) && self.locker.is_empty(Set::Readers));
    }

    /// Runs an attempt that replaces the value. True if it has committed.
    fn replace(&self, stamp: AttemptStamp, value: u64) -> bool {
        let taken = self.take(stamp, None).is_ok();
        let commits = taken && self.make_exclusive(stamp).is_ok() && self.states().commit(stamp);
        if commits {
            self.install(value);
        }
        self.end(stamp, taken);
        commits
    }
}

/// A reader that commits after the writer's commit point must have seen the writer's value, and nobody sees half of
/// one.
fn reader_and_writer(workers: [u32; 2], reader_is_older: bool) {
    Model::totally_ordered().preemptions(2).needs(Part::STEP).check(move || {
        let segment = Segment::new();
        let ages = if reader_is_older { [1, 2] } else { [2, 1] };
        let reader = segment.states().begin_at(workers[0], ages[0]);
        let writer = segment.states().begin_at(workers[1], ages[1]);
        let other = segment.clone();
        let other = spawn(move || {
            let taken = other.take(writer, None).is_ok();
            let commits = taken && other.make_exclusive(writer).is_ok() && other.states().commit(writer);
            if commits {
                // The read value is settled: no attempt that has read it commits any more.
                let running = other.states().is_running(reader.id);
                other.install(1);
                other.end(writer, taken);
                return Some(running);
            }
            other.end(writer, taken);
            None
        });
        let read = segment.read(reader);
        let committed = read.is_ok() && segment.states().commit(reader);
        segment.end(reader, false);
        let written = other.join().unwrap();
        if let (Some(true), Ok(0), true) = (written, &read, committed) {
            panic!("a value that was replaced when the reader committed");
        }
        assert!(committed || !reader_is_older, "the oldest is never wounded");
        assert!(written.is_some() || reader_is_older, "the oldest is never wounded");
        segment.is_at_rest();
    });
}

#[test]
fn a_reader_does_not_commit_on_what_an_older_one_has_replaced() {
    reader_and_writer([0, 1], false);
}

#[test]
fn an_older_reader_is_waited_for() {
    reader_and_writer([0, 1], true);
}

/// There are three bits in tests, so worker 3 has none.
#[test]
fn a_reader_without_a_bit_is_found() {
    reader_and_writer([3, 1], false);
}

/// A reader that only checks versions runs against an installation.
#[test]
fn an_optimistic_reader_sees_whole_and_settled_values() {
    Model::new().preemptions(3).needs(Part::ACQUIRE_FENCES).needs(Part::RELEASE_FENCES).check(|| {
        let segment = Segment::new();
        let writer = segment.states().begin_at(1, 1);
        let other = segment.clone();
        let other = spawn(move || other.replace(writer, 1));
        if let Ok((version, [first, second])) = segment.locker.stable(|| segment.load()) {
            assert_eq!(first, second, "half of a value");
            if segment.locker.is_unchanged(version, |_| false) {
                assert_eq!(first, version / 2, "the value of another version");
            }
        }
        assert!(other.join().unwrap());
        assert_eq!(segment.load(), [1, 1]);
        segment.is_at_rest();
    });
}

/// A value in two segments, of which the one that is read last is installed first. If a second read of the other one finds it settled,
/// both are of one commit.
#[test]
fn a_second_read_tells_what_was_read_since_is_of_the_same_commit() {
    Model::new().preemptions(3).needs(Part::STEP).check(|| {
        let both = [Segment::new(), Segment::new()];
        let writer = both[0].states().begin_at(1, 1);
        let others = both.clone();
        let other = spawn(move || {
            for segment in &others {
                assert!(segment.locker.take(None, writer.id) && segment.locker.make_exclusive(writer.id));
            }
            for segment in others.iter().rev() {
                segment.install(1);
            }
        });
        if let Ok((version, [first, _])) = both[0].locker.stable(|| both[0].load())
            && let Ok((_, [second, _])) = both[1].locker.stable(|| both[1].load())
            && (step_is_left_out() || both[0].locker.is_unchanged(version, |_| false))
        {
            assert_eq!(first, second, "a mixture of two values");
        }
        other.join().unwrap();
    });
}

/// Takes the right to write, commits unless it was wounded, and gives the right up. True if it has committed.
fn write(segment: &Segment, stamp: AttemptStamp, limit: Option<Duration>) -> bool {
    let taken = segment.take(stamp, limit).is_ok();
    let commits = taken && segment.locker.make_exclusive(stamp.id) && segment.states().commit(stamp);
    if commits {
        // SAFETY: it alone has the right, which is not taken away after the commit point.
        segment.writes.with_mut(|writes| unsafe { *writes += 1 });
        segment.plor.release(&segment.locker);
        fence(Ordering::SeqCst);
        if !step_is_left_out() {
            segment.plor.hand_over(&segment.locker);
        }
    } else if taken {
        segment.states().wound(stamp.id, 0);
        segment.locker.release_if_held(stamp.id);
        segment.plor.hand_over(&segment.locker);
    }
    segment.states().end(stamp);
    segment.states().tell(stamp);
    commits
}

/// A lost hand-over is a deadlock, which loom finds. The younger of two waits, or is wounded even in exclusive mode.
fn two_writers(workers: [u32; 2], limit: Option<Duration>) {
    let model = Model::totally_ordered().preemptions(3);
    let model = if limit.is_none() { model.needs(Part::STEP) } else { model };
    model.check(move || {
        let segment = Segment::new();
        let older = segment.states().begin_at(workers[0], 1);
        let younger = segment.states().begin_at(workers[1], 2);
        let other = segment.clone();
        let other = spawn(move || write(&other, younger, limit));
        let older = write(&segment, older, limit);
        let younger = other.join().unwrap();
        assert!(older || limit.is_some(), "the oldest is never wounded");
        // SAFETY: the other thread has ended.
        let writes = segment.writes.with(|writes| unsafe { *writes });
        assert_eq!(writes, u64::from(older) + u64::from(younger));
        segment.is_at_rest();
    });
}

#[test]
fn the_older_of_two_writers_takes_the_right_or_is_handed_it() {
    two_writers([0, 1], None);
}

#[test]
fn a_writer_without_a_bit_is_handed_the_right() {
    two_writers([1, 3], None);
}

#[test]
fn a_writer_that_gives_up_waiting_is_handed_nothing_that_it_leaves_behind() {
    two_writers([0, 1], Some(Duration::ZERO));
}

/// The holder gives the right up while one waiter's time is up and its worker begins its next transaction. The right
/// must not end with an attempt that does not know of it.
fn right_given_up_while_a_waiter_leaves(commits: bool) {
    Model::totally_ordered().preemptions(4).check(move || {
        let segment = Segment::new();
        let holder = segment.states().begin_at(0, 1);
        let waiter = segment.states().begin_at(1, 2);
        assert!(segment.locker.take(None, holder.id));
        let other = segment.clone();
        let other = spawn(move || {
            let taken = other.take(waiter, Some(Duration::ZERO)).is_ok();
            other.end(waiter, taken);
            let next = other.states().begin_after(waiter, 3);
            (taken, next)
        });
        if commits {
            assert!(segment.locker.make_exclusive(holder.id) && segment.states().commit(holder));
            segment.plor.release(&segment.locker);
        }
        segment.end(holder, true);
        let (_, next) = other.join().unwrap();
        segment.is_at_rest();
        segment.end(next, false);
    });
}

#[test]
fn a_right_is_not_handed_to_who_has_left() {
    right_given_up_while_a_waiter_leaves(false);
}

#[test]
fn a_commit_does_not_hand_its_right_to_who_has_left() {
    right_given_up_while_a_waiter_leaves(true);
}
