//! The styles of a plot's lines (colour, stroke and mark), and the legend.

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color as _, DrawingArea, DrawingAreaErrorKind, IntoFont as _, PathElement, Polygon, RGBColor,
    SVGBackend, Text, WHITE,
};
use plotters::style::{BLACK, ShapeStyle};
use std::io;

/// The area, or a part of the area, that a plot is drawn on.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The result of drawing on it.
pub(super) type DrawResult = Result<(), DrawingAreaErrorKind<io::Error>>;

/// The colours. They differ in lightness too, so that they are distinguishable without their hue; the first seven
/// are after Okabe and Ito.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(60, 60, 60),
    RGBColor(86, 180, 233),
    RGBColor(190, 145, 0),
    RGBColor(120, 60, 160),
    RGBColor(140, 25, 40),
    RGBColor(120, 160, 60),
];

/// The outlines of marks around a point, in pixels; a circle has none.
const OUTLINES: [&[(i32, i32)]; 5] = [
    &[],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -5), (5, 4), (-5, 4)],
    &[(0, -6), (5, 0), (0, 6), (-5, 0)],
    &[(-5, -4), (5, -4), (0, 5)],
];

/// The style of one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    colour: RGBColor,
    /// The lengths of dashes and gaps in pixels; `None` for a solid line.
    pub(super) dashes: Option<(i32, i32)>,
    outline: &'static [(i32, i32)],
    filled: bool,
}

impl Style {
    /// The style of line number `line`. No two of the first ten lines have the same colour, nor the same mark.
    pub(super) fn of(line: usize) -> Self {
        let marks = OUTLINES.len();
        Self {
            colour: COLOURS[line % COLOURS.len()],
            dashes: [None, Some((8, 4)), Some((3, 3))][(line / marks) % 3],
            outline: OUTLINES[line % marks],
            filled: (line / marks).is_multiple_of(2),
        }
    }

    /// The colour of the line, also for its labels.
    pub(super) fn colour(&self) -> RGBColor {
        self.colour
    }

    /// The stroke without its dashes.
    pub(super) fn stroke(&self) -> ShapeStyle {
        self.colour.stroke_width(2)
    }

    /// Draws the mark at a pixel.
    pub(super) fn draw_mark(&self, area: &Area<'_>, (x, y): (i32, i32)) -> DrawResult {
        let inside = if self.filled { self.colour.filled() } else { WHITE.filled() };
        let edge = self.colour.stroke_width(2);
        if self.outline.is_empty() {
            area.draw(&Circle::new((x, y), 4, inside))?;
            return area.draw(&Circle::new((x, y), 4, edge));
        }
        let mut corners: Vec<_> = self.outline.iter().map(|(right, down)| (x + right, y + down)).collect();
        area.draw(&Polygon::new(corners.clone(), inside))?;
        corners.extend(corners.first().copied());
        area.draw(&PathElement::new(corners, edge))
    }

    /// Draws a horizontal line for the legend.
    fn draw_sample(&self, area: &Area<'_>, from: i32, to: i32, y: i32) -> DrawResult {
        let (on, off) = self.dashes.unwrap_or((to - from, 1));
        for begin in (from..to).step_by((on + off) as usize) {
            area.draw(&PathElement::new(vec![(begin, y), ((begin + on).min(to), y)], self.stroke()))?;
        }
        Ok(())
    }
}

const LEGEND_LINE: i32 = 22;
const LEGEND_LETTER: f64 = 7.2;

/// Draws the names of the lines beside the charts, where they hide nothing.
pub(super) fn draw_legend(area: &Area<'_>, names: &[&str]) -> DrawResult {
    for (at, name) in names.iter().enumerate() {
        let y = 18 + at as i32 * LEGEND_LINE;
        let style = Style::of(at);
        style.draw_sample(area, 12, 48, y)?;
        style.draw_mark(area, (30, y))?;
        let text = ("sans-serif", 13).into_font().color(&BLACK);
        area.draw(&Text::new((*name).to_owned(), (56, y - 7), text))?;
    }
    Ok(())
}

pub(super) fn legend_width(names: &[&str], width: i32) -> i32 {
    let letters = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    ((70.0 + letters as f64 * LEGEND_LETTER) as i32).clamp(120, width / 3)
}

pub(super) fn legend_height(lines: usize) -> i32 {
    (lines as i32 + 1) * LEGEND_LINE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ten_lines_differ_in_colour_and_in_mark() {
        let styles: Vec<Style> = (0..10).map(Style::of).collect();
        let colours: HashSet<_> =
            styles.iter().map(|style| (style.colour.0, style.colour.1, style.colour.2)).collect();
        let marks: HashSet<_> = styles.iter().map(|style| (style.outline, style.filled)).collect();
        assert_eq!((colours.len(), marks.len()), (10, 10));
    }
}
