//! JSON wrote singles with the digits of doubles.
#![cfg(feature = "json")]

use tenarc::{Tensor, Value};

#[test]
fn json_has_the_digits_of_singles() {
    use tenarc_convert::json;

    let written = |value: &Value| {
        let mut text = Vec::new();
        json::write(&mut text, value).unwrap();
        String::from_utf8(text).unwrap()
    };
    for value in [0.1, 0.0003, -0.0, 16_777_216.0, f32::MAX, f32::MIN_POSITIVE, 1e-45, 1.0 / 3.0] {
        let text = written(&Value::F32(value));
        assert_eq!(text, format!("{value:?}"));
        let back: f32 = tenarc::from_value(json::read(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(back.to_bits(), value.to_bits());
    }
    // Rounded to a double and then to a single, its own digits are a neighbour's.
    let odd = 7.038_531e-26f32;
    let read =
        |text: &str| tenarc::from_value::<f32>(json::read(text.as_bytes()).unwrap()).unwrap();
    assert_ne!(read("7.038531e-26").to_bits(), odd.to_bits());
    assert_eq!(read(&written(&Value::F32(odd))).to_bits(), odd.to_bits());
    let tensor = tenarc::to_value(&Tensor([odd, 0.1])).unwrap();
    assert_eq!(json::read(written(&tensor).as_bytes()).unwrap(), tensor);
}
