//! `show --plot` and `stats --plot`: pictures of tensors in the terminal.

use crate::support::{Dir, flat, model, run};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor};

/// Saves a map with one tensor of bytes, `a`.
fn bytes(dir: &Dir, dims: &[usize], bytes: &[u8]) {
    let tensor = DynTensor::new(DType::U8, dims, Order::C, bytes.to_vec()).unwrap();
    dir.save("a.tenarc", &flat(&[("a", tensor)]));
}

#[test]
fn a_matrix_is_a_map_of_colours() {
    let dir = Dir::new();
    bytes(&dir, &[2, 2], &[0, 1, 3, 4]);
    let shades = "\
a  u8 [2, 2]
    ░░░░
    ░░░░
▓▓▓▓████
▓▓▓▓████
0  ░▒▓█ 4
";
    assert_eq!(run(&dir, &["show", "a.tenarc", "--plot"]).good(), shades);
    let coloured =
        run(&dir, &["show", "a.tenarc", "a", "--plot", "--color=always"]).good().to_owned();
    assert!(coloured.contains("\x1b[38;5;53m\x1b[48;5;53m▀▀▀▀\x1b[38;5;"), "{coloured:?}");
    let kitty = run(&dir, &["show", "a.tenarc", "a", "--plot=kitty"]).good().to_owned();
    assert!(kitty.contains("\x1b_Ga=T,f=24,s=32,v=32,m=0;"), "{kitty:?}");
    let sixel = run(&dir, &["show", "a.tenarc", "a", "--plot=sixel"]).good().to_owned();
    assert!(sixel.contains("\x1bPq\"1;1;32;32#0;2;0;0;0"), "{sixel:?}");
}

#[test]
fn slices_images_and_curves_are_drawn() {
    let dir = Dir::new();
    bytes(&dir, &[2, 1, 3], &[255, 0, 0, 0, 0, 255]);
    let image = run(&dir, &["show", "a.tenarc", "--plot", "--color=always"]).good().to_owned();
    assert!(image.contains("\x1b[38;5;196m") && image.contains("\x1b[48;5;21m"), "{image:?}");
    // An image has no legend.
    assert_eq!(image.lines().count(), 5, "{image:?}");
    let curve = run(&dir, &["show", "a.tenarc", "a[0, 0]", "--plot"]).good().to_owned();
    assert!(curve.starts_with("u8 [3]\n     255 ") && curve.lines().count() == 9, "{curve}");
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let dir = Dir::new();
    dir.save("t.tenarc", &"a text");
    run(&dir, &["show", "t.tenarc", "--plot"]).failed(2, "there is no tensor of numbers to draw");
    dir.save("m.tenarc", &model());
    run(&dir, &["show", "m.tenarc", "--plot", "--json"]).failed(2, "cannot be used with");
    run(&dir, &["show", "m.tenarc", "nothing", "--plot"]).failed(2, "nothing");
    let nan = DynTensor::new(DType::F32, &[3], Order::C, vec![255; 12]).unwrap();
    dir.save("nan.tenarc", &flat(&[("a", nan)]));
    let nan = run(&dir, &["show", "nan.tenarc", "--plot"]).good().to_owned();
    assert_eq!(nan, "a  f32 [3]\nno finite element\n");
}

#[test]
fn histograms_have_several_lines() {
    let dir = Dir::new();
    bytes(&dir, &[6], &[0, 0, 0, 0, 1, 2]);
    let found = run(&dir, &["stats", "a.tenarc", "--plot"]).good().to_owned();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.first(), Some(&"a  u8 [6]  mean 0.5, std 0.7638, 4 zeros"));
    assert!(
        lines.get(1).is_some_and(|line| line.starts_with('█') && line.ends_with("  4")),
        "{found}"
    );
    assert_eq!(lines.len(), 10, "{found}");
    assert!(
        lines.last().is_some_and(|line| line.starts_with("0 ") && line.ends_with(" 2")),
        "{found}"
    );
}
