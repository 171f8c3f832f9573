//! Random columns are read back as they were written, whole and batch by batch.

use proptest::prelude::*;
use tenarc::DynTensor;
use tenarc::tensor::Order;
use tenarc_convert::arrow::{ArrowFile, Batches, Layout};
use tenarc_convert::{Options, TensorFile as _};

use super::support::{DTYPES, archived, both, tensor};

fn tensors(rows: Option<usize>) -> impl Strategy<Value = Vec<DynTensor>> {
    let dims = prop::collection::vec(0..5usize, 0..4);
    let one = (0..DTYPES.len(), dims, any::<bool>(), any::<u8>());
    prop::collection::vec(one, 0..6).prop_map(move |all| {
        let tensor = |(dtype, dims, f, seed): (usize, Vec<usize>, bool, u8)| {
            let shape: Vec<usize> = rows.into_iter().chain(dims).collect();
            let order = if f && rows.is_none() { Order::F } else { Order::C };
            tensor(&DTYPES[dtype], &shape, order, seed)
        };
        all.into_iter().map(tensor).collect()
    })
}

fn named(tensors: &[DynTensor]) -> Vec<(String, &DynTensor)> {
    tensors.iter().enumerate().map(|(at, tensor)| (format!("t{at}"), tensor)).collect()
}

proptest! {
    #[test]
    fn tensors_in_one_row_come_back(tensors in tensors(None)) {
        let named = named(&tensors);
        let named: Vec<_> = named.iter().map(|(name, tensor)| (name.as_str(), *tensor)).collect();
        for bytes in both(&named, &Options::default().with_layout(Layout::OneRow)) {
            let file = ArrowFile::new(&bytes[..]).unwrap();
            prop_assert_eq!(file.tensors().len(), named.len());
            prop_assert_eq!(file.metadata(), None);
            let archive = archived(&file.flat().unwrap());
            for (name, tensor) in &named {
                prop_assert_eq!(&file.dyn_tensor(name).unwrap(), *tensor);
                prop_assert_eq!(&archive.only().unwrap().dyn_tensor(name).unwrap(), *tensor);
            }
        }
    }

    #[test]
    fn tensors_in_rows_come_back(
        (rows, tensors) in (0..20usize).prop_flat_map(|rows| (Just(rows), tensors(Some(rows)))),
        per_batch in 1..25usize,
    ) {
        let named = named(&tensors);
        let named: Vec<_> = named.iter().map(|(name, tensor)| (name.as_str(), *tensor)).collect();
        for bytes in both(&named, &Options::default().with_rows_per_batch(per_batch)) {
            let file = ArrowFile::new(&bytes[..]).unwrap();
            prop_assert!(tensors.is_empty() || file.rows() == rows);
            let archive = archived(&file.nested().unwrap());
            let batches: Vec<_> = Batches::new(&bytes[..]).unwrap().map(Result::unwrap).collect();
            for (name, tensor) in &named {
                prop_assert_eq!(&file.dyn_tensor(name).unwrap(), *tensor);
                prop_assert_eq!(&archive.only().unwrap().dyn_tensor(name).unwrap(), *tensor);
                let parts = batches.iter().map(|batch| batch.dyn_tensor(name).unwrap());
                let parts: Vec<u8> = parts.flat_map(|part| part.le_bytes().into_owned()).collect();
                prop_assert_eq!(&parts[..], &*tensor.le_bytes());
            }
        }
    }
}
