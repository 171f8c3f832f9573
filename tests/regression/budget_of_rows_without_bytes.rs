//! Rows that take no bytes of input cost memory once. The elements of each byte string that was read after them took the same
//! memory again, until small messages were refused.

type Value = (Vec<()>, Vec<Vec<u16>>);

/// A million units as columns, then arrays of numbers that are byte strings.
#[test]
fn units_are_paid_for_once() {
    const GROUPS: u8 = 16;
    const ROWS: u32 = 1 << 16;
    const ARRAYS: u8 = 40;

    let mut message = b"\x82\xdaTCOL\x98".to_vec();
    message.push(2 * GROUPS);
    for _ in 0..GROUPS {
        message.push(0x1a);
        message.extend_from_slice(&ROWS.to_be_bytes());
        message.extend_from_slice(b"\x81dunit");
    }
    message.extend_from_slice(&[0x98, ARRAYS]);
    for number in 0..ARRAYS {
        message.extend_from_slice(&[0x42, number, 7]);
    }
    let expected: Vec<_> = (0..ARRAYS).map(|number| vec![u16::from(number), 7]).collect();
    let expected = (vec![(); ROWS as usize * usize::from(GROUPS)], expected);
    assert!(tenarc::from_slice::<Value>(&message).unwrap() == expected);
    assert!(tenarc::from_reader::<_, Value>(&*message).unwrap() == expected);
}
