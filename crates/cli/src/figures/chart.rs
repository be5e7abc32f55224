//! A chart of lines as SVG for the page: its colours are the page's, so that it can be read in light, in dark and in print.

use crate::text;
use std::fmt::Write as _;

/// A line: its values, one for each place of the axis, as far as they were measured.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) values: Vec<Option<f64>>,
    /// The number of its colour.
    pub(super) colour: usize,
    /// True if it stands for runs on threads of this machine.
    pub(super) is_real: bool,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 10.0;
const RIGHT: f64 = 12.0;

/// Number of colours that the page has.
const COLOURS: usize = 8;

/// Draws the lines over the places, which have equal distances.
pub(super) fn svg(places: &[String], x_label: &str, y_label: &str, lines: &[Line]) -> String {
    let values = || lines.iter().flat_map(|line| &line.values).filter_map(|value| *value);
    let most = values().fold(0.0, f64::max);
    let step = nice_step(most / 4.0);
    let top = (most / step).ceil().max(1.0) * step;
    let steps = places.len().saturating_sub(1).max(1) as f64;
    let x = |place: usize| {
        LEFT + (WIDTH - LEFT - RIGHT) * if places.len() == 1 { 0.5 } else { place as f64 / steps }
    };
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top;
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", escape(y_label));
    let mut mark = 0.0;
    while mark <= top * 1.0001 {
        let at = y(mark);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            short(mark)
        );
        mark += step;
    }
    for (at, place) in places.iter().enumerate() {
        let (x, y) = (x(at), HEIGHT - BOTTOM + 18.0);
        // A long name at the right edge would be cut off.
        let anchor = if at > 0 && at + 1 == places.len() && place.len() > 4 { "end" } else { "middle" };
        let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>", escape(place));
    }
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(LEFT, WIDTH),
        HEIGHT - 6.0,
        escape(x_label)
    );
    for line in lines {
        let colour = look(line);
        let points: Vec<(f64, f64)> =
            line.values.iter().enumerate().filter_map(|(at, value)| Some((x(at), y((*value)?)))).collect();
        if !line.is_real {
            let joined: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = write!(svg, "<polyline class=\"line {colour}\" points=\"{}\"/>", joined.join(" "));
        }
        for (x, y) in points {
            let kind = if line.is_real { "real" } else { "mark" };
            let _ = write!(svg, "<circle class=\"{kind} {colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>");
        }
    }
    svg + "</svg>"
}

/// The legend of lines, as a list.
pub(super) fn legend(lines: &[Line]) -> String {
    let entry = |line: &Line| {
        let real = if line.is_real { " (threads)" } else { "" };
        format!("<li class=\"{}\"><span>{}{real}</span></li>", look(line), escape(&line.name))
    };
    format!("<ul class=\"legend\">{}</ul>", lines.iter().map(entry).collect::<String>())
}

/// The classes of a line: its colour, and dashes where the colours have begun again.
fn look(line: &Line) -> String {
    let again = if line.colour >= COLOURS { " again" } else { "" };
    format!("c{}{again}", line.colour % COLOURS)
}

/// The next of 1, 2, 5, 10, 20, … times a power of ten.
fn nice_step(least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0].into_iter().find(|times| times * power >= least).unwrap_or(10.0);
    times * power
}

/// A number in few letters.
fn short(value: f64) -> String {
    let (divisor, unit) = match value {
        value if value >= 1e6 => (1e6, " M"),
        value if value >= 1e4 => (1e3, " k"),
        _ => (1.0, ""),
    };
    let number = value / divisor;
    let number = if number.fract().abs() < 1e-9 { format!("{number:.0}") } else { text::quantity(number) };
    number + unit
}

/// A text in HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_line_for_each_series_and_a_mark_for_each_value() {
        let line = |name: &str, values: &[Option<f64>], is_real| Line {
            name: name.into(),
            values: values.to_vec(),
            colour: 0,
            is_real,
        };
        let lines = [
            line("a & b", &[Some(1.0), None, Some(3e6)], false),
            line("real", &[Some(2.0), None, None], true),
        ];
        let places = ["1", "8", "32"].map(String::from);
        let svg = svg(&places, "cores", "commits per second", &lines);
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (1, 3));
        assert!(svg.contains(">3 M</text>") && svg.contains(">32</text>"), "{svg}");
        assert!(legend(&lines).contains("a &amp; b") && legend(&lines).contains("real (threads)"));
        assert_eq!([0.0, 0.3, 1.0, 1.1, 7.0].map(nice_step), [1.0, 0.5, 1.0, 2.0, 10.0]);
    }
}
