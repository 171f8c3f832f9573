//! Generated parts of hand-written documents, between `<!-- table: NAME -->` and `<!-- end -->`.

const END: &str = "<!-- end -->";

/// The name, if the line begins a generated part.
fn begins(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- table: ")?.strip_suffix(" -->")
}

/// Replaces every generated part of `text` by the result of `content` for its name.
pub fn fill(
    text: &str,
    content: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        let Some(name) = begins(line) else { continue };
        // Markdown needs blank lines between comments and tables.
        out += &format!("\n{}\n\n{END}\n", content(name)?.trim_end());
        loop {
            match lines.next() {
                Some(END) => break,
                Some(line) if begins(line).is_none() => {}
                _ => return Err(format!("`<!-- table: {name} -->` has no `{END}`")),
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upper(name: &str) -> Result<String, String> {
        if name == "bad" { Err("no table".to_string()) } else { Ok(name.to_uppercase()) }
    }

    #[test]
    fn what_stands_between_markers_is_replaced() {
        let text =
            "a\n<!-- table: x -->\nold\nolder\n<!-- end -->\nb\n<!-- table: y -->\n<!-- end -->\n";
        let filled = fill(text, upper).unwrap();
        let expected = "a\n<!-- table: x -->\n\nX\n\n<!-- end -->\nb\n<!-- table: y -->\n\nY\n\n<!-- end -->\n";
        assert_eq!(filled, expected);
        assert_eq!(fill(&filled, upper).unwrap(), filled);
    }

    #[test]
    fn unknown_tables_and_missing_ends_are_errors() {
        for (text, expected) in [
            ("<!-- table: bad -->\n<!-- end -->\n", "no table"),
            ("<!-- table: x -->\nold\n", "`<!-- table: x -->` has no `<!-- end -->`"),
            (
                "<!-- table: x -->\n<!-- table: y -->\n<!-- end -->\n",
                "`<!-- table: x -->` has no `<!-- end -->`",
            ),
        ] {
            assert_eq!(fill(text, upper).unwrap_err(), expected);
        }
    }
}
