//! The input: a Delaunay triangulation of random points in a square.

use super::YadaOptions;
use super::geometry::{Point, SIDE, doubled_area};
use super::mesh::{Cavity, OUTSIDE, Triangle};
use hotrow_sync::random::Random;

/// The distance between the places where points are drawn. It is large against the rounding of new points.
const RASTER: i32 = 1024;

/// Draws points, sorted so that neighbours in the list are near each other.
pub(crate) fn draw_points(options: &YadaOptions) -> Vec<Point> {
    let mut random = Random::seeded(options.seed);
    let mut draw = || random.between(1, (SIDE / RASTER - 1) as u64) as i32 * RASTER;
    let mut points: Vec<Point> = (0..options.points).map(|_| Point::new(draw(), draw())).collect();
    let strips = (options.points as f64).sqrt().ceil() as i32;
    let height = SIDE / strips + 1;
    points.sort_by_key(|point| {
        let strip = point.y / height;
        (strip, if strip % 2 == 0 { point.x } else { -point.x }, point.y)
    });
    points.dedup();
    points
}

/// Returns the triangulation of the square's corners and of points inside it.
pub(crate) fn triangulate(points: &[Point]) -> Vec<Triangle> {
    let [a, b, c, d] = [(0, 0), (SIDE, 0), (SIDE, SIDE), (0, SIDE)].map(|(x, y)| Point::new(x, y));
    let mut mesh = vec![
        Triangle { corners: [a, b, c], neighbours: [OUTSIDE, 1, OUTSIDE] },
        Triangle { corners: [a, c, d], neighbours: [OUTSIDE, OUTSIDE, 0] },
    ];
    let mut near = 0;
    for point in points {
        near = locate(&mesh, near, *point);
        let fresh = [mesh.len() as u32, mesh.len() as u32 + 1];
        mesh.extend([Triangle::UNUSED; 2]);
        let Ok(cavity) = Cavity::dig(&mut mesh, near, *point);
        let Ok(filled) = cavity.fill(&mut mesh, *point, None, fresh);
        debug_assert!(filled.is_some(), "points are distinct and inside the square");
    }
    mesh
}

/// Walks from a triangle to one that contains a point.
fn locate(mesh: &[Triangle], start: u32, point: Point) -> u32 {
    let mut slot = start;
    loop {
        let triangle = &mesh[slot as usize];
        let beyond = (0..3).find(|corner| {
            let [from, to] = triangle.edge(*corner);
            doubled_area([from, to, point]) < 0
        });
        match beyond {
            Some(corner) => slot = triangle.neighbours[corner],
            None => return slot,
        }
    }
}
