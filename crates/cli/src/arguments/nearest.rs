//! The rule by which a misspelt name gets the name that was probably meant.
//!
//! All names go by it: options and subcommands, workloads, protocols, machines, applications, presets and the words that an option
//! takes.

use hotrow_workloads::alternatives;
use strsim::damerau_levenshtein;

/// The length from which the beginning of a name stands for the name.
const BEGINNING_MIN: usize = 3;

/// The known name that is nearest to a name: the one with the fewest slips (a letter too many, too few, wrong, or exchanged with the
/// next one), if there is at most one slip in three letters of the longer name. A name that begins with the given one is as near as one with
/// the most slips that are admitted. Of equally near ones it is the first.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    let near = known.into_iter().filter_map(|candidate| {
        let lowercase = candidate.to_lowercase();
        let slips_max = length.max(lowercase.chars().count()).max(3) / 3;
        let is_beginning = length >= BEGINNING_MIN && lowercase.starts_with(&name);
        let slips = match damerau_levenshtein(&name, &lowercase) {
            slips if is_beginning => slips.min(slips_max),
            slips => slips,
        };
        // Of a single letter, one slip leaves nothing.
        (slips <= slips_max && slips < length).then_some((slips, candidate))
    });
    near.min_by_key(|(slips, _)| *slips).map(|(_, candidate)| candidate)
}

/// The message that there is no such `kind` of thing: with the nearest known name or, if none is near, with all.
pub(crate) fn unknown<'a>(kind: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("unknown {kind} {name:?}; did you mean {nearest}?"),
        None => format!("unknown {kind} {name:?}; there are: {}", known.join(", ")),
    }
}

/// The message that an option does not take a word: with the nearest one that it takes or, if none is near, with all.
pub(crate) fn not_one_of(option: &str, word: &str, known: &[String]) -> String {
    match nearest(word, known.iter().map(String::as_str)) {
        Some(nearest) => format!("{option} {word}: did you mean {nearest}?"),
        None => format!("{option} {word}: expected {}", alternatives(known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_with_the_fewest_slips_is_the_nearest() {
        let names = ["bench", "compare", "check", "chop", "list", "wait-die", "warehouses", "mix"];
        for (name, expected) in [
            ("bensh", Some("bench")),
            ("becnh", Some("bench")),
            ("ben", Some("bench")),
            ("Chek", Some("check")),
            ("warehouse", Some("warehouses")),
            ("ware", Some("warehouses")),
            ("wait", Some("wait-die")),
            ("max", Some("mix")),
            ("warehosue", Some("warehouses")),
            ("compre", Some("compare")),
            ("everything", None),
            ("be", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
    }

    #[test]
    fn a_message_names_the_nearest_or_all() {
        let known = ["tpcc", "ycsb"];
        assert_eq!(unknown("workload", "tpc", known), "unknown workload \"tpc\"; did you mean tpcc?");
        assert_eq!(unknown("workload", "x", known), "unknown workload \"x\"; there are: tpcc, ycsb");
        let known = ["full", "small", "none"].map(String::from);
        assert_eq!(not_one_of("--scale", "smal", &known), "--scale smal: did you mean small?");
        assert_eq!(not_one_of("--scale", "x", &known), "--scale x: expected full, small or none");
    }
}
