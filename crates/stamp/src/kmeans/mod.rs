//! kmeans: cluster analysis of points (STAMP; sto §5.4, drp figure 8).
//!
//! Each iteration assigns every point to its nearest center, and then moves each center to the mean of its points. A
//! transaction adds one point to the sum of its cluster. Other transactions take the next points to assign, and count
//! the points that have changed their cluster.
//!
//! A cluster's sum is one element, all coordinates together, as sto found best: every update changes all of them. The
//! update returns nothing, so that a store may defer it ([`Vector::change_later`]). The next points are taken by a transaction of
//! its own, of which only the caller needs the result ([`Cell::update_alone`]). So all transactions of an iteration can be tame (drp
//! §7.3).

mod points;

use crate::application::{Application, Failure, Statistics, require};
use crate::encode::encode;
use crate::options::{invalid, options};
use crate::runner::Runner;
use crate::store::{Cell, Counters, Element, Store, Vector};
use hotrow::Value;
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicU32, Ordering};
use points::{Centers, Points};

/// The membership of a point that has not been assigned yet.
const UNASSIGNED: u32 = u32::MAX;

options! {
    /// Options of kmeans. STAMP's letters are in brackets.
    pub struct KmeansOptions {
        /// Points; STAMP reads them from a file.
        points: usize = 65_536 in 1..=100_000_000,
        /// Coordinates of each point.
        dimensions: usize = 16 in 1..=1_000,
        /// Places around which the points are drawn.
        sources: usize = 16 in 1..=100_000,
        /// Clusters to find (-m, -n).
        clusters: usize = 15 in 1..=100_000,
        /// Share of the points up to which changes of clusters end the run (-t).
        threshold: f64 = 0.001 in 0.0..=1.0,
        /// Largest number of iterations.
        iterations: u64 = 500 in 1..=1_000_000,
        /// Points that a worker takes at once.
        chunk: usize = 3 in 1..=1_000_000,
        /// Seed of the random numbers.
        seed: u64 = 0 in 0..=0xffff_ffff_ffff_ffff,
    }
    presets {
        "low": "STAMP's low contention for simulators." {
            points = 2_048, dimensions = 16, clusters = 40, threshold = 0.05,
        }
        "high": "STAMP's high contention for simulators." {
            points = 2_048, dimensions = 16, clusters = 15, threshold = 0.05,
        }
        "low-native": "STAMP's low contention." {
            points = 65_536, dimensions = 32, clusters = 40, threshold = 0.00001,
        }
        "high-native": "STAMP's high contention." {
            points = 65_536, dimensions = 32, clusters = 15, threshold = 0.00001,
        }
        "drp-low": "drp, figure 8, kmeans." {
            points = 262_144, dimensions = 32, clusters = 160, threshold = 0.001,
        }
        "drp-high": "drp, figure 8, kmeans-hi." {
            points = 262_144, dimensions = 32, clusters = 40, threshold = 0.00001,
        }
    }
    relations |options: &KmeansOptions| {
        if options.clusters > options.points {
            return Err(invalid("clusters", options.clusters, "expected no more clusters than points"));
        }
        if options.points * options.dimensions > 4_000_000_000 {
            return Err(invalid("points", options.points, "expected at most 4000000000 coordinates"));
        }
        Ok(())
    };
}

/// The sum of the points that an iteration has assigned to a cluster.
#[derive(Debug, Clone, PartialEq, Value)]
struct ClusterSum {
    count: u32,
    coordinates: Vec<f32>,
}

impl Element for ClusterSum {}

encode!(ClusterSum { count, coordinates });

impl ClusterSum {
    fn zero(dimensions: usize) -> Self {
        Self { count: 0, coordinates: vec![0.0; dimensions] }
    }

    fn add(&mut self, point: &[f32]) {
        self.count += 1;
        for (sum, coordinate) in self.coordinates.iter_mut().zip(point) {
            *sum += coordinate;
        }
    }
}

/// kmeans over a store.
pub struct Kmeans<S: Store> {
    store: S,
    options: KmeansOptions,
    points: Points,
    /// The cluster of each point. Only the worker that has taken a point writes its element.
    membership: Vec<AtomicU32>,
    sums: S::Vector<ClusterSum>,
    next_point: S::Cell<usize>,
    changed: S::Counters,
    result: Clustering,
}

