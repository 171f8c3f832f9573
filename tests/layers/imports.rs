//! Which source files of a crate use which. Paths are read as the compiler reads them, as far as files go: through `crate`,
//! `super`, `self`, child modules, and names that another module exports. Macros of other files, trait methods and methods of
//! types are not seen: who calls a method need not import the file that it is in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module or an item in it: the names behind `crate::`.
type Names = Vec<String>;

/// The source files of a crate.
pub struct Crate {
    files: BTreeMap<Names, File>,
}

struct File {
    path: PathBuf,
    /// What it imports for itself.
    imports: Vec<Import>,
    /// What it imports for others too.
    exports: Vec<Import>,
    /// Its paths outside of imports.
    paths: Vec<Names>,
}

struct Import {
    path: Names,
    name: String,
}

impl Crate {
    /// Reads the files in a directory `src`.
    pub fn read(src: &Path) -> Self {
        let mut files = BTreeMap::new();
        for path in sources(src) {
            let mut module: Names =
                path.strip_prefix(src).unwrap().with_extension("").iter().map(text_of).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                module.pop();
            }
            let text = fs::read_to_string(&path).unwrap();
            files.insert(module, File::of(path, &text));
        }
        Self { files }
    }

    /// What each file uses of the others.
    pub fn uses(&self) -> BTreeSet<(&Path, &Path)> {
        let mut uses = BTreeSet::new();
        for (module, file) in &self.files {
            let paths = file.imports.iter().map(|import| &import.path).chain(&file.paths);
            for used in paths.filter_map(|path| self.file_of(module, path)) {
                if used != file.path {
                    uses.insert((&*file.path, used));
                }
            }
        }
        uses
    }

    /// The file with what a path of a module leads to. `None` if it leads out of the crate.
    fn file_of(&self, module: &Names, path: &Names) -> Option<&Path> {
        let names = self.absolute(module, path)?;
        self.find(&names, 0)
    }

    fn find(&self, names: &[String], followed: usize) -> Option<&Path> {
        let len = (0..=names.len()).rev().find(|&len| self.files.contains_key(&names[..len]))?;
        let (module, file) = self.files.get_key_value(&names[..len])?;
        if let Some(name) = names.get(len)
            && let Some(export) = file.exports.iter().find(|export| export.name == *name)
            && followed < 8
            && let Some(mut real) = self.absolute(module, &export.path)
        {
            real.extend_from_slice(&names[len + 1..]);
            return self.find(&real, followed + 1);
        }
        Some(&file.path)
    }

    /// A path of a module as one from the root of the crate.
    fn absolute(&self, module: &Names, path: &Names) -> Option<Names> {
        let (first, mut rest) = path.split_first()?;
        let mut names = match first.as_str() {
            "crate" => Names::new(),
            "self" => module.clone(),
            "super" => {
                let mut names = module.clone();
                names.pop();
                while let Some(("super", more)) = rest.split_first().map(|(f, m)| (f.as_str(), m)) {
                    names.pop();
                    rest = more;
                }
                names
            }
            child => {
                let mut names = module.clone();
                names.push(child.into());
                if !self.files.contains_key(&names) {
                    let file = &self.files[module];
                    let mut all = file.imports.iter().chain(&file.exports);
                    // A module that was imported. A name of anything else says nothing more than its import.
                    let import = all.find(|import| import.name == child && import.path != *path)?;
                    names = self.absolute(module, &import.path)?;
                    if !self.files.contains_key(&names) {
                        return None;
                    }
                }
                names
            }
        };
        names.extend(rest.iter().filter(|name| *name != "self").cloned());
        Some(names)
    }
}

