//! Reads which files of a crate import which others.
//!
//! A file imports another if it names something that the other defines, by a path or by `use`. Names are followed
//! through re-exports to the file that defines them, so that a re-export that the file itself does not use, and a
//! declaration `mod`, are no imports. Comments, and code that only tests or models compile, are left out.

use super::{code, crates, files};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::slice;

/// For each file of a crate, named by its path below `src`, the files that it imports.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// The imports of a crate's files.
pub(crate) fn imports(name: &str) -> Imports {
    let source = crates().join(name).join("src");
    let texts = files(&source, ".rs").into_iter().map(|(path, text)| {
        let file = path.strip_prefix(&source).unwrap().to_string_lossy().into_owned();
        (file, text)
    });
    Tree::new(texts).imports()
}

/// The largest set of files that import each other, directly or through others of the set.
pub(crate) fn largest_circle(imports: &Imports) -> BTreeSet<&str> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (&**file, reach(imports, file))).collect();
    let circle =
        |file: &str| reached[file].iter().copied().filter(|other| reached[other].contains(file)).collect();
    reached.keys().map(|file| circle(file)).max_by_key(BTreeSet::len).unwrap_or_default()
}

/// The files that a file imports, directly or through others.
fn reach<'a>(imports: &'a Imports, file: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        open.extend(imports[file].iter().map(String::as_str).filter(|next| reached.insert(*next)));
    }
    reached
}

/// The modules of a crate by their paths: `["a", "b"]` is `crate::a::b`.
struct Tree {
    modules: BTreeMap<Vec<String>, Module>,
}

/// What the text of a module says, without the modules inside.
#[derive(Default)]
struct Module {
    file: String,
    children: HashSet<String>,
    uses: Vec<Use>,
    /// Paths outside of `use`, of at least two words.
    paths: HashSet<Vec<String>>,
    /// All words outside of `use`.
    words: HashSet<String>,
    /// The names that the module defines.
    defined: HashSet<String>,
}

/// A name that `use` brings into a module; `*` for all names.
struct Use {
    name: String,
    path: Vec<String>,
    is_public: bool,
}

impl Tree {
    fn new(texts: impl Iterator<Item = (String, String)>) -> Self {
        let mut tree = Self { modules: BTreeMap::new() };
        let mut for_tests = Vec::new();
        for (file, text) in texts {
            let mut path: Vec<String> = Path::new(&file)
                .with_extension("")
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            if ["lib", "main", "mod"].contains(&&**path.last().unwrap()) {
                path.pop();
            }
            let code = code(&text);
            let mut reader = Reader { tokens: tokens(&code), at: 0, file: &file, for_tests: Vec::new() };
            reader.read_module(path, &mut tree.modules);
            for_tests.append(&mut reader.for_tests);
        }
        tree.modules.retain(|path, _| !for_tests.iter().any(|test: &Vec<String>| path.starts_with(test)));
        tree
    }

    fn imports(&self) -> Imports {
        let mut imports: Imports =
            self.modules.values().map(|module| (module.file.clone(), BTreeSet::new())).collect();
        for (place, module) in &self.modules {
            let used = module
                .uses
                .iter()
                .filter(|used| !used.is_public || module.words.contains(&used.name))
                .map(|used| &used.path);
            let imported = used.chain(&module.paths).filter_map(|path| self.defining_file(place, path));
            imports
                .get_mut(&module.file)
                .unwrap()
                .extend(imported.filter(|file| *file != module.file).map(str::to_owned));
        }
        imports
    }

    /// The file that defines what `path` names inside the module `place`; `None` if it is no file of this crate.
    fn defining_file(&self, place: &[String], path: &[String]) -> Option<&str> {
        let (first, rest) = path.split_first()?;
        let module = &self.modules[place];
        match &**first {
            "crate" => self.in_module(&[], rest),
            "self" => self.in_module(place, rest),
            "super" => match rest.first().map(String::as_str) {
                Some("super") => self.defining_file(&place[..place.len() - 1], rest),
                _ => self.in_module(&place[..place.len() - 1], rest),
            },
            _ if module.children.contains(first)
                || module.uses.iter().any(|used| used.name == *first && used.path[0] != *first) =>
            {
                self.in_module(place, path)
            }
            _ => None,
        }
    }

