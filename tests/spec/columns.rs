//! The worked examples of columns in `SPEC.md`, section 7, are read from the page itself.

use serde::Deserialize;
use tenarc::Value;

/// The bytes of the examples, in the order of the page.
fn examples() -> Vec<Vec<u8>> {
    let page = include_str!("../../SPEC.md");
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            is_inside = false;
            continue;
        };
        // Two spaces separate the bytes from what they mean.
        let bytes = line.trim_start().split("  ").next().unwrap_or_default();
        if bytes == "da 54434f4c" || bytes == "da 54545950" {
            found.push(Vec::new());
            is_inside = true;
        }
        if let (true, Some(example)) = (is_inside, found.last_mut()) {
            let digits: String = bytes.split(' ').collect();
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            example.extend((0..digits.len()).step_by(2).map(byte));
        }
    }
    found
}

#[derive(Deserialize, PartialEq, Debug)]
struct Tagged {
    id: u8,
    tag: String,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Scored {
    score: Option<f32>,
    #[serde(default)]
    note: Option<u8>,
    tags: Vec<u8>,
    kind: Kind,
}

#[derive(Deserialize, PartialEq, Debug)]
enum Kind {
    A,
    B(u8),
}

#[test]
fn examples_of_columns() {
    let [date, dates, tagged, scored, arrays] = &examples()[..] else { panic!("five examples") };
    let tag = |id, tag: &str| Tagged { id, tag: tag.to_owned() };
    let rows: Vec<Tagged> = tenarc::from_slice(tagged).unwrap();
    assert_eq!(rows, [tag(7, "ab"), tag(9, "c")]);

    let rows: Vec<Scored> = tenarc::from_slice(scored).unwrap();
    let first = Scored { score: Some(1.5), note: None, tags: vec![1], kind: Kind::A };
    let second = Scored { score: None, note: Some(5), tags: vec![2, 3], kind: Kind::B(7) };
    assert_eq!(rows, [first, second]);
    let value: Value = tenarc::from_slice(scored).unwrap();
    let shown = r#"[{"score": 1.5_2, "tags": [1], "kind": "A"}, {"score": null, "note": 5, "tags": [2, 3], "kind": {"B": 7}}]"#;
    assert_eq!(value.to_string(), shown);

    let rows: Vec<([u8; 2], Vec<u8>, &str)> = tenarc::from_slice(arrays).unwrap();
    let expected = [
        ([1, 2], vec![], "yes"),
        ([3, 4], vec![7, 8], "no"),
        ([5, 6], vec![9], "yes"),
        ([1, 2], vec![3, 4, 5], "yes"),
    ];
    assert_eq!(rows, expected);

    let day = 20_783;
    assert_eq!(tenarc::from_slice::<u16>(date).unwrap(), day);
    assert_eq!(tenarc::from_slice::<Vec<u16>>(dates).unwrap(), [day]);
}
