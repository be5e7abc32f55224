//! yada: a mesh of triangles is refined until no angle is too small (STAMP; Ruppert's algorithm).
//!
//! A triangle is *bad* if one of its angles is too small, or if it has an edge on the mesh's boundary and its opposite
//! corner lies in the circle whose diameter that edge is. Bad triangles wait in a priority queue, the latter ones first.
//! A worker takes one and, in one transaction, inserts a point: the middle of the boundary edge, or the center of the
//! triangle's circle; or, if that center comes too near to another edge of the boundary, the middle of this one. The
//! transaction reads and replaces the triangles around the point. Another one queues the new triangles that are bad.
//!
//! STAMP reads the mesh from files. Here it is a triangulation of random points in a square.

mod geometry;
mod input;
mod mesh;
mod verification;

use crate::application::{Application, Failure, Statistics};
use crate::encode::encode;
use crate::options::options;
use crate::runner::Runner;
use crate::store::{Element, Queue, Store, Vector};
use geometry::{Corners, Point, circumcenter, cosine_of_smallest_angle, encroaches, is_in_circle, middle};
use hotrow::Value;
use hotrow_sync::atomic::{AtomicU32, Ordering};
use hotrow_sync::{Mutex, lock};
use mesh::{Cavity, OUTSIDE, Triangle, Triangles};

/// The slots that a worker takes at once.
const SLOTS_AT_ONCE: u32 = 64;

options! {
    /// Options of yada. STAMP's letters are in brackets.
    pub struct YadaOptions {
        /// Points of the input, which make about twice as many triangles (-i).
        points: usize = 100_000 in 1..=50_000_000,
        /// Smallest admitted angle in degrees (-a); the algorithm may not end above 20.
        angle_min_degrees: f64 = 20.0 in 0.0..=30.0,
        /// Largest number of triangles at the end, as a multiple of the number at the start and 1000 more.
        growth_max: usize = 8 in 1..=100,
        /// Seed of the random numbers.
        seed: u64 = 0 in 0..=0xffff_ffff_ffff_ffff,
    }
    presets {
        "simulator": "As many points as STAMP's input for simulators, 633.2." {
            points = 633, angle_min_degrees = 20.0,
        }
        "native": "About as many triangles as STAMP's large input, ttimeu1000000.2." {
            points = 500_000, angle_min_degrees = 15.0,
        }
    }
    relations |_| Ok(());
}

/// A bad triangle in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Value)]
struct BadTriangle {
    /// True if a corner is too near to a boundary edge.
    is_encroached: bool,
    slot: u32,
    /// The corners. The slot may hold another triangle by now.
    corners: Corners,
}

impl Element for BadTriangle {}

encode!(BadTriangle { is_encroached, slot, corners });

/// The end of an attempt to refine a triangle.
enum Refined {
    /// The triangle is no longer in the mesh.
    Gone,
    /// A point has been inserted, and the triangles in these slots are new. `again` is true if the bad triangle
    /// remains.
    Inserted { new: Vec<u32>, again: bool },
    /// No point could be inserted.
    Stuck,
}

/// The work of one or all workers.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    inserted: u64,
    edges_split: u64,
    gone: u64,
    stuck: u64,
}

/// yada over a store.
pub struct Yada<S: Store> {
    store: S,
    /// The points of the input, for the verification.
    points: Vec<Point>,
    cosine_max: f64,
    triangles: S::Vector<Triangle>,
    slots: u32,
    /// The first slot that no worker has taken.
    next_slot: AtomicU32,
    triangles_at_start: u64,
    bad: S::PriorityQueue<BadTriangle>,
    work: Work,
}

/// The mesh inside a transaction.
struct InTransaction<'a, 't, S: Store> {
    tx: &'a mut S::Tx<'t>,
    triangles: &'a S::Vector<Triangle>,
}

impl<S: Store> Triangles for InTransaction<'_, '_, S> {
    type Abort = S::Abort;

    fn get(&mut self, slot: u32) -> Result<Triangle, S::Abort> {
        self.triangles.get(self.tx, slot as usize)
    }

