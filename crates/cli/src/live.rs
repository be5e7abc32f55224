//! `hotrow bench --live`: the run as it goes on, in words.

use crate::text;
use hotrow_workloads::{HotRow, LiveView, RivalryReport};
use std::collections::VecDeque;
use std::time::Duration;

/// The views of the last moments of a run, by which rates are known.
#[derive(Debug, Default)]
pub(crate) struct LiveScreen {
    views: VecDeque<LiveView>,
    /// Commits per second, for each part of a second so far, the newest last.
    rates: VecDeque<f64>,
    /// The time of the last line, where there is no terminal.
    said: Option<Duration>,
}

/// The time over which rates are taken.
const SPAN: Duration = Duration::from_secs(1);

/// Rates that the line of rates shows.
const RATES_MAX: usize = 40;

/// Rows shown.
const ROWS_MAX: usize = 6;

impl LiveScreen {
    /// Adds what is seen now, and returns the lines to show.
    pub(crate) fn lines(&mut self, now: LiveView) -> Vec<String> {
        while self.views.len() > 1 && self.views[1].elapsed + SPAN <= now.elapsed {
            self.views.pop_front();
        }
        let seconds = |from: &LiveView| (now.elapsed.saturating_sub(from.elapsed)).as_secs_f64().max(1e-3);
        let last = self.views.back();
        let rate = last.map_or(0.0, |last| (now.commits - last.commits) as f64 / seconds(last));
        self.rates.push_back(rate);
        if self.rates.len() > RATES_MAX {
            self.rates.pop_front();
        }
        let nothing =
            LiveView { elapsed: Duration::ZERO, commits: 0, aborts: 0, hot_rows: Vec::new(), ..now.clone() };
        let from = self.views.front().unwrap_or(&nothing);
        let (time, commits, aborts) = (seconds(from), now.commits - from.commits, now.aborts - from.aborts);
        let latency = now.latency_us.map_or_else(
            || String::from("nothing committed"),
            |latency| {
                let [p50, p99, p999] = [latency.p50, latency.p99, latency.p999].map(text::quantity);
                format!("p50 {p50} us, p99 {p99} us, p99.9 {p999} us")
            },
        );
        let mut lines = vec![
            format!(
                "throughput  {} commits/s, {} aborts per commit",
                text::count((commits as f64 / time) as u64),
                text::quantity(if commits == 0 { 0.0 } else { aborts as f64 / commits as f64 })
            ),
            format!("            {}", sparks(&self.rates)),
            format!("latency     {latency}"),
        ];
        let mut rows = moving(&from.hot_rows, &now.hot_rows);
        rows.truncate(ROWS_MAX);
        let rows: Vec<String> =
            rows.iter().map(|(row, conflicts)| show_row(row, *conflicts as f64 / time)).collect();
        lines.push(format!("hottest     {}", if rows.is_empty() { "no conflicts" } else { "conflicts/s" }));
        lines.extend(rows);
        self.views.push_back(now);
        lines
    }

    /// As [`lines`](Self::lines), in one line, once a second; `None` between.
    pub(crate) fn line(&mut self, now: LiveView) -> Option<String> {
        let elapsed = now.elapsed;
        let lines = self.lines(now);
        if self.said.is_some_and(|said| said + SPAN > elapsed) {
            return None;
        }
        self.said = Some(elapsed);
        let hottest = lines.get(4).map_or("no conflicts", |row| row.trim());
        let stripped = |line: &str| line.split_once("  ").map_or("", |(_, rest)| rest.trim()).to_owned();
        let (throughput, latency) = (stripped(&lines[0]), stripped(&lines[2]));
        Some(format!("{:>4.0} s: {throughput}; {latency}; hottest: {hottest}", elapsed.as_secs_f64()))
    }
}

/// The rows with the most conflicts between two views, the hottest first.
fn moving<'a>(before: &[HotRow], now: &'a [HotRow]) -> Vec<(&'a HotRow, u64)> {
    let known = |row: &HotRow| before.iter().find(|old| (&old.table, &old.key) == (&row.table, &row.key));
    let since =
        |row: &'a HotRow| (row, row.conflicts - known(row).map_or(0, |old| old.conflicts.min(row.conflicts)));
    let mut rows: Vec<_> = now.iter().map(since).filter(|(_, conflicts)| *conflicts > 0).collect();
    rows.sort_by_key(|(_, conflicts)| u64::MAX - conflicts);
    rows
}

fn show_row(row: &HotRow, rate: f64) -> String {
    let sides = sides(&row.rivalries, row.conflicts);
    format!(
        "  {:>10}  {} {}{}{sides}",
        text::count(rate.round() as u64),
        row.table,
        row.key,
        if sides.is_empty() { "" } else { ": " }
    )
}

/// The most frequent pairs over a row, with their shares.
pub(crate) fn sides(rivalries: &[RivalryReport], conflicts: u64) -> String {
    let name = |side: &Option<String>| side.clone().unwrap_or_else(|| String::from("unknown"));
    let shown = rivalries.iter().take(3).map(|rivalry| {
        let share = rivalry.conflicts as f64 * 100.0 / conflicts.max(1) as f64;
        format!("{} lost to {} {share:.0} %", name(&rivalry.loser), name(&rivalry.winner))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Rates as a line of bars.
fn sparks(rates: &VecDeque<f64>) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = rates.iter().copied().fold(1.0, f64::max);
    rates.iter().map(|rate| BARS[((rate / highest * 7.0).round() as usize).min(7)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotrow_workloads::LatencySummary;

    fn view(tenths: u64, commits: u64, conflicts: u64) -> LiveView {
        let rivalry = RivalryReport {
            loser: Some("audit".into()),
            winner: Some("buy".into()),
            conflicts: conflicts / 2,
        };
        let row = |key: &str, conflicts| HotRow {
            table: "stock".into(),
            key: key.into(),
            conflicts,
            lost_ms: 0.0,
            rivalries: vec![rivalry.clone()],
        };
        LiveView {
            elapsed: Duration::from_millis(tenths * 100),
            total: Duration::from_secs(5),
            commits,
            aborts: conflicts,
            latency_us: Some(LatencySummary { p50: 1.0, p90: 2.0, p99: 3.0, p999: 4.0, max: 5.0 }),
            hot_rows: vec![row("cold", 7), row("hot", conflicts)],
        }
    }

    #[test]
    fn rates_are_those_of_the_last_second_and_rows_move() {
        let mut screen = LiveScreen::default();
        for tenths in 1..=30 {
            screen.lines(view(tenths, tenths * 100, tenths * 10));
        }
        let lines = screen.lines(view(31, 3_400, 400));
        assert_eq!(lines[0], "throughput  1,300 commits/s, 0.146 aborts per commit");
        assert!(lines[1].ends_with('█') && lines[1].contains('▃'), "{}", lines[1]);
        assert_eq!(lines[2], "latency     p50 1.00 us, p99 3.00 us, p99.9 4.00 us");
        assert_eq!(lines[4..], [String::from("         190  stock hot: audit lost to buy 50 %")]);
    }

    #[test]
    fn without_a_terminal_there_is_one_line_a_second() {
        let mut screen = LiveScreen::default();
        let lines: Vec<_> =
            (0..=25).filter_map(|tenths| screen.line(view(tenths, tenths * 100, tenths))).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[1],
            "   1 s: 1,000 commits/s, 0.010 aborts per commit; p50 1.00 us, p99 3.00 us, p99.9 4.00 us; \
             hottest: 10  stock hot: audit lost to buy 50 %"
        );
    }
}
