//! Triangles that know their neighbours, and the insertion of a point (Bowyer and Watson).
//!
//! The triangles whose circles contain the new point are its *cavity*. They are removed, and the cavity is filled with
//! triangles between its border and the point, which keeps the mesh a Delaunay triangulation. There are more new
//! triangles than removed ones, so each removed one's slot is used again.
//!
//! The same code serves a plain mesh and a store: see [`Triangles`].

use super::geometry::{Corners, Point, is_in_circle};
use crate::encode::encode;
use crate::store::Element;
use hotrow::Value;

/// The neighbour behind an edge on the mesh's boundary.
pub(crate) const OUTSIDE: u32 = u32::MAX;

/// A triangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
pub(crate) struct Triangle {
    pub(crate) corners: Corners,
    /// The slot of the triangle that is opposite each corner, or [`OUTSIDE`].
    pub(crate) neighbours: [u32; 3],
}

impl Element for Triangle {}

encode!(Triangle { corners, neighbours });

impl Triangle {
    /// The content of a slot that has not been used yet.
    pub(crate) const UNUSED: Self = Self { corners: [Point { x: 0, y: 0 }; 3], neighbours: [OUTSIDE; 3] };

    /// Returns the ends of the edge opposite a corner, counter-clockwise.
    pub(crate) fn edge(&self, corner: usize) -> [Point; 2] {
        [self.corners[(corner + 1) % 3], self.corners[(corner + 2) % 3]]
    }

    /// Returns the corner opposite an edge, which is given counter-clockwise.
    pub(crate) fn corner_opposite(&self, edge: [Point; 2]) -> Option<usize> {
        (0..3).find(|corner| self.edge(*corner) == edge)
    }
}

/// Access to the triangles of a mesh by their slots.
pub(crate) trait Triangles {
    type Abort;

    fn get(&mut self, slot: u32) -> Result<Triangle, Self::Abort>;

    fn set(&mut self, slot: u32, triangle: Triangle) -> Result<(), Self::Abort>;
}

impl Triangles for Vec<Triangle> {
    type Abort = std::convert::Infallible;

    fn get(&mut self, slot: u32) -> Result<Triangle, Self::Abort> {
        Ok(self[slot as usize])
    }

    fn set(&mut self, slot: u32, triangle: Triangle) -> Result<(), Self::Abort> {
        self[slot as usize] = triangle;
        Ok(())
    }
}

/// An edge between a cavity and the rest of the mesh.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BorderEdge {
    /// The ends, counter-clockwise as seen from the cavity.
    pub(crate) ends: [Point; 2],
    /// The slot of the triangle inside the cavity.
    pub(crate) inside: u32,
    /// The slot of the triangle outside, or [`OUTSIDE`].
    pub(crate) outside: u32,
}

/// The triangles whose circles contain a point.
pub(crate) struct Cavity {
    pub(crate) removed: Vec<u32>,
    pub(crate) border: Vec<BorderEdge>,
}

impl Cavity {
    /// Finds the cavity of a point, beginning with the triangle in slot `start`, which belongs to it.
    pub(crate) fn dig<T: Triangles>(mesh: &mut T, start: u32, point: Point) -> Result<Self, T::Abort> {
        let mut cavity = Self { removed: vec![start], border: Vec::new() };
        let mut kept: Vec<u32> = Vec::new();
        let mut next = 0;
        while let Some(slot) = cavity.removed.get(next).copied() {
            next += 1;
            let triangle = mesh.get(slot)?;
            for (corner, neighbour) in triangle.neighbours.into_iter().enumerate() {
                if cavity.removed.contains(&neighbour) {
                    continue;
                }
                if neighbour != OUTSIDE && !kept.contains(&neighbour) {
                    if is_in_circle(mesh.get(neighbour)?.corners, point) {
                        cavity.removed.push(neighbour);
                        continue;
                    }
                    kept.push(neighbour);
                }
                let ends = triangle.edge(corner);
                cavity.border.push(BorderEdge { ends, inside: slot, outside: neighbour });
            }
        }
        Ok(cavity)
    }

    /// Fills the cavity with triangles between its border and `point`, which lies inside it or on the edge
    /// `split` of the mesh's boundary. Takes the slots that it needs more from `fresh`. Returns the slots of the new
    /// triangles; `None` if the cavity is not surrounded by its border, which only an inconsistent view of the mesh can
    /// bring about.
    pub(crate) fn fill<T: Triangles>(
        &self,
        mesh: &mut T,
        point: Point,
        split: Option<[Point; 2]>,
        fresh: [u32; 2],
    ) -> Result<Option<Vec<u32>>, T::Abort> {
        let border: Vec<&BorderEdge> = self.border.iter().filter(|edge| Some(edge.ends) != split).collect();
        let slots: Vec<u32> = self.removed.iter().copied().chain(fresh).take(border.len()).collect();
        let expected = self.removed.len() + if split.is_some() { 1 } else { 2 };
        if border.len() != expected {
            return Ok(None);
        }
        for (edge, slot) in border.iter().zip(&slots) {
            let [from, to] = edge.ends;
            let after = border.iter().position(|other| other.ends[0] == to);
            let before = border.iter().position(|other| other.ends[1] == from);
            let is_open =
                |found: Option<usize>, end| found.is_none() && split.is_none_or(|ends| !ends.contains(&end));
            if is_open(after, to) || is_open(before, from) {
                return Ok(None);
            }
            let slot_of = |found: Option<usize>| found.map_or(OUTSIDE, |index| slots[index]);
            let neighbours = [slot_of(after), slot_of(before), edge.outside];
            mesh.set(*slot, Triangle { corners: [from, to, point], neighbours })?;
            if edge.outside != OUTSIDE {
                let mut outside = mesh.get(edge.outside)?;
                let Some(corner) = outside.corner_opposite([to, from]) else { return Ok(None) };
                outside.neighbours[corner] = *slot;
                mesh.set(edge.outside, outside)?;
            }
        }
        Ok(Some(slots))
    }
}
