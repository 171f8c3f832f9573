//! Numbers of a fixed width were taken for packed numbers of variable width.

use tenarc_convert::onnx::Onnx;

/// A field of bytes of less than 128.
fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

/// A model of one tensor of this type and shape, whose elements are a field.
fn model(kind: u8, dim: u8, elements: &[u8]) -> Vec<u8> {
    let tensor = [&[1 << 3, dim, 2 << 3, kind], &bytes(8, b"w")[..], elements].concat();
    bytes(7, &bytes(5, &tensor))
}

#[test]
fn are_refused() {
    const FIXED4: u8 = 5;
    const FIXED8: u8 = 1;
    const VARINT: u8 = 0;
    let (four, eight) = ([1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8]);
    // The type, the number of elements that its bytes would make, the field, the wire type, the bytes.
    for (kind, dim, field, wire, content) in [
        (6, 4, 5, FIXED4, &four[..]),
        (6, 8, 5, FIXED8, &eight),
        (7, 4, 7, FIXED4, &four),
        (7, 8, 7, FIXED8, &eight),
        (13, 4, 11, FIXED4, &four),
        (13, 8, 11, FIXED8, &eight),
        (1, 2, 4, FIXED8, &eight),
        (11, 1, 10, VARINT, &[1]),
        (1, 1, 4, VARINT, &[1]),
        (2, 4, 9, FIXED4, &four),
    ] {
        let elements = [&[field << 3 | wire], content].concat();
        let read = Onnx::new(model(kind, dim, &elements)).and_then(|model| model.dyn_tensor("w"));
        let error = read.unwrap_err().to_string();
        assert!(error.contains("a wrong wire type"), "{kind} {field} {wire}: {error}");
    }
    // The right ones are read.
    for (kind, dim, field, wire, content) in
        [(1, 1, 4, FIXED4, &four[..]), (11, 1, 10, FIXED8, &eight), (7, 1, 7, VARINT, &[1])]
    {
        let elements = [&[field << 3 | wire], content].concat();
        Onnx::new(model(kind, dim, &elements)).unwrap().dyn_tensor("w").unwrap();
    }
}
