use super::*;

fn plot(kind: PlotKind, names: &[&str], workers: &[usize]) -> Plot {
    let point = |&workers: &usize| Point {
        workers,
        per_s: 3e5 + workers as f64,
        p99_us: Some(2.5),
        p999_us: Some(40.0),
        distribution_us: (1..=31).map(f64::from).collect(),
    };
    let curve = |name: &&str| Curve { name: (*name).to_owned(), points: workers.iter().map(point).collect() };
    Plot {
        title: "toy on abacus <1 & 2>".to_owned(),
        notes: vec!["boxes 5".to_owned()],
        caution: "do not believe it".to_owned(),
        workers: "cores",
        kind,
        at: workers.last().copied().unwrap_or(1),
        curves: names.iter().map(curve).collect(),
    }
}

/// True if the document has a line that is exactly `text`.
fn has_line(svg: &str, text: &str) -> bool {
    svg.lines().any(|line| line == text)
}

#[test]
fn a_plot_names_axes_curves_and_caution() {
    for (kind, captions) in [
        (PlotKind::Throughput, &["cores", "thousand commits/s", "99th percentile, µs"][..]),
        (
            PlotKind::Latency,
            &[
                "thousand commits/s (1, 4, 32 cores)",
                "99.9th percentile of latency, µs",
                "latency, µs",
                "percentile of transactions (32 cores)",
                "99.9",
            ],
        ),
    ] {
        let svg = draw(&plot(kind, &["occ", "tl2"], &[1, 4, 32])).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        for words in ["occ", "tl2", "boxes 5", "do not believe it", "toy on abacus &lt;1 &amp; 2&gt;"] {
            assert!(has_line(&svg, words), "{words} in {svg}");
        }
        for words in captions {
            assert!(has_line(&svg, words), "{words} in {svg}");
        }
        assert_eq!(svg, draw(&Plot { at: 32, ..plot(kind, &["occ", "tl2"], &[32, 1, 4]) }).unwrap());
    }
}

#[test]
fn the_ends_of_a_line_are_named_by_their_workers() {
    let svg = draw(&plot(PlotKind::Latency, &["occ"], &[3, 7, 32])).unwrap();
    assert!(has_line(&svg, "3") && has_line(&svg, "32") && !has_line(&svg, "7"), "{svg}");
}

#[test]
fn a_curve_without_the_runs_has_no_distribution() {
    let with = plot(PlotKind::Latency, &["occ", "tl2"], &[1, 4]);
    let mut without = plot(PlotKind::Latency, &["occ", "tl2"], &[1, 4]);
    without.curves[1].points.pop();
    let lines = |plot: &Plot| {
        let panels = plot.of_latency();
        panels.map(|panel| panel.lines.iter().map(|line| line.places.len()).collect::<Vec<_>>())
    };
    assert_eq!(lines(&with), [[2, 2], [31, 31]]);
    assert_eq!(lines(&without), [[2, 1], [31, 0]]);
}

#[test]
fn plots_with_few_or_no_points_can_be_drawn() {
    for kind in [PlotKind::Throughput, PlotKind::Latency] {
        for workers in [&[][..], &[1], &[4, 4]] {
            let mut plot = plot(kind, &["occ"], workers);
            assert!(draw(&plot).is_ok());
            for point in &mut plot.curves[0].points {
                let nothing =
                    Point { per_s: 0.0, p99_us: None, p999_us: None, distribution_us: vec![], ..*point };
                *point = nothing;
            }
            assert!(draw(&plot).is_ok());
        }
        assert!(draw(&plot(kind, &[], &[])).is_ok());
    }
}

#[test]
fn lines_are_broken_between_words() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    assert_eq!(wrap("unbreakable it is", 5), ["unbreakable", "it is"]);
    assert!(wrap("", 5).is_empty());
}
