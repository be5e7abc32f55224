//! The moments of an attempt's life, and the features that hear of them, in order.
//!
//! | moment | features, in the order in which they must hear |
//! |---|---|
//! | admitted | deferral |
//! | opened | deferral, pieces, log, snapshot, stealing, history; then the moments of which the attempt will hear |
//! | began | deferral queues for the segments of the attempt before |
//! | body ended | deferral (a scout ends, intentions run), stealing (what is enqueued runs) |
//! | preparing | history (keys are named by users' code, before anything is locked), pieces (announced before the first stamp) |
//! | between | log (entries, by users' code, which may fail), the engine's steps (hooks), versions (begun before anything is installed), log (the record is appended when nothing can fail any more) |
//! | finishing | waiting (before anything is installed, so that nobody is missed who begins to wait later), conflicts (the commit's number) |
//! | installing | versions: the value is kept before it is replaced |
//! | installed | versions (what was not replaced after all), history |
//! | finished | waiting, stamp (the announcement ends when all is installed), history, pieces, deferral's counts |
//! | rolling back | waiting: what was seen is shown to others while it is locked |
//! | undoing | hooks: effects are taken back, the last first |
//! | rolled back | stamp, history |
//! | ended | log (what was read is noted while it is known), hooks |
//! | forgetting | savepoints, deferral, then the memory of both and of stealing |
//! | closing | waiting chooses those that are told; the attempt closes; they are told |
//! | closed | history, snapshot |
//! | abandoned | deferral, hooks, history, waiting |

use crate::features::counters;
use crate::features::deferred::{Execution, line_up_early};
use crate::features::graph::Board;
use crate::features::history::Ended;
use crate::features::pieces::Piece;
use crate::features::state::{OfWorker, Place, Shared, State};
use crate::kernel::attempt::{Attempt, ReadPath};
use crate::kernel::capabilities::Reports;
use crate::kernel::item::{Flags, ItemId};
use crate::kernel::object_access::{ObjectAccess, Stop};
use crate::kernel::profile::Isolation;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::{Moments, Slots};
use crate::kernel::statistics::Named;
use crate::kernel::worker::{Worker, WorkerSlots};
use crate::memory::users_code::Panics;

impl<P: Protocol> Slots for P {
    type State = State<P>;
    type Shared = Shared<P>;
    type Place = Place;
    type Board = Board<P>;

    fn place(shared: &Shared<P>) -> Place {
        Place::of(shared)
    }

    fn state(shared: &Shared<P>) -> State<P> {
        State::of(&shared.snapshots, shared.commits.clone())
    }

    fn named_counters(protocol: &Self) -> Named {
        counters::named(protocol)
    }

    #[inline(always)]
    fn must_end(attempt: &Attempt<P>) -> bool {
        P::ALLOWS_CHOPPING && attempt.features.piece.is_later()
    }

    #[inline(always)]
    fn admitted(attempt: &mut Attempt<P>) {
        if const { P::DEFERS || P::ALLOWS_STEALING } {
            attempt.features.operations.has_lost = false;
            attempt.features.footprint.clear();
        }
    }

    #[inline]
    fn opened(attempt: &mut Attempt<P>) {
        let records =
            const { P::DEFERS || P::ALLOWS_STEALING } && (attempt.can_defer() || attempt.allows_stealing());
        let State { operations, snapshot, piece, logging, .. } = &mut attempt.features;
        let is_alone = snapshot.is_some();
        let (is_later, goes_on) = (piece.is_later(), P::ALLOWS_CHOPPING && piece.goes_on());
        attempt.hears = const { Moments::BODY_ENDED.and(Moments::FORGETTING) }
            .when(records)
            .and(const { Moments::ALONE.and(Moments::CLOSED) }.when(is_alone))
            .and(Moments::ENDED.when(logging.is_some()))
            .and(Moments::PREPARING.when(goes_on))
            .and(Moments::BETWEEN.when(is_later));
        if records {
            operations.run_at_once = operations.has_lost || is_alone;
            attempt.features.execution = Execution::new();
        }
        if !is_later {
            attempt.features.begin_transaction();
        }
        attempt.features.begin_attempt();
        if P::ALLOWS_STEALING {
            attempt.features.graph.open();
        }
        attempt.hears.add(Moments::READ_APART.when(attempt.profile.isolation != Isolation::Serializable));
        attempt.open_log();
        if attempt.features.log.is_some() || attempt.features.watch.is_some() {
            attempt.note_or_not();
        }
    }

    #[inline(always)]
    fn began(protocol: &P, attempt: &mut Attempt<P>) {
        if attempt.can_defer() && !attempt.features.footprint.is_empty() {
            line_up_early(protocol, attempt);
        }
    }

    fn path_of_noted_reads(attempt: &Attempt<P>) -> ReadPath {
        if attempt.features.watch.is_some() { ReadPath::Item } else { ReadPath::LogAndRecord }
    }

    #[cold]
    fn judged(attempt: &Attempt<P>, id: ItemId) {
        let item = attempt.items.get(id);
        // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
        if let Some(recorded) = unsafe { attempt.recorded_key(item.object(), item.segment()) } {
            attempt.record_predicate(id, &recorded, recorded.version());
        }
    }

