//! Modules use only the modules that the table in `CONTRIBUTING.md` allows ("Who may know whom"), and no two of them
//! use each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn modules_use_only_those_above_them() {
    let layers = layers();
    for file in sources(Path::new("src")) {
        let module = top_module(&file);
        assert!(module == "lib" || layers.contains_key(&module), "{module} is not in the table");
    }
    let mut wrong = Vec::new();
    for Use { module, used, place } in uses() {
        if layers[&used] > layers[&module] {
            wrong.push(format!("{place}: {module} uses {used}"));
        }
    }
    assert!(wrong.is_empty(), "modules use others that stand below them:\n{}", wrong.join("\n"));
}

#[test]
fn no_modules_use_each_other() {
    let pairs: Vec<_> = uses().into_iter().map(|each| (each.module, each.used)).collect();
    assert_eq!(circle(&pairs), BTreeSet::new());
}

/// The modules that form circles, and those between two circles. Empty if there is no circle. In each pair, the
/// first module uses the second.
fn circle(pairs: &[(String, String)]) -> BTreeSet<&str> {
    let mut left: BTreeSet<&str> = pairs.iter().map(|(from, _)| from.as_str()).collect();
    loop {
        let within = pairs.iter().map(|(from, to)| (from.as_str(), to.as_str()));
        let within = within.filter(|(from, to)| left.contains(from) && left.contains(to));
        // A module that uses none of the others, or that none of them uses, is not part of a circle.
        let (users, targets): (BTreeSet<_>, BTreeSet<_>) = within.unzip();
        let next = &users & &targets;
        if next == left {
            return left;
        }
        left = next;
    }
}

/// That a module uses another one.
struct Use {
    module: String,
    used: String,
    /// The file and the line.
    place: String,
}

/// What each module uses of the others.
fn uses() -> Vec<Use> {
    let exports = exports();
    let mut found = Vec::new();
    for file in sources(Path::new("src")) {
        let module = top_module(&file);
        if module == "lib" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for (line, name) in names(&text) {
            let used = exports.get(name).map_or(name, String::as_str);
            // What is no module is a macro, or is in `lib.rs`.
            if used != module && module_exists(used) {
                let place = format!("{}:{line}", file.display());
                found.push(Use { module: module.clone(), used: used.into(), place });
            }
        }
    }
    found
}

/// Each module of the table and the number of its line.
fn layers() -> BTreeMap<String, usize> {
    let text = include_str!("../../CONTRIBUTING.md");
    let (_, table) = text.split_once("Who may know whom").expect("the heading of the table");
    let table = table.split("```").nth(1).expect("the table");
    let mut layers = BTreeMap::new();
    for (number, line) in table.lines().enumerate() {
        // Explanations stand in a column of their own.
        let (names, _) = line.split_once("  ").unwrap_or((line, ""));
        for name in names.split(", ").filter(|name| !name.is_empty()) {
            assert!(module_exists(name), "the table names {name}, which is no module");
            assert_eq!(layers.insert(name.into(), number), None, "{name} is there twice");
        }
    }
    layers
}

fn module_exists(name: &str) -> bool {
    let src = Path::new("src");
    src.join(name).is_dir() || src.join(name).with_extension("rs").is_file()
}

/// The names that `lib.rs` exports, and the module of each: `crate::Error` is a use of `error`.
fn exports() -> BTreeMap<String, String> {
    let text = include_str!("../../src/lib.rs");
    let mut exports = BTreeMap::new();
    for statement in text.split(';') {
        let Some((_, path)) = statement.split_once("pub use ") else { continue };
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.split(|c: char| !is_of_name(c)).filter(|name| !name.is_empty()) {
            exports.insert(name.into(), module.into());
        }
    }
    exports
}

/// All source files in a directory but those of tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// `io`, for `src/io/lock.rs` and `src/io.rs`.
fn top_module(file: &Path) -> String {
    let inside = file.strip_prefix("src").unwrap().with_extension("");
    inside.iter().next().unwrap().to_str().unwrap().into()
}

/// The names behind each `crate::`, with the numbers of their lines. Comments and what is
/// compiled for tests only are left out.
fn names(text: &str) -> Vec<(usize, &str)> {
    let mut names = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line == "#[cfg(test)]" {
            // An item at the left margin ends where one of its later lines is `}`, or with its only line.
            let item = lines.by_ref().find(|(_, line)| !line.starts_with("#[")).unwrap_or_default();
            if item.1.ends_with('{') {
                lines.by_ref().find(|(_, line)| *line == "}");
            }
            continue;
        }
        let code = line.split("//").next().unwrap_or_default();
        for (start, before) in code.match_indices("crate::") {
            let rest = &code[start + before.len()..];
            let name = rest.split(|c: char| !is_of_name(c)).next().unwrap_or_default();
            assert!(!name.is_empty(), "line {}: one `use crate::` for each module: {line}", at + 1);
            names.push((at + 1, name));
        }
    }
    names
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn names_are_found_in_code_but_not_in_tests_and_comments() {
    let text = "\
use crate::io::lock;
//! [`crate::doc`]
fn f() -> crate::Error { crate::wire::g() } // crate::comment
#[cfg(test)]
mod tests {
    use crate::test;
}
#[cfg(test)]
use crate::test;
pub(crate) use crate::last::Name;
";
    assert_eq!(names(text), [(1, "io"), (3, "Error"), (3, "wire"), (10, "last")]);
}

#[test]
fn circles_of_any_length_are_found() {
    let pairs = |texts: &[&str]| {
        let pairs = texts.iter().map(|text| text.split_once(' ').unwrap());
        pairs.map(|(from, to)| (from.to_owned(), to.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(circle(&pairs(&["a b", "a c", "b d", "c d"])), BTreeSet::new());
    assert_eq!(circle(&pairs(&["a b", "b a", "b c", "d a"])), BTreeSet::from(["a", "b"]));
    assert_eq!(circle(&pairs(&["a b", "b c", "c a", "c d"])), BTreeSet::from(["a", "b", "c"]));
}