    fn set(&mut self, slot: u32, triangle: Triangle) -> Result<(), S::Abort> {
        self.triangles.set(self.tx, slot as usize, triangle)
    }
}

/// Returns the boundary edge of a triangle to which its opposite corner is too near.
fn encroached_edge(triangle: &Triangle) -> Option<[Point; 2]> {
    let is_encroached = |corner: &usize| {
        triangle.neighbours[*corner] == OUTSIDE
            && encroaches(triangle.edge(*corner), triangle.corners[*corner])
    };
    (0..3).find(is_encroached).map(|corner| triangle.edge(corner))
}

/// Returns the entry for the queue if a triangle is bad.
fn judge(slot: u32, triangle: &Triangle, cosine_max: f64) -> Option<BadTriangle> {
    let is_encroached = encroached_edge(triangle).is_some();
    let is_bad = is_encroached || cosine_of_smallest_angle(triangle.corners) > cosine_max;
    is_bad.then_some(BadTriangle { is_encroached, slot, corners: triangle.corners })
}

/// Inserts the point that a bad triangle calls for.
fn refine<T: Triangles>(
    mesh: &mut T,
    bad: &BadTriangle,
    fresh: [u32; 2],
) -> Result<(Refined, bool), T::Abort> {
    let triangle = mesh.get(bad.slot)?;
    if triangle.corners != bad.corners {
        return Ok((Refined::Gone, false));
    }
    let mut split = encroached_edge(&triangle).map(|edge| (bad.slot, edge));
    if split.is_none() {
        let center = circumcenter(triangle.corners);
        if !is_in_circle(triangle.corners, center) {
            return Ok((Refined::Stuck, false));
        }
        let cavity = Cavity::dig(mesh, bad.slot, center)?;
        let near = |edge: &&mesh::BorderEdge| edge.outside == OUTSIDE && encroaches(edge.ends, center);
        split = cavity.border.iter().find(near).map(|edge| (edge.inside, edge.ends));
        if split.is_none() {
            let filled = cavity.fill(mesh, center, None, fresh)?;
            return Ok((filled.map_or(Refined::Stuck, |new| Refined::Inserted { new, again: false }), false));
        }
    }
    let Some((slot, edge)) = split else { return Ok((Refined::Stuck, false)) };
    let point = middle(edge);
    if edge.contains(&point) {
        return Ok((Refined::Stuck, true));
    }
    let cavity = Cavity::dig(mesh, slot, point)?;
    let again = !cavity.removed.contains(&bad.slot);
    let filled = cavity.fill(mesh, point, Some(edge), fresh)?;
    Ok((filled.map_or(Refined::Stuck, |new| Refined::Inserted { new, again }), true))
}

impl<S: Store> Yada<S> {
    /// Refines triangles until none is waiting.
    fn refine_all(&self) -> Work {
        let mut worker = self.store.worker();
        let mut work = Work::default();
        let mut fresh = 0..0;
        while let Some(bad) = S::transact(&mut worker, |tx| self.bad.pop(tx)) {
            if fresh.len() < 2 {
                let first = self.next_slot.fetch_add(SLOTS_AT_ONCE, Ordering::Relaxed);
                fresh = first..first + SLOTS_AT_ONCE;
                if fresh.end > self.slots {
                    work.stuck += 1;
                    break;
                }
            }
            let slots = [fresh.start, fresh.start + 1];
            let (refined, is_split, new_bad) = S::transact(&mut worker, |tx| {
                let mut mesh = InTransaction::<S> { tx, triangles: &self.triangles };
                let (refined, is_split) = refine(&mut mesh, &bad, slots)?;
                let mut new_bad = Vec::new();
                if let Refined::Inserted { new, again } = &refined {
                    for slot in new {
                        let triangle = mesh.get(*slot)?;
                        new_bad.extend(judge(*slot, &triangle, self.cosine_max));
                    }
                    new_bad.extend(again.then_some(bad));
                }
                Ok((refined, is_split, new_bad))
            });
            match refined {
                Refined::Gone => work.gone += 1,
                Refined::Stuck => work.stuck += 1,
                Refined::Inserted { new, .. } => {
                    work.inserted += 1;
                    work.edges_split += u64::from(is_split);
                    let used = slots.iter().filter(|slot| new.contains(slot)).count();
                    fresh.start += used as u32;
                }
            }
            if !new_bad.is_empty() {
                S::transact(&mut worker, |tx| new_bad.iter().try_for_each(|bad| self.bad.push(tx, *bad)));
            }
        }
        work
    }
}

