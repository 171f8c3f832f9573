//! Draws a histogram as bars.

use std::fmt::Write as _;

/// The height of the bars in characters.
const HEIGHT: u64 = 8;

/// Eighths of a character, from below.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns lines of this number with a bar for each count. The highest count has a bar over all lines.
fn lines(counts: &[u64], height: u64) -> impl Iterator<Item = String> {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    (0..height).rev().map(move |line| {
        let bar = |&count: &u64| {
            // Any count above zero shows at least the smallest bar.
            let eighths = (u128::from(count) * u128::from(height * 8)).div_ceil(most.into());
            let above = eighths.saturating_sub(u128::from(line) * 8).min(8);
            usize::try_from(above).ok().and_then(|above| EIGHTHS.get(above)).copied().unwrap_or(' ')
        };
        counts.iter().map(bar).collect()
    })
}

/// Returns a histogram in one line.
pub fn line(counts: &[u64]) -> String {
    if counts.is_empty() {
        "-".into()
    } else {
        format!("|{}|", lines(counts, 1).collect::<String>())
    }
}

/// Returns a histogram in several lines, with the count of the highest bar, and what the first bar starts and the last one ends
/// with.
pub fn bars(counts: &[u64], low: &str, high: &str) -> String {
    let most = counts.iter().copied().max().unwrap_or(0);
    let mut text = String::new();
    for (at, line) in lines(counts, HEIGHT).enumerate() {
        text.push_str(line.trim_end());
        if at == 0 {
            let _ = write!(text, "  {most}");
        }
        text.push('\n');
    }
    let gap = counts.len().saturating_sub(low.chars().count() + high.chars().count()).max(1);
    text.push_str(low);
    text.extend(std::iter::repeat_n(' ', gap));
    text.push_str(high);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_highest_bar_has_all_lines() {
        let text = super::bars(&[64, 32, 1, 0, 0, 0], "-1", "2.5");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["█  64", "█", "█", "█", "██", "██", "██", "██▁", "-1 2.5"]);
    }

    #[test]
    fn every_count_above_zero_shows_a_bar() {
        assert_eq!(super::line(&[0, 1, 50, 100, u64::MAX]), "| ▁▁▁█|");
        assert_eq!(super::line(&[0, 1, 4, 8]), "| ▁▄█|");
        assert_eq!(super::line(&[]), "-");
    }
}