impl File {
    fn of(path: PathBuf, text: &str) -> Self {
        let code = code(text);
        let (mut imports, mut exports, mut rest) = (Vec::new(), Vec::new(), String::new());
        let mut from = 0;
        while let Some(at) = code[from..].find("use ").map(|at| from + at) {
            let before = code[..at].trim_end();
            let is_import = !code[..at].ends_with(is_of_name);
            rest.push_str(&code[from..at]);
            from = at + "use ".len();
            if !is_import {
                continue;
            }
            let end = code[from..].find(';').map_or(code.len(), |end| from + end);
            let is_pub =
                before.ends_with("pub") || before.ends_with(')') && before.contains("pub(");
            let to = if is_pub { &mut exports } else { &mut imports };
            expand(&code[from..end], &[], to);
            from = end;
        }
        rest.push_str(&code[from..]);
        Self { path, imports, exports, paths: paths(&rest) }
    }
}

/// The paths of an import: those of `a::{b, c as d}` are `a::b` and `a::c`.
fn expand(tree: &str, before: &[String], to: &mut Vec<Import>) {
    let (path, group) = match tree.split_once('{') {
        Some((path, group)) => {
            (path, Some(group.rsplit_once('}').map_or(group, |(group, _)| group)))
        }
        None => (tree, None),
    };
    let (path, alias) = path.split_once(" as ").map_or((path, None), |(p, a)| (p, Some(a.trim())));
    let mut names = before.to_vec();
    names.extend(path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(String::from));
    let Some(group) = group else {
        let name = alias.map_or_else(|| names.last().cloned().unwrap_or_default(), String::from);
        to.push(Import { path: names, name });
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[start..at].trim().is_empty() {
                    expand(&group[start..at], &names, to);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// All paths of at least two names.
fn paths(code: &str) -> Vec<Names> {
    let words = code.split(|c: char| !is_of_name(c) && c != ':');
    let paths = words.filter(|word| word.contains("::"));
    let names = |path: &str| -> Names {
        path.split("::").filter(|name| !name.is_empty()).map(String::from).collect()
    };
    paths.map(|path| names(path.trim_start_matches("::"))).filter(|path| path.len() > 1).collect()
}

/// The code of a file, without what is compiled for tests only, comments, and the content of strings.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start() == "#[cfg(test)]" {
            // An item ends where one of its later lines is `}` with the same indent, or with its only line.
            let indent = &line[..line.len() - line.trim_start().len()];
            let item = lines.by_ref().find(|line| !line.trim_start().starts_with("#["));
            if item.is_some_and(|item| item.ends_with('{')) {
                lines.by_ref().find(|line| line.strip_prefix(indent) == Some("}"));
            }
            continue;
        }
        let mut chars = line.chars().peekable();
        let mut in_string = false;
        while let Some(c) = chars.next() {
            match c {
                '\\' if in_string => drop(chars.next()),
                '"' => in_string = !in_string,
                _ if in_string => {}
                '/' if chars.peek() == Some(&'/') => break,
                // A quote as a character.
                '\'' if chars.peek() == Some(&'"') => drop(chars.next()),
                c => code.push(c),
            }
        }
        code.push('\n');
    }
    code
}

/// All source files in a directory but those of tests.
pub fn sources(directory: &Path) -> Vec<PathBuf> {
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

fn text_of(name: &std::ffi::OsStr) -> String {
    name.to_str().unwrap().into()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn paths_lead_to_files() {
    let file = |path: &str, text| File::of(path.into(), text);
    let names = |path: &str| path.split("::").map(String::from).collect::<Names>();
    let files = [
        (Names::new(), file("lib", "pub mod a;\npub use b::deep::{Deep as Renamed, Other};")),
        (names("a"), file("a", "use crate::{Renamed, b::{self, g}};\nfn f() { b::deep::h(); }")),
        (names("b"), file("b", "pub mod deep; // use crate::a;\nconst T: &str = \"crate::a::x\";")),
        (
            names("b::deep"),
            file(
                "b/deep",
                "use super::super::a::f;\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n",
            ),
        ),
    ];
    let all = Crate { files: files.into() };
    let uses: Vec<_> = all.uses().into_iter().collect();
    let expected = [("a", "b"), ("a", "b/deep"), ("b/deep", "a")];
    assert_eq!(uses, expected.map(|(from, to)| (Path::new(from), Path::new(to))));
}
