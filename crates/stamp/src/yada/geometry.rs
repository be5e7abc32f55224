//! Points and triangles of the plane, with exact predicates.
//!
//! Coordinates are whole numbers below 2^27 in size, new points included, so that the predicates' values fit into 128
//! bits: no rounding can make a mesh inconsistent.

use crate::encode::encode;
use hotrow::Value;

/// The side of the square that the mesh covers.
pub(crate) const SIDE: i32 = 1 << 26;

/// The distance by which a point may lie outside the square.
const MARGIN: f64 = 64.0;

/// A point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Value)]
#[value(inline)]
pub(crate) struct Point {
    pub(crate) x: i32,
    pub(crate) y: i32,
}

encode!(Point { x, y });

/// The corners of a triangle, counter-clockwise.
pub(crate) type Corners = [Point; 3];

impl Point {
    pub(crate) fn new(x: i32, y: i32) -> Self {
        Self { x, y }
    }

    /// The vector from another point to this one.
    fn minus(self, other: Self) -> (i64, i64) {
        (i64::from(self.x) - i64::from(other.x), i64::from(self.y) - i64::from(other.y))
    }

    /// True if the point lies in the square, its sides included.
    pub(crate) fn is_in_square(self) -> bool {
        (0..=SIDE).contains(&self.x) && (0..=SIDE).contains(&self.y)
    }
}

/// Returns twice the area of a triangle: positive if its corners are given counter-clockwise.
pub(crate) fn doubled_area([a, b, c]: Corners) -> i64 {
    let ((bx, by), (cx, cy)) = (b.minus(a), c.minus(a));
    bx * cy - by * cx
}

/// Returns the square of the distance of two points.
pub(crate) fn squared_distance(a: Point, b: Point) -> i64 {
    let (x, y) = a.minus(b);
    x * x + y * y
}

/// True if a point lies strictly inside the circle through a triangle's corners.
pub(crate) fn is_in_circle([a, b, c]: Corners, point: Point) -> bool {
    let ((ax, ay), (bx, by), (cx, cy)) = (a.minus(point), b.minus(point), c.minus(point));
    let size = |x: i64, y: i64| i128::from(x * x + y * y);
    let minor = |(px, py): (i64, i64), (qx, qy): (i64, i64)| i128::from(px * qy - py * qx);
    let (a, b, c) = ((ax, ay), (bx, by), (cx, cy));
    size(ax, ay) * minor(b, c) + size(bx, by) * minor(c, a) + size(cx, cy) * minor(a, b) > 0
}

/// True if a point does not lie strictly on the inner side of a boundary edge, or lies strictly inside the circle whose
/// diameter the edge is. The inner side is to the left of the way from the first end to the second.
pub(crate) fn encroaches([from, to]: [Point; 2], point: Point) -> bool {
    let ((fx, fy), (tx, ty)) = (from.minus(point), to.minus(point));
    fx * tx + fy * ty < 0 || doubled_area([from, to, point]) <= 0
}

/// Returns the point in the middle of an edge.
pub(crate) fn middle([a, b]: [Point; 2]) -> Point {
    Point::new(a.x.midpoint(b.x), a.y.midpoint(b.y))
}

/// Returns the cosine of the smallest angle of a triangle.
pub(crate) fn cosine_of_smallest_angle([a, b, c]: Corners) -> f64 {
    let mut squares =
        [squared_distance(a, b), squared_distance(b, c), squared_distance(c, a)].map(|x| x as f64);
    squares.sort_by(f64::total_cmp);
    let [shortest, middle, longest] = squares;
    (middle + longest - shortest) / (2.0 * (middle * longest).sqrt())
}

/// Returns the center of the circle through a triangle's corners. If it lies outside the square, returns a point near
/// the square on the way there from the triangle, which lies in the circle, too.
pub(crate) fn circumcenter(corners: Corners) -> Point {
    let [a, b, c] = corners;
    let ((bx, by), (cx, cy)) = (b.minus(a), c.minus(a));
    let (b_size, c_size) = ((bx * bx + by * by) as f64, (cx * cx + cy * cy) as f64);
    let (bx, by, cx, cy) = (bx as f64, by as f64, cx as f64, cy as f64);
    let divisor = 2.0 * doubled_area(corners) as f64;
    let x = f64::from(a.x) + (cy * b_size - by * c_size) / divisor;
    let y = f64::from(a.y) + (bx * c_size - cx * b_size) / divisor;

    let inside = |sum: i64| sum as f64 / 3.0;
    let inside_x = inside(i64::from(a.x) + i64::from(b.x) + i64::from(c.x));
    let inside_y = inside(i64::from(a.y) + i64::from(b.y) + i64::from(c.y));
    // The share of the way from the inside to the center that stays near the square.
    let share = |from: f64, to: f64| {
        if to < 0.0 {
            (from + MARGIN) / (from - to)
        } else if to > f64::from(SIDE) {
            (f64::from(SIDE) + MARGIN - from) / (to - from)
        } else {
            1.0
        }
    };
    let share = share(inside_x, x).min(share(inside_y, y)).min(1.0);
    let at = |from: f64, to: f64| (from + share * (to - from)).round() as i32;
    Point::new(at(inside_x, x), at(inside_y, y))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corners(corners: [(i32, i32); 3]) -> Corners {
        corners.map(|(x, y)| Point::new(x, y))
    }

    #[test]
    fn a_point_on_a_circle_is_not_inside() {
        let triangle = corners([(0, 0), (10, 0), (0, 10)]);
        assert!(!is_in_circle(triangle, Point::new(10, 10)));
        assert!(is_in_circle(triangle, Point::new(9, 10)) && !is_in_circle(triangle, Point::new(11, 10)));
        let largest = corners([(0, 0), (SIDE, 0), (0, SIDE)]);
        assert!(!is_in_circle(largest, Point::new(SIDE, SIDE)));
        assert!(is_in_circle(largest, Point::new(SIDE - 1, SIDE)));
    }

    #[test]
    fn centers_are_equally_far_from_all_corners_or_near_the_square() {
        assert_eq!(circumcenter(corners([(0, 0), (10, 0), (0, 10)])), Point::new(5, 5));
        let flat = corners([(1000, 10), (2_000_000, 10), (1_000_000, 20)]);
        assert!(doubled_area(flat) > 0);
        let near = circumcenter(flat);
        assert!((-65..-63).contains(&near.y) && is_in_circle(flat, near), "{near:?}");
    }

    #[test]
    fn angles_and_edges_are_judged() {
        let right = corners([(0, 0), (10, 0), (0, 10)]);
        assert!((cosine_of_smallest_angle(right) - 0.5_f64.sqrt()).abs() < 1e-12);
        let edge = [Point::new(0, 0), Point::new(10, 0)];
        assert!(encroaches(edge, Point::new(5, 4)) && encroaches(edge, Point::new(20, -1)));
        assert!(!encroaches(edge, Point::new(5, 5)));
    }
}
