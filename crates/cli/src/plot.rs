//! Throughput and latency against cores, as SVG.

use axis::Axis;
use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Circle, Color as _, DashedLineSeries, DrawingArea, IntoDrawingArea as _, IntoFont as _,
    LineSeries, PathElement, RGBColor, SVGBackend, Text, WHITE,
};
use plotters::style::{BLACK, ShapeStyle};

mod axis;

/// What to draw.
#[derive(Debug)]
pub(crate) struct Plot {
    /// Workload and machine.
    pub(crate) title: String,
    /// What else must be known, below the title.
    pub(crate) notes: Vec<String>,
    /// What must not be forgotten, at the bottom.
    pub(crate) caution: String,
    /// A line each.
    pub(crate) curves: Vec<Curve>,
}

/// One line of the plot.
#[derive(Debug)]
pub(crate) struct Curve {
    /// What it shows.
    pub(crate) name: String,
    /// Its points, in any order.
    pub(crate) points: Vec<Point>,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Cores in use.
    pub(crate) cores: usize,
    /// Commits per second.
    pub(crate) per_s: f64,
    /// The 99th percentile of latency in microseconds; none if nothing committed.
    pub(crate) p99_us: Option<f64>,
}

/// Sizes in pixels.
const WIDTH: u32 = 960;
const THROUGHPUT_HEIGHT: u32 = 330;
const LATENCY_HEIGHT: u32 = 260;
const LEGEND_LINE: i32 = 20;
const NOTE_LINE: i32 = 17;
const TITLE_HEIGHT: i32 = 40;
const LEFT: i32 = 24;

/// A letter of the notes is about this wide; there are no fonts to ask.
const NOTE_LETTER: f64 = 6.3;
const LEGEND_LETTER: f64 = 7.2;

/// Colours that differ in lightness too, so that they can be told apart without their hue (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(150, 110, 0),
    RGBColor(60, 60, 60),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The plot as a document.
///
/// # Errors
///
/// In words, if the drawing library fails.
pub(crate) fn draw(plot: &Plot) -> Result<String, String> {
    let mut document = String::new();
    let failed = |error: &dyn std::fmt::Display| format!("cannot draw the plot: {error}");
    let letters = (f64::from(WIDTH - 2 * LEFT as u32) / NOTE_LETTER) as usize;
    let wrapped: Vec<String> = plot.notes.iter().flat_map(|note| wrap(note, letters)).collect();
    let caution = wrap(&plot.caution, letters);
    let head = TITLE_HEIGHT + wrapped.len() as i32 * NOTE_LINE + 10;
    let foot = caution.len() as i32 * NOTE_LINE + 16;
    let legend_height = (plot.curves.len() as u32 + 2) * LEGEND_LINE as u32;
    let panels = (THROUGHPUT_HEIGHT + LATENCY_HEIGHT).max(legend_height);
    let height = head as u32 + panels + foot as u32;
    {
        let root = SVGBackend::with_string(&mut document, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        let line = |text: &str, y: i32, size: i32, colour: RGBColor| {
            root.draw(&Text::new(text.to_owned(), (LEFT, y), ("sans-serif", size).into_font().color(&colour)))
        };
        line(&plot.title, 12, 20, BLACK).map_err(|error| failed(&error))?;
        let grey = RGBColor(70, 70, 70);
        for (at, note) in wrapped.iter().enumerate() {
            line(note, TITLE_HEIGHT + at as i32 * NOTE_LINE, 12, grey).map_err(|error| failed(&error))?;
        }
        for (at, words) in caution.iter().enumerate() {
            let y = height as i32 - foot + 8 + at as i32 * NOTE_LINE;
            line(words, y, 12, grey).map_err(|error| failed(&error))?;
        }
        let (_, body) = root.split_vertically(head);
        let (body, _) = body.split_vertically(panels as i32);
        let (charts, legend) = body.split_horizontally(WIDTH as i32 - legend_width(&plot.curves));
        let (throughput, latency) = charts.split_vertically(THROUGHPUT_HEIGHT as i32);
        let (latency, _) = latency.split_vertically(LATENCY_HEIGHT as i32);
        draw_legend(&legend, &plot.curves).map_err(|error| failed(&error))?;

        let most = plot.curves.iter().flat_map(|curve| &curve.points).map(|point| point.per_s);
        let (unit, name) = unit(most.fold(0.0, f64::max));
        let panel = Panel { label: name, dashed: false, logarithmic: false };
        panel
            .draw(&throughput, &plot.curves, |point| Some(point.per_s / unit))
            .map_err(|error| failed(&error))?;
        let panel = Panel { label: "99th percentile, µs", dashed: true, logarithmic: true };
        panel.draw(&latency, &plot.curves, |point| point.p99_us).map_err(|error| failed(&error))?;
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(document)
}

/// One chart: an amount against cores.
struct Panel {
    label: &'static str,
    dashed: bool,
    /// Whether amounts of different orders are to be on a logarithmic axis.
    logarithmic: bool,
}

impl Panel {
    fn draw<'a>(
        &self,
        area: &Area<'a>,
        curves: &[Curve],
        amount: impl Fn(&Point) -> Option<f64>,
    ) -> Result<(), plotters::drawing::DrawingAreaErrorKind<std::io::Error>> {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let cores = Axis::cores(&points().map(|point| point.cores as f64).collect::<Vec<_>>());
        let amounts: Vec<f64> = points().filter_map(&amount).collect();
        let amounts = if self.logarithmic { Axis::latencies(&amounts) } else { Axis::amounts(&amounts) };
        let mut chart = ChartBuilder::on(area)
            .margin_top(8)
            .margin_left(12)
            .x_label_area_size(44)
            .y_label_area_size(74)
            .build_cartesian_2d(cores, amounts)?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(RGBColor(222, 222, 222))
            .x_desc("cores")
            .y_desc(self.label)
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13))
            .draw()?;
        for (at, curve) in curves.iter().enumerate() {
            let mut sorted = curve.points.clone();
            sorted.sort_by_key(|point| point.cores);
            let places: Vec<(f64, f64)> =
                sorted.iter().filter_map(|point| Some((point.cores as f64, amount(point)?))).collect();
            let style = style(at);
            if self.dashed {
                chart.draw_series(DashedLineSeries::new(places.clone(), 6, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(places.clone(), style))?;
            }
            chart.draw_series(places.into_iter().map(|place| Circle::new(place, 3, style.filled())))?;
        }
        Ok(())
    }
}

