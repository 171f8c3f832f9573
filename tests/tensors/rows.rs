//! Vectors of plain structs as tensors of rows.

use bytemuck::{Pod, Zeroable};
use ndarray::{Array2, Array3, ArrayD, ShapeBuilder, array};
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::{DynTensor, Tensor};

use super::support::{assert_fails, assert_reads, encode, hex, unhex};

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Triangle {
    normal: [f32; 3],
    corners: [[f32; 3]; 3],
}

fn triangle(start: usize) -> Triangle {
    let corner = |at: usize| [at as f32, at as f32 + 0.25, at as f32 + 0.5];
    Triangle {
        normal: corner(start),
        corners: [corner(start + 1), corner(start + 2), corner(start + 3)],
    }
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
#[serde(transparent)]
struct Mesh(#[serde(with = "tenarc::tensor::Rows::<f32>")] Vec<Triangle>);

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Edge {
    from: u16,
    to: u16,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
#[serde(transparent)]
struct Edges(#[serde(with = "tenarc::tensor::Rows::<u16>")] Vec<Edge>);

#[test]
fn structs_round_trip_as_rows() {
    for count in [0, 1, 7, 5000] {
        let mesh = Mesh((0..count).map(triangle).collect());
        let bytes = tenarc::to_vec(&mesh).unwrap();
        assert_reads(&bytes, &mesh);
        let mut written = Vec::new();
        tenarc::to_writer(&mut written, &mesh).unwrap();
        assert_eq!(written, bytes);
        let tensor: Tensor<DynTensor> = tenarc::from_slice(&bytes).unwrap();
        assert_eq!((tensor.shape(), tensor.order()), (&[count, 12][..], Order::C));
    }
}

#[test]
fn rows_stand_as_the_matrix_of_their_elements() {
    let edges = Edges(vec![Edge { from: 1, to: 2 }, Edge { from: 3, to: 0x0405 }]);
    let bytes = tenarc::to_vec(&edges).unwrap();
    assert_eq!(hex(&bytes), hex(&unhex("d828 82 820202 d845 48 0100 0200 0300 0504")));
    assert_reads(&bytes, &Tensor(array![[1u16, 2], [3, 0x0405]]));
    assert_reads(&encode(&array![[1u16, 2], [3, 0x0405]]), &edges);
    let none = tenarc::to_vec(&Edges(vec![])).unwrap();
    assert_eq!(hex(&none), hex(&unhex("da54454e53 84 63753136 820002 6143 40")));
}

#[test]
fn rows_of_any_shape_that_are_as_long_are_read() {
    let mesh = Mesh((0..5).map(triangle).collect());
    let flat: Vec<f32> = bytemuck::cast_slice(&mesh.0).to_vec();
    for shape in [&[5, 12][..], &[5, 4, 3], &[5, 1, 2, 6]] {
        let array = ArrayD::from_shape_vec(shape, flat.clone()).unwrap();
        assert_reads(&encode(&array), &mesh);
    }
    let pairs = vec![Edge { from: 1, to: 2 }, Edge { from: 3, to: 4 }];
    let big_endian = unhex("d828 82 820202 d841 48 0001 0002 0003 0004");
    assert_reads(&big_endian, &Edges(pairs.clone()));
    let chunked = unhex("d828 82 820202 d845 5f 43 010002 45 0003000400 ff");
    assert_reads(&chunked, &Edges(pairs.clone()));
    let classical = unhex("d828 82 820202 84 01020304");
    assert_reads(&classical, &Edges(pairs));
}

#[test]
fn rows_of_another_length_are_refused() {
    let said = &["rows of 12 elements"];
    assert_fails::<Mesh>(&encode(&Array2::<f32>::zeros((3, 11))), said);
    assert_fails::<Mesh>(&encode(&Array2::<f32>::zeros((3, 13))), said);
    assert_fails::<Mesh>(&encode(&Array2::<f32>::zeros((6, 6))), said);
    assert_fails::<Mesh>(&encode(&Array2::<f32>::zeros((1, 36))), said);
    assert_fails::<Mesh>(&encode(&Array3::<f32>::zeros((3, 4, 4))), said);
    // Nothing tells where one row ends.
    assert_fails::<Mesh>(&encode(&ndarray::Array1::<f32>::zeros(24)), said);
    assert_fails::<Mesh>(&encode(&ndarray::arr0(1.0f32)), said);
    assert_fails::<Mesh>(&encode(&Array2::<f32>::zeros((3, 0))), said);
}

#[test]
fn column_major_rows_are_refused() {
    let column_major = Array2::<f32>::zeros((3, 12).f());
    assert_fails::<Mesh>(&encode(&column_major), &["row-major"]);
}

#[test]
fn another_dtype_is_an_error_that_names_both() {
    let said = &["expected a tensor of f32", "found one of f64"];
    assert_fails::<Mesh>(&encode(&Array2::<f64>::zeros((3, 12))), said);
    assert_fails::<Mesh>(&encode(&Array2::<i32>::zeros((3, 12))), &["f32", "i32"]);
    let large = encode(&Array2::<i32>::zeros((3000, 12)));
    assert!(tenarc::from_reader::<_, Mesh>(&*large).is_err());
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Scene {
    name: String,
    #[serde(with = "tenarc::tensor::Rows::<f32>")]
    triangles: Vec<Triangle>,
    #[serde(with = "tenarc::tensor::Rows::<u16>")]
    edges: Vec<Edge>,
}

#[test]
fn other_formats_carry_rows() {
    let scene = Scene {
        name: "scene".into(),
        triangles: (0..3).map(triangle).collect(),
        edges: vec![Edge { from: 7, to: 8 }],
    };
    let text = serde_json::to_string(&scene).unwrap();
    assert!(text.contains(r#""edges":{"dtype":"u16","shape":[1,2],"data":[7,8]}"#), "{text}");
    assert_eq!(serde_json::from_str::<Scene>(&text).unwrap(), scene);
    let bytes = bincode::serialize(&scene).unwrap();
    assert_eq!(bincode::deserialize::<Scene>(&bytes).unwrap(), scene);
    let value = tenarc::to_value(&scene).unwrap();
    assert_eq!(tenarc::from_value::<Scene>(value).unwrap(), scene);
}