    fn body_ended(access: &mut ObjectAccess<'_, P>) {
        if access.deferral().is_scout() {
            access.end_scout();
        }
        if access.attempt.stop.is_none() {
            // INVARIANT 29: No value is installed before all intentions of its transaction have run.
            if access.attempt.can_defer() && access.attempt.features.intentions.are_waiting() {
                access.commit_deferred();
            }
            // A failure stops the attempt.
            let _ = access.stealing_mut().run_graph();
        }
    }

    #[cold]
    fn preparing(access: &mut ObjectAccess<'_, P>) -> bool {
        if access.attempt.is_recorded() {
            access.attempt.name_writes();
        }
        !(P::ALLOWS_CHOPPING && access.attempt.features.piece.goes_on()) || access.announce_piece()
    }

    #[inline(always)]
    fn refused(attempt: &mut Attempt<P>) {
        // Naming the key runs users' code, which no snapshot should wait for.
        attempt.end_stamped(false);
    }

    fn between(attempt: &mut Attempt<P>) -> Result<(), Box<Stop>> {
        if attempt.features.stamp.is_some() && !attempt.items.writes().is_empty() {
            attempt.log_and_keep()?;
        }
        Ok(())
    }

    #[inline]
    fn finishing(access: &mut ObjectAccess<'_, P>) {
        access.attempt.features.wakes = access.waiting().has_watchers();
        if access.slot.features.origins.is_on() {
            let number =
                P::Reports::of(access.protocol).map_or(0, |reports| reports.commit_number(access.attempt));
            access.slot.features.activity.commits(number);
        }
    }

    #[inline(never)]
    unsafe fn installing(attempt: &mut Attempt<P>, id: ItemId) {
        // SAFETY: the caller's promise.
        unsafe { attempt.keep_version(id) };
    }

    #[inline(never)]
    fn installed(attempt: &mut Attempt<P>, id: ItemId) {
        let State { kept, log, records_later, .. } = &mut attempt.features;
        if attempt.items.get(id).is(Flags::KEPT) {
            kept.not_replaced((id, attempt.items.get(id)));
        }
        if let Some(log) = log
            && !*records_later
        {
            log.installed(id);
        }
    }

    #[inline]
    fn finished(access: &mut ObjectAccess<'_, P>) {
        if !access.attempt.hears(Moments::ALONE) {
            access.attempt.features.wakes |= P::READS_PASS_PREPARED && access.waiting().has_watchers_now();
            access.attempt.end_stamped(true);
            access.count_tame_commit();
        }
        if access.attempt.is_recorded() {
            access.attempt.record_end(Ended::Committed);
        }
        if !P::ALLOWS_CHOPPING || access.attempt.features.piece == Piece::Whole {
            access.slot.counters.commit();
        } else {
            access.count_piece();
        }
    }

    #[cold]
    fn giving_up(access: &mut ObjectAccess<'_, P>) -> bool {
        // From here on it may wait for locks again.
        access.attempt.features.graph.nonblocking = false;
        access.attempt.features.graph.has_blocked = false;
        if access.deferral().is_scout() {
            access.attempt.stop = None;
            access.end_scout();
            return false;
        }
        true
    }

    #[cold]
    fn rolling_back(access: &mut ObjectAccess<'_, P>) {
        if access.waits_for_change() {
            access.show_what_it_has_seen();
        }
    }

    #[inline]
    fn undoing(attempt: &mut Attempt<P>) {
        attempt.features.hooks.undo(0);
    }

    #[cold]
    fn rolled_back(access: &mut ObjectAccess<'_, P>) {
        access.attempt.end_stamped(false);
        if access.attempt.is_recorded() {
            access.attempt.record_end(match &access.attempt.stop {
                Some(Stop::Lost(loss)) => Ended::Aborted(loss.reason),
                _ => Ended::RolledBack,
            });
        }
    }

    #[inline(never)]
    fn ended(attempt: &mut Attempt<P>, committed: bool, panics: &mut Panics) {
        attempt.note_seen();
        attempt.features.hooks.end_attempt(committed, panics);
    }

    #[inline]
    fn forgetting(attempt: &mut Attempt<P>, panics: &mut Panics) {
        attempt.features.savepoints.clear(attempt.pin.as_ref());
        attempt.features.intentions.clear();
        attempt.features.operations.clear(panics);
    }

    #[inline(always)]
    fn closing(access: &mut ObjectAccess<'_, P>, committed: bool, close: impl FnOnce(&mut Attempt<P>)) {
        // An attempt that watches counts as a watcher itself.
        if committed && !access.attempt.features.wakes {
            return close(access.attempt);
        }
        let told = match committed {
            true => Some(access.choose_after_commit()),
            false => access.choose_after_rollback_if_any(),
        };
        close(access.attempt);
        drop(told);
    }

    #[cold]
    fn closed(attempt: &mut Attempt<P>) {
        if attempt.is_recorded() && !attempt.features.log_goes_on {
            attempt.close_log();
        }
        if attempt.features.snapshot.is_some() {
            attempt.leave_snapshot();
        }
    }

    #[cold]
    fn abandoned(attempt: &mut Attempt<P>) {
        attempt.features.operations.leak();
        attempt.features.hooks.leak();
        attempt.features.log = None;
        attempt.set_watch(None);
    }
}

impl<P: Protocol> WorkerSlots for P {
    type OfWorker = OfWorker;

    #[cold]
    fn panicked(worker: &mut Worker<P>) {
        worker.attempt.end_dropped();
    }

    fn leaves(worker: &Worker<P>) {
        worker.slot.features.activity.end(false);
    }
}