    /// Like `defining_file`, of a path that begins with a name of the module.
    fn in_module(&self, place: &[String], path: &[String]) -> Option<&str> {
        let module = self.modules.get(place)?;
        let Some((first, rest)) = path.split_first() else { return Some(&module.file) };
        if module.children.contains(first) {
            return self.in_module(&[place, &path[..1]].concat(), rest);
        }
        if let Some(used) = module.uses.iter().find(|used| used.name == *first) {
            return self.defining_file(place, &[&*used.path, rest].concat());
        }
        if module.defined.contains(first) {
            return Some(&module.file);
        }
        let mut all = module.uses.iter().filter(|used| used.name == "*" && used.is_public);
        let elsewhere = all.find_map(|used| self.defining_file(place, &[&*used.path, path].concat()));
        elsewhere.or(Some(&module.file))
    }
}

/// Words, `::`, arrows, and single other characters.
fn tokens(code: &str) -> Vec<&str> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let long = ["::", "->", "=>"].iter().any(|long| rest.starts_with(long));
        let (token, left) = rest.split_at(if word > 0 {
            word
        } else if long {
            2
        } else {
            first.len_utf8()
        });
        if token != " " {
            tokens.push(token);
        }
        rest = left;
    }
    tokens
}

/// The words before the name of a definition.
const DEFINITIONS: [&str; 9] =
    ["const", "enum", "fn", "macro_rules", "static", "struct", "trait", "type", "union"];

