//! GGUF files are read by the same builder, with the tensors that candle's own loader reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::quantized::{GgmlDType, QTensor, gguf_file};
use candle_core::{DType, Device, Tensor};
use candle_nn::VarMap;
use tenarc::named::Match;
use tenarc::tensor::Order;
use tenarc::{Archive, DynTensor, Map};
use tenarc_candle::{CandleTensor, Weights};
use tenarc_convert::{Format, Options, gguf};

const KINDS: [GgmlDType; 13] = [
    GgmlDType::F32,
    GgmlDType::F16,
    GgmlDType::BF16,
    GgmlDType::Q4_0,
    GgmlDType::Q4_1,
    GgmlDType::Q5_0,
    GgmlDType::Q5_1,
    GgmlDType::Q8_0,
    GgmlDType::Q2K,
    GgmlDType::Q3K,
    GgmlDType::Q4K,
    GgmlDType::Q5K,
    GgmlDType::Q6K,
];

/// A file with a tensor of each type that candle reads, which candle writes.
fn saved(dir: &Path) -> PathBuf {
    let numbers: Vec<f32> = (0..3 * 512u16).map(|i| (f32::from(i) * 12.9898).sin() * 3.0).collect();
    let tensor = Tensor::from_vec(numbers, (3, 512), &Device::Cpu).unwrap();
    let tensors: Vec<(String, QTensor)> = KINDS
        .iter()
        .map(|kind| (format!("blk.0.{kind:?}"), QTensor::quantize(&tensor, *kind).unwrap()))
        .collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (&**name, tensor)).collect();
    let path = dir.join("model.gguf");
    let architecture = gguf_file::Value::String("llama".to_owned());
    let metadata = [("general.architecture", &architecture)];
    gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &tensors).unwrap();
    path
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    assert_eq!(tensor.dtype(), DType::F32);
    let numbers = tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    numbers.into_iter().map(f32::to_bits).collect()
}

#[test]
fn the_builder_gives_what_candles_own_reader_gives() {
    let dir = tempfile::tempdir().unwrap();
    let path = saved(dir.path());
    let archive = dir.path().join("model.tenarc");
    Format::Gguf.to_archive(&path, &archive, &Options::default()).unwrap();
    // SAFETY: nobody changes the file.
    #[allow(unsafe_code)]
    let map = unsafe { Map::open(&archive) }.unwrap();
    let sources = [
        Weights::open_gguf(&path).unwrap(),
        // Also after conversion.
        Weights::open(&archive).unwrap(),
        Weights::from_map(map).unwrap(),
    ];
    let mut file = File::open(&path).unwrap();
    let content = gguf_file::Content::read(&mut file).unwrap();
    for weights in sources {
        let vb = weights.var_builder(DType::F32, &Device::Cpu).pp("blk").pp(0);
        for kind in KINDS {
            let name = format!("{kind:?}");
            let theirs = content.tensor(&mut file, &format!("blk.0.{name}"), &Device::Cpu).unwrap();
            assert_eq!(theirs.dtype(), kind);
            let theirs = theirs.dequantize(&Device::Cpu).unwrap();
            let ours = vb.get((3, 512), &name).unwrap();
            assert_eq!(bits(&ours), bits(&theirs), "{name}");
            // The other way gives other dtypes, too.
            let half = vb.clone().set_dtype(DType::BF16).get((3, 512), &name).unwrap();
            let theirs = theirs.to_dtype(DType::BF16).unwrap();
            let both = [half, theirs].map(|tensor| bits(&tensor.to_dtype(DType::F32).unwrap()));
            assert_eq!(both[0], both[1]);
        }
    }
}

#[test]
fn variables_are_loaded_from_them() {
    let dir = tempfile::tempdir().unwrap();
    let weights = Weights::open_gguf(saved(dir.path())).unwrap().at("blk.0").unwrap();
    let variables = VarMap::new();
    weights.load_into(&variables, Match::Strict).unwrap();
    let vars = variables.data().lock().unwrap();
    assert_eq!(vars.len(), KINDS.len());
    assert_eq!(vars["BF16"].dtype(), DType::BF16);
    assert_eq!(bits(vars["Q4K"].as_tensor()), bits(&weights.tensor("Q4K").unwrap()));
}

fn blocks(name: &str, shape: &[usize], len: usize) -> DynTensor {
    let bytes = (0..len).map(|i| u8::try_from(i * 131 % 256).unwrap()).collect();
    DynTensor::new(tenarc::DType::from_name(name), shape, Order::C, bytes).unwrap()
}

#[test]
fn types_that_candle_does_not_have_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let tensors = [("blk.0.w", blocks("iq2_xs", &[2, 256], 148))];
    gguf::save(&path, &[("general.architecture", "llama".into())], &tensors).unwrap();
    let weights = Weights::open_gguf(&path).unwrap();
    let vb = weights.var_builder(DType::F32, &Device::Cpu);
    let error = vb.get((2, 256), "blk.0.w").unwrap_err().to_string();
    for part in ["iq2_xs", "blk.0.w", "model.gguf"] {
        assert!(error.contains(part), "no `{part}` in {error}");
    }
}

#[test]
fn blocks_that_are_not_whole_are_an_error_and_no_panic() {
    let cases = [
        ("q4_k", vec![2, 256], 2 * 144 - 1),
        ("q4_k", vec![2, 256], 0),
        ("q4_k", vec![256, 2], 2 * 144),
        ("q4_k", vec![2, 255], 144),
        ("q8_0", vec![], 34),
    ];
    for (name, shape, len) in cases {
        let value = BTreeMap::from([("w", tenarc::Tensor(blocks(name, &shape, len)))]);
        let error = match tenarc::to_vec(&value) {
            Ok(bytes) => tenarc::from_slice::<BTreeMap<String, CandleTensor>>(&bytes).unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains("elements"), "{name} {shape:?}: {error}");
    }
    // At any place in memory, and without elements.
    let value = BTreeMap::from([("w", tenarc::Tensor(blocks("q6_k", &[256], 210)))]);
    let message = tenarc::to_vec(&value).unwrap();
    for shift in 0..8 {
        let mut bytes = vec![0u8; shift];
        bytes.extend_from_slice(&message);
        let read: BTreeMap<String, CandleTensor> = tenarc::from_slice(&bytes[shift..]).unwrap();
        assert_eq!(read["w"].dims(), [256]);
    }
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(&BTreeMap::from([("w", tenarc::Tensor(blocks("q8_0", &[0, 32], 0)))])).unwrap();
    let weights = Weights::new(Archive::new(out.finish().unwrap()).unwrap()).unwrap();
    assert_eq!(weights.tensor("w").unwrap().dims(), [0, 32]);
}
