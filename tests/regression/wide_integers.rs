//! An integer between `i128::MAX` and `u128::MAX` could not become JSON or MessagePack, and stood as a
//! tagged byte string in paths and texts where smaller integers are numbers.

use tenarc::Value;

const WIDE: [u128; 4] = [1 << 64, i128::MAX.cast_unsigned(), 1 << 127, u128::MAX];

#[test]
fn are_shown_as_numbers() {
    for wide in WIDE {
        assert_eq!(tenarc::to_value(&wide).unwrap().to_string(), wide.to_string());
    }
    let bignum = |tag, len| Value::Tag(tag, Box::new(Value::Bytes(vec![0xff; len])));
    assert_eq!(bignum(3, 16).to_string(), "-340282366920938463463374607431768211456");
    assert_eq!(bignum(2, 17).to_string(), format!("2(h'{}')", "ff".repeat(17)));
}

#[test]
fn a_big_integer_holds_bytes() {
    for tag in [2, 3] {
        let wrong = Value::Tag(tag, Box::new(Value::Text("7".into())));
        let error = tenarc::to_vec(&wrong).unwrap_err().to_string();
        assert!(error.contains("big integer"), "{error}");
        let error = tenarc::OArchive::new(Vec::new()).unwrap().save(&wrong).unwrap_err();
        assert!(error.to_string().contains("big integer"), "{error}");
    }
}
