//! Finds the name that is most similar to a requested name, for the suggestion in an error message.

/// The number of names that are compared for one error. The limit keeps the suggestion cheap.
pub const MAX_NAMES: usize = 1000;

/// The length of the longest name that is compared, in bytes.
const MAX_LEN: usize = 256;

/// Returns the number of edits that turn one name into the other. An edit inserts, deletes or changes a character, or
/// swaps it with the next one. `None` if the names are equal, if one is longer than `MAX_LEN` bytes, or if more than a
/// third of the characters are edited: then the user hardly meant `name`.
pub fn edits(wanted: &str, name: &str) -> Option<usize> {
    if wanted.len() > MAX_LEN || name.len() > MAX_LEN {
        return None;
    }
    let wanted: Vec<char> = wanted.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let most = (wanted.len().max(3) / 3).min(wanted.len().saturating_sub(1));
    if wanted.len().abs_diff(name.len()) > most {
        return None;
    }
    // Row `y`, cell `x`: the number of edits between the first `y` characters of `name` and the first `x` of `wanted`.
    let mut table: Vec<Vec<usize>> = vec![(0..=wanted.len()).collect()];
    for (y, found) in name.iter().enumerate() {
        let above = table.get(y)?;
        let mut row = vec![y + 1];
        for (x, expected) in wanted.iter().enumerate() {
            let changed = above.get(x)? + usize::from(expected != found);
            let mut least = changed.min(above.get(x + 1)? + 1).min(row.get(x)? + 1);
            if x > 0
                && y > 0
                && wanted.get(x - 1) == Some(found)
                && name.get(y - 1) == Some(expected)
            {
                least = least.min(table.get(y - 1)?.get(x - 1)? + 1);
            }
            row.push(least);
        }
        // The smallest number of a row is never larger than that of the next row.
        if row.iter().min()? > &most {
            return None;
        }
        table.push(row);
    }
    table.last()?.last().copied().filter(|edits| (1..=most).contains(edits))
}

/// The most similar of the first [`MAX_NAMES`] names.
#[derive(Debug, Default)]
pub struct Nearest {
    looked_at: usize,
    found: Option<(usize, String)>,
}

impl Nearest {
    /// Compares one more name. Returns whether no more names will be compared.
    pub fn look_at(&mut self, wanted: &str, name: &str) -> bool {
        self.looked_at += 1;
        if let Some(edits) = edits(wanted, name)
            && self.found.as_ref().is_none_or(|(least, _)| edits < *least)
        {
            self.found = Some((edits, name.to_owned()));
        }
        self.looked_at >= MAX_NAMES
    }

    /// Returns the question whether the user meant the most similar name, as the end of an error message. The text is
    /// empty if no name is similar.
    pub fn question(self) -> String {
        self.found.map(|(_, name)| did_you_mean(&name)).unwrap_or_default()
    }
}

/// Returns the end of the message of an error that names something that does not exist.
pub fn did_you_mean(name: &str) -> String {
    format!("; did you mean `{}`?", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes when interpreted")]
    fn counts_edits_up_to_a_third() {
        for (wanted, name, expected) in [
            ("weight", "weight", None),
            ("wieght", "weight", Some(1)),
            ("wiegth", "weight", Some(2)),
            ("weigt", "weight", Some(1)),
            ("weightt", "weight", Some(1)),
            ("Weight", "weight", Some(1)),
            ("grün", "gruen", None),
            ("grün", "grun", Some(1)),
            ("bias", "weight", None),
            ("ab", "ac", Some(1)),
            ("ab", "ba", Some(1)),
            ("b", "w", None),
            ("", "w", None),
            ("w", "", None),
            ("head", "heads.0.weight", None),
        ] {
            assert_eq!(edits(wanted, name), expected, "{wanted} {name}");
        }
        let long = "a".repeat(MAX_LEN);
        assert_eq!(edits(&long, &long[1..]), Some(1));
        assert_eq!(edits(&format!("{long}a"), &long), None);
        assert_eq!(edits(&long, &format!("{long}a")), None);
    }

    #[test]
    fn looks_at_a_bounded_number_of_names() {
        let mut nearest = Nearest::default();
        let looked =
            (1..=2 * MAX_NAMES).find(|at| nearest.look_at("name", &format!("n{at}"))).unwrap();
        assert_eq!(looked, MAX_NAMES);
        assert_eq!(nearest.question(), "");
    }
}
