//! Expressions with as few parentheses as PostgreSQL shows where they are to be read.
//!
//! The catalog keeps expressions with all parentheses: each operator has a pair around itself and its operands, and so has what is
//! cast. So they are taken apart by their parentheses alone.

/// The surroundings of a part of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Around<'t> {
    Nothing,
    And,
    Or,
    /// An operator; true if the part is on its left.
    Operator(&'t str, bool),
    Other,
}

/// Calls a function with each character outside of texts and names in quotes, its place, and the depth of parentheses there.
fn each_character(text: &str, mut each: impl FnMut(usize, char, usize) -> bool) {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) => {
                if open == character {
                    quote = None;
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(character),
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !each(at, character, depth) {
            return;
        }
        if matches!(character, '(' | '[') {
            depth += 1;
        }
    }
}

/// The parts of a text between a separator that is outside of parentheses.
fn split<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    each_character(text, |at, _, depth| {
        if depth == 0 && at >= start && text[at..].starts_with(separator) {
            parts.push(&text[start..at]);
            start = at + separator.len();
        }
        true
    });
    parts.push(&text[start..]);
    parts
}

/// The place of the parenthesis that closes the one at the beginning of a text.
fn closing(text: &str) -> Option<usize> {
    let mut found = None;
    each_character(text, |at, character, depth| {
        if at > 0 && character == ')' && depth == 0 {
            found = Some(at);
        }
        found.is_none()
    });
    found
}

/// The inside of a text that is in parentheses as a whole.
fn inside(text: &str) -> Option<&str> {
    let is_whole = text.starts_with('(') && closing(text) == Some(text.len() - 1);
    is_whole.then(|| &text[1..text.len() - 1])
}

/// The operands of an operator, and the operator between them.
fn operation(text: &str) -> Option<(&str, &str, &str)> {
    let words = split(text, " ");
    let is_operator =
        |word: &&str| !word.is_empty() && word.bytes().all(|byte| b"+-*/<>=~!@#%^&|".contains(&byte));
    let place = words.iter().position(is_operator).filter(|place| *place > 0)?;
    let start = words[..place].iter().map(|word| word.len() + 1).sum::<usize>();
    let end = start + words[place].len();
    Some((&text[..start - 1], words[place], text.get(end + 1..)?))
}

/// The rank of an operator among those that may do without parentheses: sums below products.
fn rank(operator: &str) -> Option<u8> {
    match operator {
        "+" | "-" => Some(1),
        "*" | "/" | "%" => Some(2),
        _ => None,
    }
}

/// True if an operation needs no parentheses inside of another one.
fn binds(operator: &str, (outer, is_left): (&str, bool)) -> bool {
    match (rank(operator), rank(outer)) {
        (Some(inner), Some(outer)) => inner > outer || (inner == outer && is_left),
        _ => false,
    }
}

/// The depth of parentheses and the length of an expression that is taken apart. Others are shown as they are kept.
const DEPTH_MAX: usize = 50;
const LENGTH_MAX: usize = 10_000;

/// An expression without the parentheses that it does not need.
pub(super) fn without_parentheses(text: &str) -> String {
    let mut deepest = 0;
    if text.len() <= LENGTH_MAX {
        each_character(text, |_, _, depth| {
            deepest = deepest.max(depth);
            true
        });
    }
    if text.len() > LENGTH_MAX || deepest > DEPTH_MAX {
        return text.to_owned();
    }
    shown(text, Around::Nothing)
}

