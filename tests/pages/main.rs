//! Relative links in the pages lead to files and headings that exist, and the book has every page of `docs/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders of programs, not of pages.
const SKIPPED: [&str; 5] = ["target", "node_modules", ".git", "venv", "dist"];

#[test]
fn links_lead_somewhere() {
    let mut headings = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut number = 0;
    for page in pages(Path::new(".")) {
        let text = fs::read_to_string(&page).unwrap();
        for link in
            links(&text).filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        {
            number += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let to = if file.is_empty() { page.clone() } else { beside(&page, file) };
            let is_there = match heading {
                "" => to.exists(),
                _ if to.extension().is_none_or(|end| end != "md") => to.exists(),
                _ => headings.entry(to.clone()).or_insert_with(|| anchors(&to)).contains(heading),
            };
            if !is_there {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    assert!(number > 200, "{number}");
}

#[test]
fn the_book_has_every_page() {
    let summary = Path::new("docs/SUMMARY.md");
    let text = fs::read_to_string(summary).unwrap();
    let listed: Vec<PathBuf> = links(&text).map(|link| beside(summary, link)).collect();
    let once: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    let missing: Vec<PathBuf> = pages(Path::new("docs"))
        .into_iter()
        .filter(|page| page != summary && !once.contains(page))
        .collect();
    assert!(missing.is_empty(), "pages that {} does not list: {missing:?}", summary.display());
}

#[test]
fn links_of_pages_in_rustdoc_are_defined_there() {
    let module = fs::read_to_string("src/guide.rs").unwrap();
    let pages = module.split("\"../").skip(1).filter_map(|rest| rest.split('"').next());
    let mut number = 0;
    for page in pages {
        let text = fs::read_to_string(page).unwrap();
        let inline = prose(&text).find(|line| line.contains("]("));
        assert_eq!(inline, None, "{page}: it would stay as it is");
        for name in prose(&text).filter_map(definition).map(|(name, _)| name) {
            number += 1;
            assert!(module.contains(&format!("/// [{name}]: crate::")), "{page}: {name}");
        }
    }
    assert!(number > 20, "{number}");
}

/// All Markdown files in a folder and in those below it.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let path = path.strip_prefix(".").unwrap_or(&path);
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                pages.extend(self::pages(path));
            }
        } else if path.extension().is_some_and(|end| end == "md") {
            pages.push(path.to_path_buf());
        }
    }
    pages
}

/// A relative path from a page.
fn beside(page: &Path, relative: &str) -> PathBuf {
    let mut to = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(relative).components() {
        match part {
            Component::ParentDir => assert!(to.pop(), "{}: {relative}", page.display()),
            Component::CurDir => {}
            part => to.push(part),
        }
    }
    to
}

/// The lines that are not in a fenced block.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    })
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    let after = prose(text).flat_map(|line| line.split("](").skip(1));
    let inline = after.filter_map(|rest| rest.split_once(')').map(|(link, _)| link));
    inline.chain(prose(text).filter_map(definition).map(|(_, link)| link))
}

/// The name of a link and where it leads, of a line such as `[guide]: guide.md`.
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("]: ")
}

/// What the headings of a page are called in links: small letters, digits and hyphens.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(page).unwrap_or_default();
    let headings = prose(&text).filter(|line| line.starts_with('#'));
    let letters = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        heading
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    };
    headings.map(letters).collect()
}
