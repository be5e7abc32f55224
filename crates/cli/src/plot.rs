//! Plots of runs with growing numbers of workers, as SVG: throughput and latency against workers; or, as plor
//! Figures 6 and 7, latency against throughput and the distribution of latency.

use crate::text;
use axis::Axis;
use hotrow_workloads::{LatencyDistribution, LatencySummary, RunReport};
use panel::{Line, Panel};
use plotters::prelude::{IntoDrawingArea as _, IntoFont as _, RGBColor, SVGBackend, Text, WHITE};
use plotters::style::BLACK;
use style::DrawResult;

mod axis;
mod panel;
mod request;
mod style;

pub(crate) use request::{PlotArguments, PlotKind, PlotRequest};

/// The content of a plot.
#[derive(Debug)]
pub(crate) struct Plot {
    /// The title: workload and machine.
    pub(crate) title: String,
    /// Notes below the title.
    pub(crate) notes: Vec<String>,
    /// A caution at the bottom.
    pub(crate) caution: String,
    /// The word for the workers' processors: "cores", "threads".
    pub(crate) workers: &'static str,
    /// The kind of plot.
    pub(crate) kind: PlotKind,
    /// The number of workers whose distribution of latency is shown.
    pub(crate) at: usize,
    /// The curves, one line each.
    pub(crate) curves: Vec<Curve>,
}

/// One line of the plot.
#[derive(Debug)]
pub(crate) struct Curve {
    /// The name in the legend.
    pub(crate) name: String,
    /// The points, in any order.
    pub(crate) points: Vec<Point>,
}

/// The runs with one number of workers.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    workers: usize,
    /// Commits per second.
    per_s: f64,
    /// Percentiles of latency in microseconds; `None` if nothing committed.
    p99_us: Option<f64>,
    p999_us: Option<f64>,
    /// The latencies at the percentiles of [`LatencyDistribution::nines`].
    distribution_us: Vec<f64>,
}

impl Point {
    /// The medians of runs with the same number of workers.
    pub(crate) fn of(workers: usize, runs: &[&RunReport]) -> Self {
        let latency = |pick: fn(&LatencySummary) -> f64| {
            let median = text::median(runs.iter().filter_map(|run| run.latency_us.as_ref()).map(pick));
            Some(median).filter(|median| median.is_finite())
        };
        let distributions = || runs.iter().map(|run| &run.latency_distribution.microseconds);
        let shortest = distributions().map(Vec::len).min().unwrap_or(0);
        let median_at = |place: usize| text::median(distributions().map(|distribution| distribution[place]));
        Self {
            workers,
            per_s: text::median(runs.iter().map(|run| run.throughput_per_s)),
            p99_us: latency(|latency| latency.p99),
            p999_us: latency(|latency| latency.p999),
            distribution_us: (0..shortest).map(median_at).collect(),
        }
    }

    /// The percentiles, as numbers of nines, with their latencies.
    fn distribution(&self) -> impl Iterator<Item = (f64, f64)> {
        (0..).map(LatencyDistribution::nines).zip(self.distribution_us.iter().copied())
    }
}

/// Adds a point to the curve of this name.
pub(crate) fn add(curves: &mut Vec<Curve>, name: &str, point: Point) {
    match curves.iter_mut().find(|curve| curve.name == name) {
        Some(curve) => curve.points.push(point),
        None => curves.push(Curve { name: name.to_owned(), points: vec![point] }),
    }
}

/// Sizes in pixels.
const NOTE_LINE: i32 = 17;
const TITLE_HEIGHT: i32 = 40;
const LEFT: i32 = 24;

/// The approximate width of a letter of the notes; the library has no font metrics.
const NOTE_LETTER: f64 = 6.3;

/// The most numbers of workers that a caption lists.
const NUMBERS_MAX: usize = 8;

const GREY: RGBColor = RGBColor(70, 70, 70);

/// Draws the plot as an SVG document.
///
/// # Errors
///
/// A message, if the drawing library fails.
pub(crate) fn draw(plot: &Plot) -> Result<String, String> {
    let mut document = String::new();
    draw_into(&mut document, plot).map_err(|error| format!("cannot draw the plot: {error}"))?;
    Ok(document)
}

