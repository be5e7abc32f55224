//! The text of dates and times, by ISO 8601 as PostgreSQL shows it.

use super::calendar::{
    DAY, Day, HOUR, INFINITE_DATE, INFINITE_TIMESTAMP, MINUTE, NEGATIVE_INFINITE_DATE,
    NEGATIVE_INFINITE_TIMESTAMP, SECOND,
};
use std::io::Write;

/// Writes a number with at least so many digits.
fn write_padded(number: i64, width: usize, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{number:0width$}");
}

/// Writes the date, without the mark of years before Christ.
fn write_day(day: Day, out: &mut Vec<u8>) {
    write_padded(if day.year > 0 { day.year } else { 1 - day.year }, 4, out);
    out.push(b'-');
    write_padded(i64::from(day.month), 2, out);
    out.push(b'-');
    write_padded(i64::from(day.day), 2, out);
}

/// Writes microseconds since midnight, with as many digits of the fraction as it has.
pub(crate) fn write_time(microseconds: i64, out: &mut Vec<u8>) {
    write_padded(microseconds / HOUR, 2, out);
    out.push(b':');
    write_padded(microseconds % HOUR / MINUTE, 2, out);
    out.push(b':');
    write_padded(microseconds % MINUTE / SECOND, 2, out);
    let fraction = microseconds % SECOND;
    if fraction != 0 {
        out.push(b'.');
        write_padded(fraction, 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// Writes a date.
pub(crate) fn write_date(days: i32, out: &mut Vec<u8>) {
    match days {
        INFINITE_DATE => out.extend(b"infinity"),
        NEGATIVE_INFINITE_DATE => out.extend(b"-infinity"),
        days => {
            let day = Day::of_number(i64::from(days));
            write_day(day, out);
            if day.year <= 0 {
                out.extend(b" BC");
            }
        }
    }
}

/// Writes a timestamp, with an offset of zero hours if it has a time zone.
pub(crate) fn write_timestamp(microseconds: i64, has_zone: bool, out: &mut Vec<u8>) {
    match microseconds {
        INFINITE_TIMESTAMP => out.extend(b"infinity"),
        NEGATIVE_INFINITE_TIMESTAMP => out.extend(b"-infinity"),
        microseconds => {
            let day = Day::of_number(microseconds.div_euclid(DAY));
            write_day(day, out);
            out.push(b' ');
            write_time(microseconds.rem_euclid(DAY), out);
            if has_zone {
                out.extend(b"+00");
            }
            if day.year <= 0 {
                out.extend(b" BC");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_and_times_are_shown_by_iso_8601() {
        assert_eq!(shown(|out| write_date(59, out)), "2000-02-29");
        let before = Day { year: 0, month: 12, day: 31 }.number() as i32;
        assert_eq!(shown(|out| write_date(before, out)), "0001-12-31 BC");
        assert_eq!(shown(|out| write_date(before + 1, out)), "0001-01-01");
        assert_eq!(shown(|out| write_date(INFINITE_DATE, out)), "infinity");
        assert_eq!(shown(|out| write_time(DAY, out)), "24:00:00");
        assert_eq!(shown(|out| write_timestamp(-1_500_000, false, out)), "1999-12-31 23:59:58.5");
        assert_eq!(shown(|out| write_timestamp(1, true, out)), "2000-01-01 00:00:00.000001+00");
    }
}