struct Reader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    file: &'a str,
    /// The modules that only tests or models have.
    for_tests: Vec<Vec<String>>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        self.at += 1;
        self.tokens.get(self.at - 1).copied()
    }

    fn next_is(&mut self, token: &str) -> bool {
        let is = self.peek() == Some(token);
        self.at += usize::from(is);
        is
    }

    /// Reads to the end of the file, or to the bracket that closes the module.
    fn read_module(&mut self, place: Vec<String>, modules: &mut BTreeMap<Vec<String>, Module>) {
        let mut module = Module { file: self.file.to_owned(), ..Module::default() };
        let mut depth = 0;
        let mut is_public = false;
        while let Some(token) = self.next() {
            match token {
                "{" => depth += 1,
                "}" if depth == 0 => break,
                "}" => depth -= 1,
                "#" if self.next_is("[") => {
                    let attribute = self.group("]");
                    if attribute.first() == Some(&"cfg") && !can_be(&attribute[2..attribute.len() - 1], true)
                    {
                        self.skip_item(&place);
                    } else {
                        module.words.extend(attribute.into_iter().map(str::to_owned));
                    }
                }
                "pub" => {
                    if self.next_is("(") {
                        self.group(")");
                    }
                    is_public = true;
                    continue;
                }
                "mod" => {
                    let name = self.next().unwrap().to_owned();
                    if self.next_is("{") {
                        self.read_module([&*place, slice::from_ref(&name)].concat(), modules);
                    }
                    module.children.insert(name);
                }
                "use" => {
                    let end = self.tokens[self.at..].iter().position(|token| *token == ";").unwrap();
                    let tree = &self.tokens[self.at..self.at + end];
                    self.at += end;
                    add_uses(tree, &[], is_public, &mut module.uses);
                }
                _ if is_word(token) => {
                    let names = if self.has_defined() { &mut module.defined } else { &mut module.words };
                    names.insert(token.to_owned());
                    let mut path = vec![token.to_owned()];
                    while self.peek() == Some("::")
                        && self.tokens.get(self.at + 1).is_some_and(|next| is_word(next))
                    {
                        self.at += 2;
                        path.push(self.tokens[self.at - 1].to_owned());
                    }
                    if path.len() > 1 {
                        module.paths.insert(path);
                    }
                }
                _ => {}
            }
            is_public = false;
        }
        modules.insert(place, module);
    }

    /// True if the token that was read last is the name of a definition.
    fn has_defined(&self) -> bool {
        let before = self.tokens[..self.at - 1].strip_suffix(&["!"]).unwrap_or(&self.tokens[..self.at - 1]);
        before.last().is_some_and(|keyword| DEFINITIONS.contains(keyword))
    }

    /// The tokens up to the bracket `close`, which ends a group that has been opened.
    fn group(&mut self, close: &str) -> Vec<&'a str> {
        let open = if close == "]" { "[" } else { "(" };
        let mut depth = 1;
        let mut group = Vec::new();
        while let Some(token) = self.next() {
            depth += i32::from(token == open) - i32::from(token == close);
            if depth == 0 {
                break;
            }
            group.push(token);
        }
        group
    }

    /// Passes over the item, field or statement behind an attribute.
    fn skip_item(&mut self, place: &[String]) {
        let mut depth = 0;
        while let Some(token) = self.next() {
            match token {
                "mod" if depth == 0 => {
                    self.for_tests.push([place, &[self.peek().unwrap().to_owned()]].concat());
                }
                "{" | "(" | "[" | "<" => depth += 1,
                ")" | "]" | ">" => depth -= 1,
                "}" => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                ";" | "," if depth == 0 => return,
                _ => {}
            }
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// True if the condition of a `cfg` can be `wanted` in a build that is not for tests or models.
fn can_be(condition: &[&str], wanted: bool) -> bool {
    let mut depth = 0;
    let mut parts = condition.get(2..condition.len().saturating_sub(1)).unwrap_or_default().split(|token| {
        depth += i32::from(*token == "(") - i32::from(*token == ")");
        depth == 0 && *token == ","
    });
    match condition[0] {
        "test" | "loom" | "doctest" => !wanted,
        "not" => can_be(&condition[2..condition.len() - 1], !wanted),
        "all" | "any" if (condition[0] == "all") == wanted => parts.all(|part| can_be(part, wanted)),
        "all" | "any" => parts.any(|part| can_be(part, wanted)),
        _ => true,
    }
}

/// Adds the names that a tree of `use` brings in.
fn add_uses(tree: &[&str], prefix: &[String], is_public: bool, uses: &mut Vec<Use>) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while at < tree.len() {
        match tree[at] {
            "{" => {
                let mut depth = 0;
                let parts = tree[at + 1..tree.len() - 1].split(|token| {
                    depth += i32::from(*token == "{") - i32::from(*token == "}");
                    depth == 0 && *token == ","
                });
                parts.filter(|part| !part.is_empty()).for_each(|part| add_uses(part, &path, is_public, uses));
                return;
            }
            "as" => {
                uses.push(Use { name: tree[at + 1].to_owned(), path, is_public });
                return;
            }
            "*" => {
                uses.push(Use { name: "*".to_owned(), path, is_public });
                return;
            }
            "::" => {}
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    uses.push(Use { name: path.last().unwrap().clone(), path, is_public });
}

#[test]
fn imports_are_followed_to_the_file_that_defines_the_name() {
    let texts = [
        ("lib.rs", "pub use a::{Deep, b}; mod a; mod c; #[cfg(test)] mod tests; pub struct Root;"),
        ("a/mod.rs", "pub(crate) mod b; mod d; pub use b::Deep; pub use d::*; struct InA;"),
        (
            "a/b.rs",
            "pub struct Deep; fn f() { super::d::g(); } #[cfg(all(test, not(loom)))] mod tests { use crate::c; }",
        ),
        ("a/d.rs", "pub fn g() {} pub use super::b::Deep as Other; fn h(_: Other) {}"),
        (
            "c.rs",
            "mod inside { use super::super::a::{self, g as h}; /* */ fn f() -> crate::Deep { a::InA } }",
        ),
        ("tests.rs", "use crate::c;"),
    ];
    let imports =
        Tree::new(texts.map(|(file, text)| (file.to_owned(), text.to_owned())).into_iter()).imports();
    let shown: Vec<String> = imports
        .iter()
        .map(|(file, imported)| {
            format!("{file}: {}", imported.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(
        shown,
        ["a/b.rs: a/d.rs", "a/d.rs: a/b.rs", "a/mod.rs: ", "c.rs: a/b.rs a/d.rs a/mod.rs", "lib.rs: "]
    );
    assert_eq!(largest_circle(&imports).into_iter().collect::<Vec<_>>(), ["a/b.rs", "a/d.rs"]);
}
