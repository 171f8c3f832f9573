//! Defines the tables of the documents.

use crate::build::Builds;
use crate::results::{CaseResults, Figure, Results, RowResults, Target, Unit};
use crate::units::{megabytes, milliseconds, thousands, time, times, two_digits};

/// The table, or the sentence, with that name.
pub fn table(
    results: &Results,
    others: &[Results],
    builds: &Builds,
    name: &str,
) -> Result<String, String> {
    match name {
        "run" => Ok(run(results)),
        "crates" => Ok(format!("{}.", results.crates.join(", "))),
        "derives" => derives(results),
        "files" => files(results),
        "targets" => targets(results, others),
        "build" => {
            Ok(format!("{}\n{}, profile release.", markdown(2, &builds.rows()), builds.compiler()))
        }
        "compressed-sizes" => compressed(results, &["bytes"], |stored, bytes| {
            format!("{:.1} %", stored as f64 / bytes as f64 * 100.0)
        }),
        // Bytes in a nanosecond are gigabytes in a second.
        "compressed-speeds" => compressed(results, &["save", "load"], |time, bytes| {
            two_digits(bytes as f64 / time as f64)
        }),
        case => Ok(whole(results.case(case)?)),
    }
}

/// A table in Markdown: the first `left` columns are aligned left, the others right.
fn markdown(left: usize, rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for (n, row) in rows.iter().enumerate() {
        out += &format!("| {} |\n", row.join(" | "));
        if n == 0 {
            let rules = (0..row.len()).map(|column| if column < left { "---" } else { "---:" });
            out += &format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
        }
    }
    out
}

