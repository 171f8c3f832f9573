//! An integer between `i128::MAX` and `u128::MAX` could not become JSON or MessagePack.
#![cfg(any(feature = "json", feature = "msgpack"))]

use tenarc::Value;

const WIDE: [u128; 4] = [1 << 64, i128::MAX.cast_unsigned(), 1 << 127, u128::MAX];

#[cfg(feature = "json")]
#[test]
fn become_json_and_come_back() {
    use tenarc_convert::json;

    for wide in WIDE {
        let value = tenarc::to_value(&vec![wide]).unwrap();
        let mut text = Vec::new();
        json::write(&mut text, &value).unwrap();
        assert_eq!(text, format!("[{wide}]").as_bytes());
        let back = json::read(&text[..]).unwrap();
        assert_eq!(back, value);
        assert_eq!(tenarc::from_value::<Vec<u128>>(back).unwrap(), [wide]);
    }
    for beyond in
        ["340282366920938463463374607431768211456", "-170141183460469231731687303715884105729"]
    {
        assert!(json::read(beyond.as_bytes()).unwrap_err().to_string().contains("128 bits"));
    }
}

#[cfg(feature = "msgpack")]
#[test]
fn become_msgpack_as_other_wide_integers_do() {
    use tenarc_convert::msgpack::{self, Options};

    for wide in WIDE {
        let value = tenarc::to_value(&wide).unwrap();
        let error = msgpack::write(Vec::new(), &value).unwrap_err();
        assert!(error.to_string().contains("64 bits"), "{error}");
        let mut bytes = Vec::new();
        let options = Options::default().with_losses(true);
        let lost = msgpack::write_with(&mut bytes, &value, &options).unwrap();
        assert!(!lost.is_empty());
        assert_eq!(msgpack::read(&bytes[..]).unwrap(), Value::Text(wide.to_string()));
    }
}