/// The names of the curves beside the charts, where they hide nothing.
fn draw_legend(
    area: &Area<'_>,
    curves: &[Curve],
) -> Result<(), plotters::drawing::DrawingAreaErrorKind<std::io::Error>> {
    for (at, curve) in curves.iter().enumerate() {
        let y = 16 + at as i32 * LEGEND_LINE;
        area.draw(&PathElement::new(vec![(14, y), (38, y)], style(at)))?;
        area.draw(&Circle::new((26, y), 3, style(at).filled()))?;
        let text = ("sans-serif", 13).into_font().color(&BLACK);
        area.draw(&Text::new(curve.name.clone(), (46, y - 7), text))?;
    }
    Ok(())
}

fn legend_width(curves: &[Curve]) -> i32 {
    let letters = curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0);
    ((60.0 + letters as f64 * LEGEND_LETTER) as i32).clamp(110, WIDTH as i32 / 3)
}

fn style(curve: usize) -> ShapeStyle {
    COLOURS[curve % COLOURS.len()].stroke_width(2)
}

/// What throughput is counted in when so many commits per second are the most.
fn unit(most: f64) -> (f64, &'static str) {
    if most >= 2e6 {
        (1e6, "million commits/s")
    } else if most >= 2e3 {
        (1e3, "thousand commits/s")
    } else {
        (1.0, "commits/s")
    }
}

/// Lines of at most so many letters, broken between words.
fn wrap(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(names: &[&str], cores: &[usize]) -> Plot {
        let curve = |name: &&str| Curve {
            name: (*name).to_owned(),
            points: cores.iter().map(|&cores| Point { cores, per_s: 3e5, p99_us: Some(2.5) }).collect(),
        };
        Plot {
            title: "toy on abacus <1 & 2>".to_owned(),
            notes: vec!["boxes 5".to_owned()],
            caution: "do not believe it".to_owned(),
            curves: names.iter().map(curve).collect(),
        }
    }

    #[test]
    fn a_plot_names_axes_curves_and_caution() {
        let svg = draw(&plot(&["occ", "tl2"], &[1, 4, 32])).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        for words in
            ["cores", "thousand commits/s", "99th percentile, µs", "occ", "tl2", "boxes 5", "do not believe"]
        {
            assert!(svg.contains(words), "{words} in {svg}");
        }
        assert!(svg.contains("&lt;1 &amp; 2&gt;"), "{svg}");
        assert_eq!(svg, draw(&plot(&["occ", "tl2"], &[32, 1, 4])).unwrap());
    }

    #[test]
    fn little_can_be_drawn_too() {
        for cores in [&[][..], &[1], &[4, 4]] {
            let mut plot = plot(&["occ"], cores);
            assert!(draw(&plot).is_ok());
            for point in &mut plot.curves[0].points {
                (point.per_s, point.p99_us) = (0.0, None);
            }
            assert!(draw(&plot).is_ok());
        }
        assert!(draw(&plot(&[], &[])).is_ok());
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable it is", 5), ["unbreakable", "it is"]);
        assert!(wrap("", 5).is_empty());
    }
}