impl<S: Store> Application<S> for Yada<S> {
    type Options = YadaOptions;

    fn prepare(store: S, options: &YadaOptions) -> Self {
        let points = input::draw_points(options);
        let mut triangles = input::triangulate(&points);
        let cosine_max = options.angle_min_degrees.to_radians().cos();
        let at_start = triangles.len();
        let bad = (0..).zip(&triangles).filter_map(|(slot, triangle)| judge(slot, triangle, cosine_max));
        let bad = store.priority_queue(bad);
        triangles.resize(at_start * options.growth_max + 1000, Triangle::UNUSED);
        Self {
            points,
            cosine_max,
            slots: triangles.len() as u32,
            triangles: store.vector(triangles),
            next_slot: AtomicU32::new(at_start as u32),
            triangles_at_start: at_start as u64,
            bad,
            store,
            work: Work::default(),
        }
    }

    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics {
        let total = Mutex::new(Work::default());
        runner.run(self, &|yada, _| {
            let work = yada.refine_all();
            let mut total = lock(&total);
            total.inserted += work.inserted;
            total.edges_split += work.edges_split;
            total.gone += work.gone;
            total.stuck += work.stuck;
        });
        self.work = *lock(&total);
        Statistics::new([
            ("triangles_at_start", self.triangles_at_start),
            ("points_inserted", self.work.inserted),
            ("edges_split", self.work.edges_split),
            ("gone", self.work.gone),
            ("stuck", self.work.stuck),
        ])
    }

    /// Checks that the mesh is a Delaunay triangulation of the square with all points of the input, and that no
    /// triangle is bad.
    fn verify(&self) -> Result<(), Failure> {
        if self.work.stuck > 0 {
            return Err(Failure::new(
                "triangles could not be refined: growth_max or the points' distances are too small",
            ));
        }
        let mut worker = self.store.worker();
        let slots = 0..self.slots as usize;
        let triangles: Vec<Triangle> =
            slots.map(|slot| S::transact(&mut worker, |tx| self.triangles.get(tx, slot))).collect();
        // Each point adds two triangles, or one if it lies on the boundary.
        let expected = self.triangles_at_start + 2 * self.work.inserted - self.work.edges_split;
        verification::verify(&triangles, &self.points, self.cosine_max, expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::execute;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};

    fn small() -> YadaOptions {
        YadaOptions { points: 60, ..YadaOptions::default() }
    }

    #[test]
    fn runs_on_one_thread_and_on_several() {
        let outcome = execute::<Yada<_>, _, _>(Sequential::default(), &small(), &OneThread);
        assert_eq!(outcome.verification, Ok(()));
        assert!(outcome.statistics.count("edges_split") > 0, "{outcome:?}");
        assert!(outcome.statistics.count("points_inserted") > outcome.statistics.count("edges_split"));
        let outcome = execute::<Yada<_>, _, _>(GlobalLock::default(), &small(), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()));
    }

    #[test]
    fn the_smallest_mesh_and_no_bound_work() {
        for (points, angle_min_degrees) in [(1, 20.0), (1, 0.0), (30, 0.0)] {
            let options = YadaOptions { points, angle_min_degrees, ..small() };
            let outcome = execute::<Yada<_>, _, _>(GlobalLock::default(), &options, &on_threads(2));
            assert_eq!(outcome.verification, Ok(()), "{options:?}");
        }
    }

    #[test]
    fn too_few_slots_are_reported() {
        let options = YadaOptions { points: 3_000, growth_max: 1, ..small() };
        let outcome = execute::<Yada<_>, _, _>(Sequential::default(), &options, &OneThread);
        assert!(outcome.verification.unwrap_err().to_string().contains("growth_max"));
    }
}
