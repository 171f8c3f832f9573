//! The first page of the repository: its example is a program, and the listing of its file is what the command prints.

#[path = "../../../../examples/first.rs"]
mod first;
use crate::support::{Dir, run};

#[test]
fn the_example_and_the_listing_of_its_file_are_on_the_first_page() {
    let page = include_str!("../../../../README.md");
    let (_, example) = include_str!("../../../../examples/first.rs").split_once("\n\n").unwrap();
    // Only this test calls it.
    let example = example.replace("pub(crate) fn main", "fn main");
    assert!(page.contains(&format!("```rust,no_run\n{example}```")), "the example differs");

    // The example saves to the current directory. No other test is in this program.
    let dir = Dir::new();
    std::env::set_current_dir(dir.path()).unwrap();
    first::main().unwrap();
    let listing = run(&dir, &["ls", "run.tenarc"]);
    let expected = format!("```console\n$ tenarc ls run.tenarc\n{}```", listing.good());
    assert!(page.contains(&expected), "the first page does not have:\n{expected}");
}
