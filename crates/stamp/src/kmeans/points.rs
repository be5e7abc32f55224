//! Points and centers.

use super::KmeansOptions;
use hotrow_sync::Arc;
use hotrow_sync::random::Random;
use hotrow_sync::work::charge_cycles;
use std::f64::consts::TAU;

/// The cycles for a coordinate of a distance: the additions to one sum come one after the other, and each takes four (Agner Fog,
/// instruction tables, ADDSS).
const CYCLES: u32 = 4;

/// The input: points drawn around random places, standardized in each dimension.
pub(crate) struct Points {
    points: Vec<Arc<[f32]>>,
}

/// The centers of clusters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Centers {
    coordinates: Vec<f32>,
    dimensions: usize,
}

/// Draws a number from the standard normal distribution (Box and Muller).
fn draw_normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (TAU * random.unit()).cos()
}

impl Points {
    /// Draws the points: each around one of the sources, which lie in the unit cube. The deviation is that of STAMP's
    /// files.
    pub(crate) fn generate(options: &KmeansOptions) -> Self {
        let mut random = Random::seeded(options.seed);
        let dimensions = options.dimensions;
        let sources: Vec<f64> = (0..options.sources * dimensions).map(|_| random.unit()).collect();
        let deviation = (1.0 / options.sources as f64).powi(3);
        let mut coordinates = Vec::with_capacity(options.points * dimensions);
        for _ in 0..options.points {
            let source = random.below(options.sources as u64) as usize * dimensions;
            for place in &sources[source..source + dimensions] {
                coordinates.push(place + draw_normal(&mut random) * deviation);
            }
        }
        standardize(&mut coordinates, dimensions);
        let point = |point: &[f64]| point.iter().map(|coordinate| *coordinate as f32).collect();
        Self { points: coordinates.chunks_exact(dimensions).map(point).collect() }
    }

    /// The number of points.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// The coordinates of a point.
    pub(crate) fn shared(&self, index: usize) -> &Arc<[f32]> {
        &self.points[index]
    }

    /// Draws the first centers from the points. A point may be drawn twice, as in STAMP.
    pub(crate) fn draw_centers(&self, options: &KmeansOptions) -> Centers {
        let mut random = Random::stream(options.seed, 0);
        let points = (0..options.clusters).map(|_| &self.points[random.below(self.len() as u64) as usize]);
        let coordinates = points.flat_map(|point| point.iter().copied()).collect();
        Centers { coordinates, dimensions: options.dimensions }
    }
}

/// Gives each dimension the mean 0 and the deviation 1.
fn standardize(coordinates: &mut [f64], dimensions: usize) {
    let points = (coordinates.len() / dimensions) as f64;
    for dimension in 0..dimensions {
        let column = || coordinates.iter().skip(dimension).step_by(dimensions);
        let mean = column().sum::<f64>() / points;
        let variance = column().map(|coordinate| (coordinate - mean).powi(2)).sum::<f64>() / points;
        let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        for coordinate in coordinates.iter_mut().skip(dimension).step_by(dimensions) {
            *coordinate = (*coordinate - mean) / deviation;
        }
    }
}

impl Centers {
    /// Returns the number of the center that is nearest to a point, the first one of several.
    pub(crate) fn nearest(&self, point: &[f32]) -> usize {
        charge_cycles(self.coordinates.len() as u32 * CYCLES);
        let mut nearest = (0, f32::INFINITY);
        for (cluster, center) in self.coordinates.chunks_exact(self.dimensions).enumerate() {
            let distance: f32 = center.iter().zip(point).map(|(a, b)| (a - b) * (a - b)).sum();
            if distance < nearest.1 {
                nearest = (cluster, distance);
            }
        }
        nearest.0
    }

    /// The coordinates of a center.
    pub(crate) fn center(&self, cluster: usize) -> &[f32] {
        &self.coordinates[cluster * self.dimensions..][..self.dimensions]
    }

    /// Returns the means of clusters, given by counts and sums of points. The center of an empty cluster stays.
    pub(crate) fn moved<'a>(&self, clusters: impl Iterator<Item = (u32, &'a [f32])>) -> Self {
        let mut centers = self.clone();
        for (center, (count, sum)) in centers.coordinates.chunks_exact_mut(self.dimensions).zip(clusters) {
            if count > 0 {
                for (coordinate, sum) in center.iter_mut().zip(sum) {
                    *coordinate = sum / count as f32;
                }
            }
        }
        centers
    }
}

#[cfg(test)]
impl Centers {
    /// The coordinates of a center.
    pub(crate) fn center_mut(&mut self, cluster: usize) -> &mut [f32] {
        &mut self.coordinates[cluster * self.dimensions..][..self.dimensions]
    }
}