fn strings(cells: &[&str]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

/// A sentence that says on which machine, when and how the results were measured.
fn run(results: &Results) -> String {
    let (least, most) = results.rounds;
    // The version without the commit.
    let rustc = results.machine.rustc.split(" (").next().unwrap_or_default();
    format!(
        "{}, {rustc}; {}. Medians of {least} to {most} rounds.",
        results.machine.describe(),
        results.date
    )
}

/// The cell in bold, if its value is the least of those that it is compared with, or less than 1 % more, which a
/// measurement cannot tell.
fn bold_if_best(
    cell: String,
    value: Option<u64>,
    all: impl Iterator<Item = Option<u64>>,
) -> String {
    let is_best = value.zip(all.flatten().min()).is_some_and(|(it, best)| it * 100 < best * 101);
    if is_best { format!("**{cell}**") } else { cell }
}

/// Results with plain derives: one row for each kind of data. It says which form of each peer is used.
fn derives(results: &Results) -> Result<String, String> {
    const PEERS: [(&str, &str, &str); 7] = [
        ("tenarc, rows", "tenarc", "plain"),
        ("tenarc, columns", "tenarc", "columns"),
        ("cbor4ii", "cbor4ii", "plain"),
        ("rmp-serde, named", "rmp-serde named", "plain"),
        ("bincode 1 \\*", "bincode 1", "plain"),
        ("bitcode \\*", "bitcode", "native"),
        ("rkyv \\*", "rkyv", "native"),
    ];
    // With the form of tenarc's rows. A model has no columns: its arrays are in `Tensor`s.
    const ROWS: [(&str, &str, &str); 6] = [
        ("10,000 log lines", "log", "plain"),
        ("125,000 triangles", "mesh", "plain"),
        ("save data of 500 players", "savedata", "plain"),
        ("1,000 game updates", "updates", "plain"),
        ("10,000 × 256 floats", "records", "plain"),
        ("a model of 11 MB", "model-10mb", "Tensor"),
    ];
    // The cells have these numbers, separated by slashes.
    let table = |numbers: &[&str], text: fn(u64) -> String| {
        let heads = PEERS.map(|(head, ..)| head.to_string());
        let mut table = vec![std::iter::once(String::new()).chain(heads).collect()];
        for (label, case, rows) in ROWS {
            let case = results.case(case)?;
            let mut peers = Vec::new();
            for (_, peer, form) in PEERS {
                peers.push(match (peer, form) {
                    ("tenarc", "plain") => Some(case.row(peer, rows)?),
                    ("tenarc", _) if rows != "plain" => None,
                    _ => Some(case.row(peer, form)?),
                });
            }
            let cell = |row: &RowResults| {
                let number = |what: &&str| {
                    let all = peers.iter().map(|row| row.and_then(|row| row.value(what)));
                    let value = row.value(what);
                    bold_if_best(value.map_or_else(|| "–".to_string(), text), value, all)
                };
                numbers.iter().map(number).collect::<Vec<_>>().join(" / ")
            };
            let cells = peers.iter().map(|row| row.map(cell).unwrap_or_default());
            table.push(std::iter::once(label.to_string()).chain(cells).collect());
        }
        Ok::<_, String>(markdown(1, &table))
    };
    let times = table(&["encode", "decode"], milliseconds)?;
    let sizes = table(&["bytes"], megabytes)?;
    Ok(format!(
        "{times}\nMilliseconds to encode / to decode to owned values. \\* not self-describing: only the same Rust \
         types can read it.\n{}\n\n{sizes}\nThe sizes of the messages. Bold: the best of its row.",
        run(results)
    ))
}

/// What the run should show, and whether it did.
///
/// Fails if a target of another profile is not among those of `results`.
fn targets(results: &Results, others: &[Results]) -> Result<String, String> {
    for Results { profile, targets, .. } in others {
        let new = targets.iter().find(|it| !results.targets.iter().any(|one| one.is_same(it)));
        if let Some(Target { case, text, .. }) = new {
            return Err(format!("only {profile} has the target {case} {text}"));
        }
    }
    let mut head = strings(&["case", "target", "bound", &results.profile]);
    head.extend(others.iter().map(|other| other.profile.clone()));
    head.push(String::new());
    let mut table = vec![head];
    for target in &results.targets {
        let mut profiles = vec![(&*results.profile, target.measured)];
        for other in others {
            let same = other.targets.iter().find(|it| it.is_same(target));
            profiles.push((&other.profile, same.and_then(|it| it.measured)));
        }
        let cell = |&(_, measured): &(&str, Option<f64>)| match measured {
            Some(value) => format!("{} {}", times(value), target.unit),
            None => String::new(),
        };
        let cells: Vec<String> = profiles.iter().map(cell).collect();
        let verdict = target.verdict_on(target.that_counts(&profiles)).text().to_string();
        let texts = [target.case.clone(), target.text.clone(), target.limit()];
        let texts = texts.into_iter().chain(cells);
        // Text such as `Vec<f32>` is not HTML.
        let texts = texts.map(|text| text.replace('<', "&lt;"));
        table.push(texts.chain([verdict]).collect());
    }
    Ok(markdown(2, &table))
}

/// Results with files: one row for each operation. It says which form of each peer is used.
fn files(results: &Results) -> Result<String, String> {
    const PEERS: [&str; 7] =
        ["tenarc", "safetensors", "Arrow IPC", "rkyv", "burnpack", "bincode 1", "npz"];
    let opened = [Some(""), Some(""), Some(""), None, Some("unread"), None, None];
    let tensors = Some("tensors only");
    let sizes = [Some(""), tensors, tensors, Some("native"), tensors, Some("bytes"), tensors];
    let rows = [
        (
            "save, not synced",
            ("save", "save"),
            [
                Some("checksums"),
                Some(""),
                Some(""),
                Some("native"),
                Some(""),
                Some("bytes"),
                Some(""),
            ],
        ),
        (
            "load",
            ("load", "load"),
            [
                Some("checksums"),
                Some(""),
                Some(""),
                Some("mapped"),
                Some(""),
                Some("bytes"),
                Some(""),
            ],
        ),
        ("map, and view one tensor of 120", ("open-view", "120 in 200 MB"), opened),
        ("the same of 10,000", ("open-view", "10,000 in 200 MB"), opened),
        (
            "open, and tell dtype and shape of one of 120",
            ("open-describe", "120 in 200 MB"),
            opened,
        ),
        ("bytes beyond the floats", ("size-model", "bytes"), sizes),
    ];
    let mut table = vec![std::iter::once("").chain(PEERS).map(str::to_string).collect()];
    for (label, (case, column), forms) in rows {
        let case = results.case(case)?;
        let figures = PEERS.into_iter().zip(forms).map(|(peer, form)| {
            form.map(|form| case.row(peer, form)).transpose().map(|row| row?.figure(column))
        });
        let figures = figures.collect::<Result<Vec<_>, String>>()?;
        let compared = figures.iter().map(|figure| figure.map(Figure::compared));
        let cells = figures.iter().map(|figure| {
            let cell = figure.map(|figure| match figure.unit {
                Unit::Nanoseconds => time(figure.median),
                Unit::Bytes => over(figure),
            });
            bold_if_best(cell.unwrap_or_default(), figure.map(Figure::compared), compared.clone())
        });
        table.push(std::iter::once(label.to_string()).chain(cells).collect());
    }
    Ok(markdown(1, &table))
}

/// The kinds of data that are compressed: their names here, and in the names of cases.
const COMPRESSED: [(&str, &str); 6] = [
    ("bf16, MiniLM", "bf16-minilm"),
    ("bf16, noise", "bf16-noise"),
    ("f32, MiniLM", "f32-minilm"),
    ("f32, noise", "f32-noise"),
    ("Adam, first", "first"),
    ("Adam, second", "second"),
];

/// One row for each compressor, and one column for each kind of data. The cells have these numbers, separated by slashes.
/// `text` gets a number and the bytes that were compressed.
fn compressed(
    results: &Results,
    numbers: &[&str],
    text: fn(u64, u64) -> String,
) -> Result<String, String> {
    let kinds = COMPRESSED.iter().map(|(_, name)| {
        let case = results.case(&format!("compress-{name}"))?;
        let python = results.case(&format!("compress-{name}-python"))?;
        let bytes = case.row("floor", "")?.bytes.ok_or("the data has no size")?;
        let is_compressor = |row: &&RowResults| row.peer != "floor" && row.form != "raw";
        Ok((case.rows.iter().chain(&python.rows).filter(is_compressor).collect(), bytes))
    });
    let kinds: Vec<(Vec<&RowResults>, u64)> = kinds.collect::<Result<_, String>>()?;
    let names = COMPRESSED.iter().map(|(name, _)| (*name).to_string());
    let mut table = vec![strings(&["", ""]).into_iter().chain(names).collect::<Vec<_>>()];
    for (at, row) in kinds.first().map(|(rows, _)| rows).into_iter().flatten().enumerate() {
        let mut cells = strings(&[&row.peer, &row.form]);
        for (rows, bytes) in &kinds {
            let row = rows.get(at).ok_or("a row is missing")?;
            let number = |what: &&str| {
                let value = row.value(what).ok_or_else(|| format!("{what} was not measured"))?;
                let all = rows.iter().map(|row| row.value(what));
                Ok(bold_if_best(text(value, *bytes), Some(value), all))
            };
            let numbers = numbers.iter().map(number).collect::<Result<Vec<_>, String>>()?;
            cells.push(numbers.join(" / "));
        }
        table.push(cells);
    }
    Ok(format!("{}\nBold: the best of its column.", markdown(2, &table)))
}

/// All results of a case.
fn whole(case: &CaseResults) -> String {
    let columns = case.columns();
    let is_sized = case.rows.iter().any(|row| row.bytes.is_some());
    let mut head = strings(&["peer", "form"]);
    head.extend(is_sized.then(|| "bytes".to_string()));
    for column in &columns {
        let figures = case.rows.iter().filter_map(|row| row.figure(column));
        let mut units = figures.map(|figure| figure.unit);
        let over = if units.any(|unit| unit == Unit::Bytes) { "beyond it" } else { "× baseline" };
        head.extend([column.to_string(), over.to_string()]);
    }
    // What is not a format takes part in no comparison.
    let is_format = |row: &RowResults| !["floor", "memcpy", "clone"].contains(&&*row.peer);
    let mut table = vec![head];
    for row in &case.rows {
        let peer = if row.peer == "floor" { "baseline" } else { &row.peer };
        // In backticks, because a form may be a type such as `Vec<f32>`.
        let form = if row.form.is_empty() { String::new() } else { format!("`{}`", row.form) };
        let mut cells = strings(&[peer, &form]);
        cells.extend(is_sized.then(|| row.bytes.map(thousands).unwrap_or_default()));
        for column in &columns {
            let figure = row.figure(column);
            let compared = |row: &RowResults| {
                row.figure(column).filter(|_| is_format(row)).map(Figure::compared)
            };
            let text = figure.map(value).unwrap_or_default();
            cells.push(bold_if_best(text, compared(row), case.rows.iter().map(compared)));
            cells.push(figure.map(over).unwrap_or_default());
        }
        table.push(cells);
    }
    let table = markdown(2, &table);
    format!("{}. Baseline: {}. Bold: the best of its column.\n\n{table}", case.title, case.floor)
}

fn value(figure: &Figure) -> String {
    match figure.unit {
        Unit::Nanoseconds => time(figure.median),
        Unit::Bytes => thousands(figure.median),
    }
}

/// The comparison with the floor: a factor for times, a difference for sizes.
fn over(figure: &Figure) -> String {
    let Some(ratio) = figure.over_floor() else { return String::new() };
    match figure.unit {
        Unit::Nanoseconds => times(ratio),
        Unit::Bytes => format!("{:.3} %", (ratio - 1.0) * 100.0),
    }
}
