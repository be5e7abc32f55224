//! Numbers and tables formatted for people, and printing.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, presets};
use std::io::{self, Write as _};
use std::time::Duration;

/// Writes to standard output and flushes, so that the reader of a pipe sees each run when it is done.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// A count, with separators: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A quantity with three significant digits, or without decimals if that is more precise: `0`, `0.123`, `12.3`, `1,234`.
pub(crate) fn quantity(number: f64) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    let size = number.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size < 0.0005 {
        "<0.001".to_owned()
    } else if size >= 99.95 {
        count(number.round() as u64)
    } else if size >= 9.995 {
        format!("{number:.1}")
    } else if size >= 0.9995 {
        format!("{number:.2}")
    } else {
        format!("{number:.3}")
    }
}

/// Memory in megabytes; below one in kilobytes or bytes, and from ten gigabytes on in gigabytes.
pub(crate) fn memory(bytes: u64) -> String {
    if bytes < 1_000 {
        return format!("{bytes} bytes");
    }
    let bytes = bytes as f64;
    if bytes < 1e6 {
        format!("{} kB", quantity(bytes / 1e3))
    } else if bytes < 1e10 {
        format!("{} MB", quantity(bytes / 1e6))
    } else {
        format!("{} GB", quantity(bytes / 1e9))
    }
}

/// A time for people: `0.2 s`, `45 s`, `3 min 20 s`, `1 h 5 min`.
pub(crate) fn duration(duration: Duration) -> String {
    let exact = duration.as_secs_f64();
    let seconds = exact.round() as u64;
    match seconds {
        0..10 => format!("{} s", (exact * 1_000.0).round() / 1_000.0),
        10..60 => format!("{seconds} s"),
        60..3_600 => match seconds % 60 {
            0 => format!("{} min", seconds / 60),
            rest => format!("{} min {rest} s", seconds / 60),
        },
        _ => match seconds % 3_600 / 60 {
            0 => format!("{} h", seconds / 3_600),
            minutes => format!("{} h {minutes} min", seconds / 3_600),
        },
    }
}

/// One number relative to another: `1.25x`. Of numbers that have nothing to do with each other only the side is told: `>999x`.
pub(crate) fn ratio(number: f64, to: f64) -> String {
    let ratio = if number == to { 1.0 } else { number / to };
    match ratio {
        _ if !ratio.is_finite() => "-".to_owned(),
        999.5.. => ">999x".to_owned(),
        99.95.. => format!("{ratio:.0}x"),
        0.0 => "0x".to_owned(),
        _ if ratio < 0.005 => "<0.01x".to_owned(),
        _ => format!("{ratio:.2}x"),
    }
}

/// The median; of an even number of values, the mean of the two in the middle. NaN if there are no values.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => f64::NAN,
        length if length.is_multiple_of(2) => f64::midpoint(numbers[length / 2 - 1], numbers[length / 2]),
        length => numbers[length / 2],
    }
}

/// The value below which this share of the values lies, interpolated between the two nearest. NaN if there are no values.
#[cfg(feature = "sim")]
pub(crate) fn quantile(numbers: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    let Some(last) = numbers.len().checked_sub(1) else { return f64::NAN };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (numbers[at.floor() as usize], numbers[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// A table whose first `names` columns are text and whose other columns are numbers.
pub(crate) fn table(names: usize, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.set_header(header.to_vec()).add_rows(rows);
    lines(table, names)
}

/// The width of a terminal, in columns.
pub(crate) const WIDTH: u16 = 80;

/// A table of text, no wider than a terminal: the last column is wrapped.
pub(crate) fn listing<const COLUMNS: usize>(rows: impl IntoIterator<Item = [String; COLUMNS]>) -> String {
    let mut table = Table::new();
    table.set_width(WIDTH).set_content_arrangement(ContentArrangement::Dynamic);
    table.add_rows(rows.into_iter().map(Row::from));
    for column in table.column_iter_mut().take(COLUMNS - 1) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    lines(table, COLUMNS)
}

fn lines(mut table: Table, names: usize) -> String {
    table.load_preset(presets::NOTHING);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if at == 0 { 2 } else { 0 }, 2));
        column.set_cell_alignment(if at < names { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_their_significant_digits() {
        assert_eq!([0, 7, 999, 1_000, 1_234_567].map(count).join(" "), "0 7 999 1,000 1,234,567");
        let quantities = [0.0, 0.01234, 0.9996, 1.234, 9.999, 12.34, 99.96, 123.4, 1_234_567.8];
        assert_eq!(quantities.map(quantity).join(" "), "0 0.012 1.00 1.23 10.0 12.3 100 123 1,234,568");
        assert_eq!([f64::INFINITY, f64::NAN, 1e-9].map(quantity).join(" "), "- - <0.001");
        assert_eq!(
            [28, 452_000, 1_500_000, 9_000_000_000, 24_700_000_000].map(memory).join(" "),
            "28 bytes 452 kB 1.50 MB 9,000 MB 24.7 GB"
        );
        assert_eq!(ratio(3.0, 2.0), "1.50x");
        assert_eq!(ratio(0.0, 0.0), "1.00x");
        assert_eq!(ratio(1.0, 0.0), "-");
        let ratios = [0.0, 0.001, 0.25, 99.9, 123.4, 654_482.29].map(|number| ratio(number, 1.0));
        assert_eq!(ratios.join(" "), "0x <0.01x 0.25x 99.90x 123x >999x");
    }

    #[test]
    fn a_time_has_the_units_that_people_use() {
        let times = [0.2, 1.0, 45.4, 60.0, 200.0, 3_600.0, 3_900.0, 90_000.0];
        let times = times.map(|seconds| duration(Duration::from_secs_f64(seconds)));
        assert_eq!(times.join(", "), "0.2 s, 1 s, 45 s, 1 min, 3 min 20 s, 1 h, 1 h 5 min, 25 h");
    }

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_listing_is_no_wider_than_a_terminal() {
        let words = "word ".repeat(30);
        let listing = listing([["name".to_owned(), "1".to_owned(), words.clone()]]);
        let lines: Vec<_> = listing.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 80) && lines[0].len() > 70, "{listing}");
        assert!(lines[0].starts_with("  name  1  word word"), "{listing}");
        assert!(lines[1].starts_with("           word word"), "{listing}");
        assert_eq!(listing.matches("word").count(), words.matches("word").count());
    }

    #[test]
    fn tables_are_plain_text() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["longer".to_owned(), "1,000".to_owned()]];
        assert_eq!(table(1, &["name", "count"], rows), "  name    count\n  a           1\n  longer  1,000\n");
    }
}
