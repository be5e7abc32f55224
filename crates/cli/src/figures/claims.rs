//! Claims: our number beside the paper's, and the verdict.

use super::points::Results;
use super::registry::{Claim, Figure, Kind, Metric};
use crate::text;

/// The share of the paper's number that ours must reach. One for all claims.
const SHARE: f64 = 0.65;

/// The rule of the verdicts, in words.
pub(super) const RULE: &str = "A claim of a number holds if ours is 0.65 of the paper's or better; one of a number that is neither \
                               good nor bad, if it is within that on both sides; one of an order, if ours has the same.";

/// A measured value: a line's metric at a point.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// `None` for the figure's own.
    pub(super) metric: Option<Metric>,
    pub(super) series: String,
    pub(super) at: String,
}

/// Reads `SERIES@VALUE`, or a quotient of two, each perhaps with `METRIC:` before it.
pub(super) fn parse(text: &str) -> Option<Vec<Value>> {
    let value = |text: &str| {
        let (series, at) = text.trim().rsplit_once('@')?;
        let metric = |name: &str| Metric::ALL.into_iter().find(|metric| metric.name() == name);
        let (metric, series) = match series.split_once(':').map(|(name, rest)| (metric(name), rest)) {
            Some((Some(metric), rest)) => (Some(metric), rest),
            _ => (None, series),
        };
        Some(Value { metric, series: series.trim().to_owned(), at: at.trim().to_owned() })
    };
    let values: Vec<Value> = text.split(" / ").map(value).collect::<Option<_>>()?;
    (1..=2).contains(&values.len()).then_some(values)
}

/// A claim and our number.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) claim: &'a Claim,
    /// `None` if a point is missing, because its run failed.
    pub(super) ours: Option<f64>,
}

impl Judged<'_> {
    pub(super) fn holds(&self) -> bool {
        let Some(ours) = self.ours else { return false };
        let (least, most) = (self.claim.paper * SHARE, self.claim.paper / SHARE);
        match self.claim.kind {
            Kind::AtLeast => ours >= least,
            Kind::AtMost => ours <= most,
            Kind::About => (least..=most).contains(&ours),
            Kind::Order => ours > 1.0,
        }
    }

    /// The paper's number in words.
    pub(super) fn paper(&self) -> String {
        match self.claim.kind {
            Kind::Order => String::from("above 1"),
            _ => text::quantity(self.claim.paper),
        }
    }

    /// Our number in words.
    pub(super) fn ours(&self) -> String {
        self.ours.map_or_else(|| String::from("–"), text::quantity)
    }

    /// The reason why ours differs, if it does and the reason is known.
    pub(super) fn reason(&self) -> Option<&str> {
        self.claim.reason.as_deref().filter(|_| self.ours.is_some() && !self.holds())
    }

    /// The verdict in words.
    pub(super) fn verdict(&self) -> &'static str {
        match (self.ours, self.holds()) {
            (None, _) => "not measured",
            (_, true) => "holds",
            (_, false) => "does not hold",
        }
    }
}

/// Judges the claims of a figure.
pub(super) fn judge<'a>(figure: &'a Figure, results: &Results) -> Vec<Judged<'a>> {
    let ours = |claim: &Claim| {
        let values = parse(&claim.ours)?;
        let measured = |value: &Value| {
            let series = figure.series.iter().find(|series| series.name == value.series)?;
            results.value(figure, series, &value.at, value.metric.unwrap_or(figure.metric))
        };
        let first = measured(values.first()?)?;
        let ours = match values.get(1) {
            Some(second) => first / measured(second)?,
            None => first,
        };
        ours.is_finite().then_some(ours)
    };
    figure.claims.iter().map(|claim| Judged { claim, ours: ours(claim) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_and_without_metrics() {
        let values = parse("drp+tame@32 / p99:2pl, opaque@1").unwrap();
        let expected =
            |metric, series: &str, at: &str| Value { metric, series: series.into(), at: at.into() };
        assert_eq!(
            values,
            [expected(None, "drp+tame", "32"), expected(Some(Metric::P99), "2pl, opaque", "1")]
        );
        assert!(parse("drp").is_none() && parse("a@1 / b@2 / c@3").is_none());
    }

    #[test]
    fn one_rule_judges_all_claims() {
        let judged = |kind, paper, ours: f64| {
            let claim = Claim { says: String::new(), paper, ours: String::new(), kind, reason: None };
            Judged { claim: &claim, ours: Some(ours) }.verdict()
        };
        assert_eq!(judged(Kind::AtLeast, 2.0, 1.3), "holds");
        assert_eq!(judged(Kind::AtLeast, 2.0, 1.29), "does not hold");
        assert_eq!(judged(Kind::AtLeast, 2.0, 9.0), "holds");
        assert_eq!(judged(Kind::AtMost, 0.65, 1.01), "does not hold");
        assert_eq!(judged(Kind::About, 2.0, 3.2), "does not hold");
        assert_eq!(judged(Kind::Order, 1.0, 1.01), "holds");
        let claim =
            Claim { says: String::new(), paper: 1.0, ours: String::new(), kind: Kind::Order, reason: None };
        assert_eq!(Judged { claim: &claim, ours: None }.verdict(), "not measured");
    }
}