fn shown(text: &str, around: Around<'_>) -> String {
    let Some(inner) = inside(text) else { return parts_shown(text) };
    if inside(inner).is_some() {
        return shown(inner, around);
    }
    for (word, here) in [(" OR ", Around::Or), (" AND ", Around::And)] {
        let parts = split(inner, word);
        if parts.len() > 1 {
            let parts: Vec<String> = parts.iter().map(|part| shown(part, here)).collect();
            let joined = parts.join(word);
            let is_clear = around == Around::Nothing
                || around == Around::Or
                || (around == Around::And && here == around);
            return if is_clear { joined } else { format!("({joined})") };
        }
    }
    if let Some((left, operator, right)) = operation(inner) {
        let left = shown(left, Around::Operator(operator, true));
        let right = shown(right, Around::Operator(operator, false));
        let is_clear = match around {
            Around::Operator(outer, is_left) => binds(operator, (outer, is_left)),
            Around::Other => false,
            _ => true,
        };
        let text = format!("{left} {operator} {right}");
        return if is_clear { text } else { format!("({text})") };
    }
    let is_clear = matches!(around, Around::Nothing | Around::And | Around::Or);
    let text = match inner.strip_prefix("NOT ") {
        // Of a condition that is one operation the parentheses go as well.
        Some(negated) if inside(negated).is_some_and(|inner| operation(inner).is_some()) => {
            format!("NOT {}", shown(negated, Around::Nothing))
        }
        _ if inner.contains(' ') || around == Around::Nothing => parts_shown(inner),
        // One word: a value that is cast.
        _ => return parts_shown(inner),
    };
    if is_clear { text } else { format!("({text})") }
}

/// A text that is no operation: the parts in parentheses are shown as they need it.
fn parts_shown(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    loop {
        let mut open = None;
        each_character(rest, |at, character, _| {
            if character == '(' {
                open = Some(at);
            }
            open.is_none()
        });
        let end = open.and_then(|open| Some((open, open + closing(&rest[open..])?)));
        let Some((open, close)) = end else {
            out.push_str(rest);
            return out;
        };
        let (before, group) = (&rest[..open], &rest[open..=close]);
        out.push_str(before);
        rest = &rest[close + 1..];
        let follows = |words: &[&str]| words.iter().any(|word| before.ends_with(word));
        if follows(&["WHEN ", "THEN ", "ELSE "]) {
            out += &shown(group, Around::Nothing);
        } else if before.is_empty() || before.ends_with(' ') {
            let is_among = follows(&["ANY ", "ALL "]);
            let text = shown(group, Around::Other);
            out += &if is_among && inside(&text).is_none() { format!("({text})") } else { text };
        } else {
            // The arguments of a function.
            let arguments: Vec<String> = split(&group[1..group.len() - 1], ", ")
                .iter()
                .map(|one| shown(one, Around::Nothing))
                .collect();
            out += &format!("({})", arguments.join(", "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_parentheses;

    #[test]
    fn parentheses_stay_where_they_change_the_meaning() {
        for (full, shown) in [
            ("(a > 0)", "a > 0"),
            ("((a > 0) AND (b > 0))", "a > 0 AND b > 0"),
            ("((a > 0) AND ((b > 0) OR (c > 0)))", "a > 0 AND (b > 0 OR c > 0)"),
            ("((a > 0) OR ((b > 0) AND (c > 0)))", "a > 0 OR b > 0 AND c > 0"),
            ("((a + (b * 2)) > 0)", "(a + b * 2) > 0"),
            ("(((a + b) * 2) > (a - (b - c)))", "((a + b) * 2) > (a - (b - c))"),
            ("(a <> ') AND ('::text)", "a <> ') AND ('::text"),
            ("(NOT (a > 0))", "NOT a > 0"),
            ("((h)::text <> ''::text)", "h::text <> ''::text"),
            ("(k > (0)::numeric)", "k > 0::numeric"),
            ("(((a + b))::numeric > 1.5)", "(a + b)::numeric > 1.5"),
            ("(length((h)::text) > 3)", "length(h::text) > 3"),
            ("(upper('x'::text) || 'y'::text)", "upper('x'::text) || 'y'::text"),
            ("(a = ANY (ARRAY[1, 2]))", "a = ANY (ARRAY[1, 2])"),
            ("(d IS NOT NULL)", "d IS NOT NULL"),
            ("((d IS NULL) OR (h = 'x'::character varying))", "d IS NULL OR h = 'x'::character varying"),
            (
                "(\nCASE\n    WHEN (a > 0) THEN b\n    ELSE c\nEND > 1)",
                "\nCASE\n    WHEN a > 0 THEN b\n    ELSE c\nEND > 1",
            ),
            ("nextval('a_b_seq'::regclass)", "nextval('a_b_seq'::regclass)"),
            ("n", "n"),
            ("(((", "((("),
        ] {
            assert_eq!(without_parentheses(full), shown);
        }
        let deep = format!("{}a{}", "(".repeat(60), ")".repeat(60));
        assert_eq!(without_parentheses(&deep), deep);
    }
}
