//! The verification of a refined mesh.

use super::geometry::{Point, SIDE, doubled_area, is_in_circle};
use super::judge;
use super::mesh::{OUTSIDE, Triangle};
use crate::application::{Failure, require};
use std::collections::HashSet;

/// Checks that triangles are a Delaunay triangulation of the square, that they have all `points` as corners, that none is
/// bad, and that there are `expected` of them. Slots that are not used are passed over.
///
/// Each triangle has a positive area, each inner edge has one triangle on either side, and the edges without a
/// neighbour are the square's sides. So the triangles cover each place equally often, and once, since their areas add up.
pub(crate) fn verify(
    triangles: &[Triangle],
    points: &[Point],
    cosine_max: f64,
    expected: u64,
) -> Result<(), Failure> {
    let used = || triangles.iter().enumerate().filter(|(_, triangle)| **triangle != Triangle::UNUSED);
    let mut doubled_areas = 0;
    let mut boundary_length = 0;
    let mut corners = HashSet::new();
    for (slot, triangle) in used() {
        let area = doubled_area(triangle.corners);
        require(area > 0, || format!("triangle {slot} has no positive area"))?;
        doubled_areas += i128::from(area);
        corners.extend(triangle.corners);
        let is_inside = triangle.corners.iter().all(|corner| corner.is_in_square());
        require(is_inside, || format!("triangle {slot} leaves the square"))?;
        for (corner, neighbour) in triangle.neighbours.into_iter().enumerate() {
            if neighbour == OUTSIDE {
                boundary_length += side_length(triangle.edge(corner)).ok_or_else(|| {
                    Failure::new(format!("triangle {slot} has no neighbour inside the square"))
                })?;
            } else {
                check_neighbours(triangles, slot, triangle, corner, neighbour)?;
            }
        }
    }
    let side = i128::from(SIDE);
    require(doubled_areas == 2 * side * side, || "the areas do not add up to the square's".to_owned())?;
    require(i128::from(boundary_length) == 4 * side, || "the boundary is not the square's".to_owned())?;
    for (slot, triangle) in used() {
        let bad = judge(slot as u32, triangle, cosine_max);
        require(bad.is_none(), || format!("triangle {slot} is bad: {:?}", triangle.corners))?;
    }
    let missing = points.iter().find(|point| !corners.contains(point));
    require(missing.is_none(), || format!("{missing:?} of the input is no corner"))?;
    let found = used().count() as u64;
    require(found == expected, || format!("there are {found} triangles; expected {expected}"))
}

/// Returns the length of an edge on one of the square's sides, in the sides' direction; `None` for other edges.
fn side_length([from, to]: [Point; 2]) -> Option<i64> {
    let length = match (from.x == to.x, from.y == to.y) {
        (false, true) if from.y == 0 => to.x - from.x,
        (false, true) if from.y == SIDE => from.x - to.x,
        (true, false) if from.x == SIDE => to.y - from.y,
        (true, false) if from.x == 0 => from.y - to.y,
        _ => return None,
    };
    (length > 0).then_some(i64::from(length))
}

/// Checks that two neighbours agree on their common edge, and that neither lies in the other's circle.
fn check_neighbours(
    triangles: &[Triangle],
    slot: usize,
    triangle: &Triangle,
    corner: usize,
    neighbour: u32,
) -> Result<(), Failure> {
    let [from, to] = triangle.edge(corner);
    let other = triangles.get(neighbour as usize).filter(|other| **other != Triangle::UNUSED);
    let opposite = other.and_then(|other| Some((other, other.corner_opposite([to, from])?)));
    let Some((other, opposite)) = opposite else {
        return Err(Failure::new(format!("triangles {slot} and {neighbour} have no common edge")));
    };
    require(other.neighbours[opposite] as usize == slot, || {
        format!("triangle {neighbour} does not know its neighbour {slot}")
    })?;
    require(!is_in_circle(triangle.corners, other.corners[opposite]), || {
        format!("a corner of triangle {neighbour} lies in the circle of triangle {slot}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yada::input::triangulate;

    /// A mesh and its points.
    fn mesh() -> (Vec<Triangle>, Vec<Point>) {
        // The square's corners and its center: no corner is in the circle above an edge.
        let points = vec![Point::new(SIDE / 2, SIDE / 2)];
        (triangulate(&points), points)
    }

    fn failure((triangles, points): (Vec<Triangle>, Vec<Point>)) -> String {
        verify(&triangles, &points, 1.0, 4).unwrap_err().to_string()
    }

    #[test]
    fn a_right_mesh_is_accepted() {
        let (triangles, points) = mesh();
        assert_eq!(verify(&triangles, &points, 1.0, 4), Ok(()));
    }

    #[test]
    fn a_hole_is_found() {
        let (mut triangles, points) = mesh();
        triangles[2] = Triangle::UNUSED;
        assert!(failure((triangles, points)).ends_with("have no common edge"));
    }

    #[test]
    fn a_cut_is_found() {
        let (mut triangles, points) = mesh();
        let inner = triangles[1].neighbours.iter().position(|neighbour| *neighbour != OUTSIDE).unwrap();
        triangles[1].neighbours[inner] = OUTSIDE;
        assert!(failure((triangles, points)).contains("neighbour"));
    }

    #[test]
    fn a_triangle_turned_over_is_found() {
        let (mut triangles, points) = mesh();
        triangles[0].corners.swap(0, 1);
        assert_eq!(failure((triangles, points)), "triangle 0 has no positive area");
    }

    #[test]
    fn a_lost_point_and_a_wrong_count_are_found() {
        let (triangles, mut points) = mesh();
        assert!(verify(&triangles, &points, 1.0, 5).unwrap_err().to_string().ends_with("expected 5"));
        points.push(Point::new(7, 7));
        assert!(failure((triangles, points)).ends_with("is no corner"));
    }

    #[test]
    fn a_bad_triangle_is_found() {
        let (triangles, points) = mesh();
        let cosine_of_50_degrees = 50_f64.to_radians().cos();
        let failure = verify(&triangles, &points, cosine_of_50_degrees, 4).unwrap_err().to_string();
        assert!(failure.contains(" is bad: "));
    }

    #[test]
    fn a_mesh_that_is_not_delaunay_is_found() {
        let [a, b, c, d] = [(0, 0), (SIDE, 0), (SIDE, SIDE), (0, SIDE)].map(|(x, y)| Point::new(x, y));
        let inner = Point::new(SIDE / 4, SIDE / 4);
        let triangles = [
            Triangle { corners: [a, b, inner], neighbours: [1, 2, OUTSIDE] },
            Triangle { corners: [b, d, inner], neighbours: [2, 0, 3] },
            Triangle { corners: [d, a, inner], neighbours: [0, 1, OUTSIDE] },
            Triangle { corners: [b, c, d], neighbours: [OUTSIDE, 1, OUTSIDE] },
        ];
        let failure = verify(&triangles, &[inner], 2.0, 4).unwrap_err().to_string();
        assert!(failure.ends_with("lies in the circle of triangle 1"), "{failure}");
    }
}
