//! Modules use only the modules that the table in `CONTRIBUTING.md` allows ("Who may know whom").

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn modules_use_only_those_above_them() {
    let layers = layers();
    let exports = exports();
    let mut wrong = Vec::new();
    for file in sources(Path::new("src")) {
        let module = top_module(&file);
        if module == "lib" {
            continue;
        }
        let layer = layers.get(&module).unwrap_or_else(|| panic!("{module} is not in the table"));
        let text = fs::read_to_string(&file).unwrap();
        for (line, name) in used(&text) {
            let used = exports.get(name).map_or(name, String::as_str);
            // What is no module is a macro, or is in `lib.rs`.
            if layers.get(used).is_none_or(|above| above <= layer) {
                continue;
            }
            wrong.push(format!("{}:{line}: {module} uses {used}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "lower modules use higher ones:\n{}", wrong.join("\n"));
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
fn used(text: &str) -> Vec<(usize, &str)> {
    let mut used = Vec::new();
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
            used.push((at + 1, name));
        }
    }
    used
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn uses_are_found_in_code_but_not_in_tests_and_comments() {
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
    assert_eq!(used(text), [(1, "io"), (3, "Error"), (3, "wire"), (10, "last")]);
}
