//! Modules use only the modules that the table in `CONTRIBUTING.md` allows ("Who may know whom"), and no two of them
//! use each other. Of files, at most two use each other, as a type and what reads it may do.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use imports::{Crate, sources};

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
            wrong.push(format!("{place}, and {used} stands below {module}"));
        }
    }
    assert!(wrong.is_empty(), "modules use others that stand below them:\n{}", wrong.join("\n"));
}

#[test]
fn no_modules_use_each_other() {
    let pairs: Vec<_> = uses().into_iter().map(|each| (each.module, each.used)).collect();
    assert_eq!(circles(pairs.iter().map(|(from, to)| (&**from, &**to))), []);
}

#[test]
fn at_most_two_files_use_each_other() {
    let crates = fs::read_dir("crates").unwrap().map(|each| each.unwrap().path().join("src"));
    let mut number = 0;
    for src in crates.chain(["src".into()]) {
        number += 1;
        let files = Crate::read(&src);
        for circle in circles(files.uses()) {
            assert!(circle.len() <= 2, "{circle:#?}");
        }
    }
    assert!(number > 5);
}

/// The pages for the next owner name files where they are.
#[test]
fn pages_name_files_that_exist() {
    let pages = [include_str!("../../docs/architecture.md"), include_str!("../../CONTRIBUTING.md")];
    let mut number = 0;
    for quoted in pages.iter().flat_map(|page| page.split('`').skip(1).step_by(2)) {
        let at = Path::new(quoted);
        if at.extension().is_some_and(|end| end == "rs") && !quoted.contains([' ', '*']) {
            let inside = Path::new("src").join(at);
            assert!(inside.is_file() || at.is_file(), "there is no `{quoted}`");
            number += 1;
        }
    }
    assert!(number > 100);
}

/// Always inlining is for what a benchmark shows to need it, and the line above says which one.
#[test]
fn few_functions_are_always_inlined_and_say_why() {
    let mut number = 0;
    for file in sources(Path::new("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let mut before = "";
        for line in text.lines() {
            if line.trim() == "#[inline(always)]" {
                number += 1;
                assert!(before.trim().starts_with("// Always: "), "{}: {before}", file.display());
            }
            before = line;
        }
    }
    assert!(number <= 31, "{number}");
}

/// The circles in which things use each other, directly or through others. In each pair, the first uses the second.
fn circles<T: Ord + Copy>(pairs: impl IntoIterator<Item = (T, T)>) -> Vec<BTreeSet<T>> {
    let mut uses = BTreeMap::<T, BTreeSet<T>>::new();
    for (from, to) in pairs {
        uses.entry(from).or_default().insert(to);
    }
    let reached = |from: T| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(each) = next.pop() {
            let new = uses.get(&each).into_iter().flatten().filter(|used| reached.insert(**used));
            next.extend(new);
        }
        reached
    };
    let reached: BTreeMap<T, BTreeSet<T>> =
        uses.keys().map(|&from| (from, reached(from))).collect();
    let circles = reached.iter().map(|(from, all)| {
        let back = |to: &&T| reached.get(to).is_some_and(|all| all.contains(from));
        all.iter().filter(back).copied().collect()
    });
    let circles: BTreeSet<BTreeSet<T>> =
        circles.filter(|circle: &BTreeSet<T>| !circle.is_empty()).collect();
    circles.into_iter().collect()
}

/// That a module uses another one.
struct Use {
    module: String,
    used: String,
    /// The two files.
    place: String,
}

/// What each module uses of the others.
fn uses() -> Vec<Use> {
    let src = Crate::read(Path::new("src"));
    let modules = src.uses().into_iter().map(|(file, used)| {
        let place = format!("{} uses {}", file.display(), used.display());
        Use { module: top_module(file), used: top_module(used), place }
    });
    // `lib.rs` names all modules, and all modules may use what it defines.
    modules
        .filter(|each| each.module != each.used && each.module != "lib" && each.used != "lib")
        .collect()
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

/// `io`, for `src/io/lock.rs` and `src/io.rs`.
fn top_module(file: &Path) -> String {
    let inside = file.strip_prefix("src").unwrap().with_extension("");
    inside.iter().next().unwrap().to_str().unwrap().into()
}

#[test]
fn circles_of_any_length_are_found() {
    let found =
        |texts: &[&'static str]| circles(texts.iter().map(|text| text.split_once(' ').unwrap()));
    let circle = |members: &[&'static str]| members.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(found(&["a b", "a c", "b d", "c d"]), []);
    assert_eq!(found(&["a b", "b a", "b c", "d a"]), [circle(&["a", "b"])]);
    assert_eq!(found(&["a b", "b c", "c a", "c d"]), [circle(&["a", "b", "c"])]);
    assert_eq!(
        found(&["a b", "b a", "b c", "c d", "d c"]),
        [circle(&["a", "b"]), circle(&["c", "d"])]
    );
}