/// The state after the last iteration.
#[derive(Debug, Clone, Default)]
struct Clustering {
    /// The centers by which the points were assigned.
    assigned_by: Centers,
    /// The number of points in each cluster.
    counts: Vec<u32>,
    /// The means of the clusters.
    centers: Centers,
}

impl<S: Store> Kmeans<S> {
    /// Assigns points until none is left.
    fn assign(&self, number: usize, workers: usize, centers: &Centers) {
        let mut worker = self.store.worker();
        let chunk = self.options.chunk;
        let mut changed = 0;
        let mut start = number * chunk;
        while start < self.points.len() {
            for index in start..(start + chunk).min(self.points.len()) {
                let point = self.points.shared(index);
                let cluster = centers.nearest(point);
                let before = self.membership[index].swap(cluster as u32, Ordering::Relaxed);
                changed += i64::from(before != cluster as u32);
                S::transact(&mut worker, |tx| {
                    let point = Arc::clone(point);
                    self.sums.change_later(tx, cluster, move |sum| sum.add(&point))
                });
            }
            start = self.next_point.update_alone(&mut worker, move |next| {
                let taken = (*next).max(workers * chunk);
                *next = taken + chunk;
                taken
            });
        }
        S::transact(&mut worker, |tx| self.changed.add(tx, 0, changed));
    }

    /// Returns the sums and the number of points that have changed their cluster, and sets them back to zero.
    fn take_sums(&self) -> (Vec<ClusterSum>, i64) {
        let mut worker = self.store.worker();
        let zero = ClusterSum::zero(self.options.dimensions);
        let sums = (0..self.options.clusters).map(|cluster| {
            S::transact(&mut worker, |tx| {
                self.sums.update(tx, cluster, |sum| std::mem::replace(sum, zero.clone()))
            })
        });
        let sums = sums.collect();
        let changed = S::transact(&mut worker, |tx| {
            self.next_point.set(tx, 0)?;
            let changed = self.changed.get(tx, 0)?;
            self.changed.add(tx, 0, -changed)?;
            Ok(changed)
        });
        (sums, changed)
    }
}

impl<S: Store> Application<S> for Kmeans<S> {
    type Options = KmeansOptions;

    fn prepare(store: S, options: &KmeansOptions) -> Self {
        let points = Points::generate(options);
        let sums = store.vector((0..options.clusters).map(|_| ClusterSum::zero(options.dimensions)));
        Self {
            membership: (0..options.points).map(|_| AtomicU32::new(UNASSIGNED)).collect(),
            sums,
            next_point: store.cell(0),
            changed: store.counters([0]),
            store,
            options: options.clone(),
            points,
            result: Clustering::default(),
        }
    }

    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics {
        let workers = runner.workers();
        let mut centers = self.points.draw_centers(&self.options);
        let mut iterations = 0;
        let mut changed_in_all = 0;
        loop {
            runner.run(self, &|kmeans, number| kmeans.assign(number, workers, &centers));
            iterations += 1;
            let (sums, changed) = self.take_sums();
            changed_in_all += changed as u64;
            let means = centers.moved(sums.iter().map(|sum| (sum.count, &sum.coordinates[..])));
            let assigned_by = std::mem::replace(&mut centers, means);
            let changed_share = changed as f64 / self.points.len() as f64;
            if changed_share <= self.options.threshold || iterations == self.options.iterations {
                let counts = sums.iter().map(|sum| sum.count).collect();
                self.result = Clustering { assigned_by, counts, centers };
                break;
            }
        }
        Statistics::new([
            ("iterations", iterations),
            ("assignments", iterations * self.points.len() as u64),
            ("changes", changed_in_all),
        ])
    }

