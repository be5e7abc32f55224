//! One chart of a plot.

use super::axis::Axis;
use super::style::{Area, DrawResult, Style};
use plotters::prelude::{ChartBuilder, IntoFont as _, PathElement, RGBColor, Text};

/// A chart: lines over two axes. The index of a line decides its style.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) x_label: String,
    pub(super) y_label: String,
    pub(super) lines: Vec<Line>,
}

/// One line.
#[derive(Debug)]
pub(super) struct Line {
    /// The points that the line connects.
    pub(super) places: Vec<(f64, f64)>,
    /// The points with a mark.
    pub(super) marked: Vec<(f64, f64)>,
    /// The points with a label beside them.
    pub(super) named: Vec<((f64, f64), String)>,
}

/// The width of a letter of a label, in pixels.
const LETTER: i32 = 7;
const LETTER_HEIGHT: i32 = 12;

/// Half the width of a mark, in pixels.
const MARK: i32 = 5;

impl Panel {
    /// Draws the chart into an area of the whole.
    pub(super) fn draw<'a>(&self, whole: &Area<'a>, area: &Area<'a>) -> DrawResult {
        let (x, y) = (self.x.clone(), self.y.clone());
        let mut chart = ChartBuilder::on(area)
            .margin_top(8)
            .margin_left(12)
            .margin_right(10)
            .x_label_area_size(44)
            .y_label_area_size(74)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(RGBColor(222, 222, 222))
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .x_label_formatter(&|value| x.label(*value))
            .y_label_formatter(&|value| y.label(*value))
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13))
            .draw()?;
        let pixel = |place: &(f64, f64)| chart.backend_coord(place);
        // All lines, then all marks, so that no line hides a mark.
        let mut taken: Vec<Block> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let pixels: Vec<_> = line.places.iter().map(pixel).collect();
            draw_line(whole, &pixels, &Style::of(at))?;
            taken.extend(pixels.windows(2).flat_map(|pair| Block::along(pair[0], pair[1])));
        }
        for (at, line) in self.lines.iter().enumerate() {
            for (x, y) in line.marked.iter().map(pixel) {
                Style::of(at).draw_mark(whole, (x, y))?;
                taken.push(Block::around((x, y), MARK));
            }
        }
        for (at, line) in self.lines.iter().enumerate() {
            for (place, label) in &line.named {
                let Some(block) = Block::beside(pixel(place), label, &taken) else { continue };
                let style = ("sans-serif", 12).into_font().color(&Style::of(at).colour());
                whole.draw(&Text::new(label.clone(), (block.left, block.top), style))?;
                taken.push(block);
            }
        }
        Ok(())
    }
}

/// Draws a line through pixels, in dashes that continue around its corners.
fn draw_line(area: &Area<'_>, pixels: &[(i32, i32)], style: &Style) -> DrawResult {
    let Some((on, off)) = style.dashes else {
        return area.draw(&PathElement::new(pixels.to_vec(), style.stroke()));
    };
    let (on, period) = (f64::from(on), f64::from(on + off));
    let mut gone = 0.0;
    let mut dash: Vec<(i32, i32)> = Vec::new();
    for pair in pixels.windows(2) {
        let [from, to] = [pair[0], pair[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let at = |share: f64| {
            let between = |from: f64, to: f64| (from + (to - from) * share).round() as i32;
            (between(from.0, to.0), between(from.1, to.1))
        };
        let mut along = 0.0;
        while along < length {
            let phase: f64 = gone % period;
            let left = if phase < on { on - phase } else { period - phase };
            let step = left.max(0.5).min(length - along);
            if phase < on {
                if dash.is_empty() {
                    dash.push(at(along / length));
                }
                dash.push(at((along + step) / length));
            }
            along += step;
            gone += step;
            if phase < on && step >= left {
                area.draw(&PathElement::new(std::mem::take(&mut dash), style.stroke()))?;
            }
        }
    }
    if dash.len() > 1 {
        area.draw(&PathElement::new(dash, style.stroke()))?;
    }
    Ok(())
}

/// An occupied rectangle of the plot, in pixels.
#[derive(Debug, Clone, Copy)]
struct Block {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Block {
    fn around((x, y): (i32, i32), half: i32) -> Self {
        Self { left: x - half, top: y - half, right: x + half, bottom: y + half }
    }

    /// The rectangles that a line between two pixels occupies.
    fn along(from: (i32, i32), to: (i32, i32)) -> impl Iterator<Item = Self> {
        let steps = ((to.0 - from.0).abs().max((to.1 - from.1).abs()) / 3).max(1);
        let between = move |from: i32, to: i32, step: i32| from + (to - from) * step / steps;
        (0..=steps)
            .map(move |step| Self::around((between(from.0, to.0, step), between(from.1, to.1, step)), 1))
    }

    /// Room for a label beside a mark: right, above, left or below; `None` if all four are taken.
    fn beside((x, y): (i32, i32), label: &str, taken: &[Block]) -> Option<Self> {
        let width = label.chars().count() as i32 * LETTER;
        let (middle, gap) = (LETTER_HEIGHT / 2, MARK + 3);
        let corners = [
            (x + gap, y - middle),
            (x - width / 2, y - gap - LETTER_HEIGHT),
            (x - gap - width, y - middle),
            (x - width / 2, y + gap),
        ];
        let blocks =
            corners.map(|(left, top)| Self { left, top, right: left + width, bottom: top + LETTER_HEIGHT });
        blocks.into_iter().find(|block| !taken.iter().any(|other| block.meets(other)))
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_go_only_where_there_is_room() {
        let mut taken = vec![Block::around((0, 0), MARK)];
        let mut places = 0;
        while let Some(block) = Block::beside((0, 0), "16", &taken) {
            assert!(!taken.iter().any(|other| block.meets(other)), "{block:?} over {taken:?}");
            taken.push(block);
            places += 1;
        }
        assert_eq!(places, 4);
        let crossed: Vec<Block> = Block::along((10, -20), (10, 20)).collect();
        let block = Block::beside((0, 0), "16", &crossed).unwrap();
        assert!(block.right < 10, "{block:?} is not right of the mark, where the line is");
    }
}
