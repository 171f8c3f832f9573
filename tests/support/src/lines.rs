//! Compares programs line by line.

/// How many lines of code in `a` are not in `b`. Empty lines and comments do not count.
pub fn changed(a: &str, b: &str) -> usize {
    let lines = |source| str::lines(source).filter(|line| is_code(line)).collect::<Vec<_>>();
    let (a, b) = (lines(a), lines(b));
    a.len() - common(&a, &b)
}

fn is_code(line: &str) -> bool {
    !line.is_empty() && !line.trim_start().starts_with("//")
}

/// The number of lines of the longest common subsequence.
fn common(a: &[&str], b: &[&str]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for line in a {
        let mut diagonal = 0;
        for (at, other) in b.iter().enumerate() {
            let next = if line == other { diagonal + 1 } else { row[at + 1].max(row[at]) };
            diagonal = std::mem::replace(&mut row[at + 1], next);
        }
    }
    row[b.len()]
}
