//! The calendar: days and microseconds since 2000-01-01, and their fields.
//!
//! The Gregorian calendar without a beginning, as PostgreSQL has it. Its range, from 4714 BC to the year 5874897, is beyond those of the
//! calendars of crates, so the few functions are here.

/// Microseconds of a second.
pub(crate) const SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub(crate) const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
pub(crate) const DAY: i64 = 24 * HOUR;
/// The first day that a date can be, 4714-11-24 BC, and the first of a timestamp.
pub(crate) const FIRST_DAY: i32 = -2_451_545;
/// The day after the last that a date can be, 5874897-12-31.
pub(crate) const END_OF_DATES: i32 = 2_145_031_949;
/// The microsecond after the last that a timestamp can be, 294276-12-31 24:00.
pub(crate) const END_OF_TIMESTAMPS: i64 = 9_223_371_331_200_000_000;
/// Days from 1970-01-01 to 2000-01-01.
pub(crate) const DAYS_FROM_UNIX: i64 = 10_957;
/// The date that is later than all.
pub(crate) const INFINITE_DATE: i32 = i32::MAX;
/// The date that is earlier than all.
pub(crate) const NEGATIVE_INFINITE_DATE: i32 = i32::MIN;
/// The timestamp that is later than all.
pub(crate) const INFINITE_TIMESTAMP: i64 = i64::MAX;
/// The timestamp that is earlier than all.
pub(crate) const NEGATIVE_INFINITE_TIMESTAMP: i64 = i64::MIN;

/// The English names of the months.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The English names of the days, from Sunday on.
pub(crate) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A day of the calendar. The year 0 is 1 BC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day {
    pub(crate) year: i64,
    /// From 1 on.
    pub(crate) month: u32,
    /// From 1 on.
    pub(crate) day: u32,
}

/// The number of days of a month.
pub(crate) fn days_of_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

impl Day {
    /// The day that is this many days after 2000-01-01.
    ///
    /// Counts in eras of 400 years that begin with March (H. Hinnant, "chrono-compatible low-level date algorithms").
    pub(crate) fn of_number(number: i64) -> Self {
        let number = number + DAYS_FROM_UNIX + 719_468;
        let (era, in_era) = (number.div_euclid(146_097), number.rem_euclid(146_097));
        let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * in_year + 2) / 153;
        let day = (in_year - (153 * from_march + 2) / 5 + 1) as u32;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 } as u32;
        Self { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
    }

    /// The number of days since 2000-01-01.
    pub(crate) fn number(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let from_march = i64::from(if self.month > 2 { self.month - 3 } else { self.month + 9 });
        let in_year = (153 * from_march + 2) / 5 + i64::from(self.day) - 1;
        let in_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + in_year;
        era * 146_097 + in_era - 719_468 - DAYS_FROM_UNIX
    }

    /// True if the calendar has this day.
    pub(crate) fn exists(self) -> bool {
        (1..=12).contains(&self.month) && self.day >= 1 && self.day <= days_of_month(self.year, self.month)
    }

    /// The day some months later; the last day of that month if it is shorter.
    pub(crate) fn add_months(self, months: i64) -> Self {
        let since = self.year * 12 + i64::from(self.month) - 1 + months;
        let (year, month) = (since.div_euclid(12), since.rem_euclid(12) as u32 + 1);
        Self { year, month, day: self.day.min(days_of_month(year, month)) }
    }

    /// The number of the day in its year, from 1 on.
    pub(crate) fn of_year(self) -> i64 {
        self.number() - Self { year: self.year, month: 1, day: 1 }.number() + 1
    }

    /// The year and the number of the week by ISO 8601.
    pub(crate) fn week(self) -> (i64, i64) {
        let number = self.number();
        // The week belongs to the year that its Thursday is in.
        let thursday = Self::of_number(number - (number + 5).rem_euclid(7) + 3);
        (thursday.year, (thursday.of_year() - 1) / 7 + 1)
    }
}

/// True if a date may have this number.
pub(crate) fn is_date(days: i32) -> bool {
    matches!(days, INFINITE_DATE | NEGATIVE_INFINITE_DATE) || (FIRST_DAY..END_OF_DATES).contains(&days)
}

/// True if a timestamp may have this number.
pub(crate) fn is_timestamp(microseconds: i64) -> bool {
    matches!(microseconds, INFINITE_TIMESTAMP | NEGATIVE_INFINITE_TIMESTAMP)
        || (i64::from(FIRST_DAY) * DAY..END_OF_TIMESTAMPS).contains(&microseconds)
}

/// The day of the week of a number of a day: 0 for Sunday.
pub(crate) fn weekday(number: i64) -> i64 {
    (number + 6).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_lead_to_their_numbers_and_back() {
        let day = |year, month, day| Day { year, month, day };
        for (known, number) in [
            (day(2000, 1, 1), 0),
            (day(1970, 1, 1), -DAYS_FROM_UNIX),
            (day(2000, 2, 29), 59),
            (day(-4713, 11, 24), i64::from(FIRST_DAY)),
            (day(5_874_897, 12, 31), i64::from(END_OF_DATES) - 1),
        ] {
            assert_eq!(known.number(), number);
            assert_eq!(Day::of_number(number), known);
        }
        for number in (-2_000_000..2_000_000).step_by(397) {
            assert_eq!(Day::of_number(number).number(), number);
        }
    }

    #[test]
    fn months_end_where_they_end() {
        let day = Day { year: 2024, month: 1, day: 31 };
        assert_eq!(day.add_months(1), Day { year: 2024, month: 2, day: 29 });
        assert_eq!(day.add_months(-11), Day { year: 2023, month: 2, day: 28 });
        assert!(!Day { year: 1900, month: 2, day: 29 }.exists());
    }

    #[test]
    fn weeks_are_those_of_iso_8601() {
        assert_eq!(Day { year: 2021, month: 1, day: 3 }.week(), (2020, 53));
        assert_eq!(Day { year: 2018, month: 12, day: 31 }.week(), (2019, 1));
        assert_eq!(weekday(0), 6, "2000-01-01 was a Saturday");
    }
}