fn draw_into(document: &mut String, plot: &Plot) -> DrawResult {
    let (width, heights, panels) = match plot.kind {
        PlotKind::Throughput => (960, &[330, 260][..], plot.against_workers()),
        PlotKind::Latency => (1_180, &[430][..], plot.of_latency()),
    };
    let letters = (f64::from(width - 2 * LEFT) / NOTE_LETTER) as usize;
    let notes: Vec<String> = plot.notes.iter().flat_map(|note| wrap(note, letters)).collect();
    let caution = wrap(&plot.caution, letters);
    let head = TITLE_HEIGHT + notes.len() as i32 * NOTE_LINE + 10;
    let foot = caution.len() as i32 * NOTE_LINE + 16;
    let body_height = heights.iter().sum::<i32>().max(style::legend_height(plot.curves.len()));
    let height = head + body_height + foot;
    let root = SVGBackend::with_string(document, (width as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let line = |text: &str, y: i32, size: i32, colour: RGBColor| {
        root.draw(&Text::new(text.to_owned(), (LEFT, y), ("sans-serif", size).into_font().color(&colour)))
    };
    line(&plot.title, 12, 20, BLACK)?;
    for (at, note) in (0..).zip(&notes) {
        line(note, TITLE_HEIGHT + at * NOTE_LINE, 12, GREY)?;
    }
    for (at, text) in (0..).zip(&caution) {
        line(text, height - foot + 8 + at * NOTE_LINE, 12, GREY)?;
    }

    let names: Vec<&str> = plot.curves.iter().map(|curve| curve.name.as_str()).collect();
    let (_, body) = root.split_vertically(head);
    let (charts, legend) = body.split_horizontally(width - style::legend_width(&names, width));
    style::draw_legend(&legend, &names)?;
    let columns = panels.len() / heights.len();
    let (charts, _) = charts.split_vertically(heights.iter().sum::<i32>());
    let cells = heights.iter().scan(charts, |below, height| {
        let (row, rest) = below.split_vertically(*height);
        *below = rest;
        Some(row.split_evenly((1, columns)))
    });
    for (panel, cell) in panels.iter().zip(cells.flatten()) {
        panel.draw(&root, &cell)?;
    }
    root.present()
}

impl Plot {
    /// Throughput, and below it the 99th percentile of latency, against workers.
    fn against_workers(&self) -> [Panel; 2] {
        let (unit, name) = self.unit();
        [
            self.panel_against_workers(name, Axis::amounts, |point| Some(point.per_s / unit)),
            self.panel_against_workers("99th percentile, µs", Axis::latencies, |point| point.p99_us),
        ]
    }

    fn panel_against_workers(
        &self,
        label: &str,
        axis: fn(&[f64]) -> Axis,
        amount: impl Fn(&Point) -> Option<f64>,
    ) -> Panel {
        let line = |curve: &Curve| {
            let places: Vec<_> = sorted(curve)
                .iter()
                .filter_map(|point| Some((point.workers as f64, amount(point)?)))
                .collect();
            Line { marked: places.clone(), places, named: Vec::new() }
        };
        let workers: Vec<f64> = self.points().map(|point| point.workers as f64).collect();
        let amounts: Vec<f64> = self.points().filter_map(&amount).collect();
        Panel {
            x: Axis::workers(&workers),
            y: axis(&amounts),
            x_label: self.workers.to_owned(),
            y_label: label.to_owned(),
            lines: self.curves.iter().map(line).collect(),
        }
    }

    /// Latency against throughput, and beside it the distribution of latency.
    fn of_latency(&self) -> [Panel; 2] {
        [self.panel_against_throughput(), self.panel_of_distributions()]
    }

    /// The 99.9th percentile of latency against throughput. A line goes from the least workers to the most; these
    /// two numbers stand at its ends.
    fn panel_against_throughput(&self) -> Panel {
        let (unit, name) = self.unit();
        let line = |curve: &Curve| {
            let points: Vec<_> = sorted(curve)
                .iter()
                .filter_map(|point| Some((point.workers, (point.per_s / unit, point.p999_us?))))
                .collect();
            let places: Vec<_> = points.iter().map(|(_, place)| *place).collect();
            let ends = [points.first(), points.last().filter(|_| points.len() > 1)];
            let named = ends.into_iter().flatten().map(|(workers, place)| (*place, workers.to_string()));
            Line { marked: places.clone(), places, named: named.collect() }
        };
        let throughputs: Vec<f64> = self.points().map(|point| point.per_s / unit).collect();
        let latencies: Vec<f64> = self.points().filter_map(|point| point.p999_us).collect();
        let mut workers: Vec<usize> = self.points().map(|point| point.workers).collect();
        workers.sort_unstable();
        workers.dedup();
        let numbers = match (workers.first(), workers.last()) {
            (Some(least), Some(most)) if workers.len() > NUMBERS_MAX => {
                format!(" ({least} to {most} {})", self.workers)
            }
            (Some(_), Some(_)) => {
                let numbers = workers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                format!(" ({numbers} {})", self.workers)
            }
            _ => String::new(),
        };
        Panel {
            x: Axis::amounts(&throughputs),
            y: Axis::logarithmic(&latencies),
            x_label: format!("{name}{numbers}"),
            y_label: "99.9th percentile of latency, µs".to_owned(),
            lines: self.curves.iter().map(line).collect(),
        }
    }

    /// Latency against percentiles, at one number of workers.
    fn panel_of_distributions(&self) -> Panel {
        let here = |curve: &Curve| curve.points.iter().find(|point| point.workers == self.at).cloned();
        let line = |curve: &Curve| {
            let places: Vec<_> = here(curve).iter().flat_map(Point::distribution).collect();
            let whole = |nines: f64| nines > 0.5 && nines.fract() < 1e-9;
            let marked = places.iter().copied().filter(|(nines, _)| whole(*nines)).collect();
            Line { places, marked, named: Vec::new() }
        };
        let lines: Vec<Line> = self.curves.iter().map(line).collect();
        let all = || lines.iter().flat_map(|line| &line.places);
        let latencies: Vec<f64> = all().map(|(_, latency)| *latency).collect();
        Panel {
            x: Axis::percentiles(all().map(|(nines, _)| *nines).fold(1.0, f64::max)),
            y: Axis::logarithmic(&latencies),
            x_label: format!("percentile of transactions ({} {})", self.at, self.workers),
            y_label: "latency, µs".to_owned(),
            lines,
        }
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.curves.iter().flat_map(|curve| &curve.points)
    }

    /// The unit of throughput, and its name.
    fn unit(&self) -> (f64, &'static str) {
        let most = self.points().map(|point| point.per_s).fold(0.0, f64::max);
        if most >= 2e6 {
            (1e6, "million commits/s")
        } else if most >= 2e3 {
            (1e3, "thousand commits/s")
        } else {
            (1.0, "commits/s")
        }
    }
}

/// The points of a curve, sorted by the number of workers.
fn sorted(curve: &Curve) -> Vec<&Point> {
    let mut points: Vec<&Point> = curve.points.iter().collect();
    points.sort_by_key(|point| point.workers);
    points
}

/// Breaks a text between words into lines of at most `letters` letters.
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
mod tests;