    /// Checks that each point is a member of the cluster whose center was nearest, that each cluster counts its
    /// members once, and that its center is their mean, up to rounding.
    fn verify(&self) -> Result<(), Failure> {
        let Clustering { assigned_by, counts, centers } = &self.result;
        let dimensions = self.options.dimensions;
        let mut members = vec![0_u32; self.options.clusters];
        let mut sums = vec![0.0_f64; self.options.clusters * dimensions];
        let mut sizes = sums.clone();
        for (index, membership) in self.membership.iter().enumerate() {
            let (point, cluster) = (self.points.shared(index), membership.load(Ordering::Relaxed) as usize);
            let nearest = assigned_by.nearest(point);
            require(cluster == nearest, || {
                format!("point {index} is in cluster {cluster}; the nearest is {nearest}")
            })?;
            members[cluster] += 1;
            for (dimension, coordinate) in point.iter().enumerate() {
                sums[cluster * dimensions + dimension] += f64::from(*coordinate);
                sizes[cluster * dimensions + dimension] += f64::from(coordinate.abs());
            }
        }
        for (cluster, (members, count)) in members.iter().zip(counts).enumerate() {
            require(members == count, || {
                format!("cluster {cluster} has {members} points and has counted {count}")
            })?;
            for dimension in 0..dimensions {
                let center = f64::from(centers.center(cluster)[dimension]);
                let mean = match members {
                    0 => f64::from(assigned_by.center(cluster)[dimension]),
                    _ => sums[cluster * dimensions + dimension] / f64::from(*members),
                };
                let size = sizes[cluster * dimensions + dimension] / f64::from(*members).max(1.0);
                let rounding = f64::from(f32::EPSILON) * f64::from(*members + 4);
                require((center - mean).abs() <= (rounding + 1e-5) * (size + 1e-3), || {
                    format!("coordinate {dimension} of center {cluster} is {center}; the mean is {mean}")
                })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::execute;
    use crate::options::Options;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};

    fn small() -> KmeansOptions {
        KmeansOptions { points: 300, dimensions: 4, sources: 5, clusters: 6, ..KmeansOptions::default() }
    }

    fn after_a_run() -> Kmeans<Sequential> {
        let mut kmeans = Kmeans::prepare(Sequential::default(), &small());
        kmeans.run(&OneThread);
        kmeans.verify().unwrap();
        kmeans
    }

    #[test]
    fn runs_on_one_thread_and_on_several() {
        let outcome = execute::<Kmeans<_>, _, _>(Sequential::default(), &small(), &OneThread);
        assert_eq!(outcome.verification, Ok(()));
        assert!(outcome.statistics.count("iterations") > 1, "{outcome:?}");
        let outcome = execute::<Kmeans<_>, _, _>(GlobalLock::default(), &small(), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()));
    }

    #[test]
    fn the_smallest_inputs_work() {
        for (points, workers) in [(1, 1), (1, 3), (2, 2)] {
            let options = KmeansOptions { points, clusters: 1, sources: 1, dimensions: 1, ..small() };
            options.check().unwrap();
            let outcome = execute::<Kmeans<_>, _, _>(GlobalLock::default(), &options, &on_threads(workers));
            assert_eq!(outcome.verification, Ok(()));
        }
    }

    #[test]
    fn more_clusters_than_points_are_refused() {
        let options = KmeansOptions { points: 5, clusters: 6, ..small() };
        let error = options.check().unwrap_err();
        assert_eq!(error.to_string(), "clusters=6: expected no more clusters than points");
    }

    #[test]
    fn a_point_in_a_wrong_cluster_is_found() {
        let kmeans = after_a_run();
        let wrong = (kmeans.membership[9].load(Ordering::Relaxed) + 1) % 6;
        kmeans.membership[9].store(wrong, Ordering::Relaxed);
        assert!(kmeans.verify().unwrap_err().to_string().starts_with("point 9 is in cluster "));
    }

    #[test]
    fn a_lost_point_is_found() {
        let mut kmeans = after_a_run();
        kmeans.result.counts[2] -= 1;
        assert!(kmeans.verify().unwrap_err().to_string().contains("has counted"));
    }

    #[test]
    fn a_wrong_center_is_found() {
        let mut kmeans = after_a_run();
        kmeans.result.centers.center_mut(2)[1] += 0.01;
        assert!(kmeans.verify().unwrap_err().to_string().contains("the mean is"));
    }
}
