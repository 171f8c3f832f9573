//! The peers that store named tensors in files. Their methods panic on errors.

use std::collections::HashMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Float32Array, RecordBatch};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_ipc::reader::{FileDecoder, FileReader, read_footer_length};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
use memmap2::Mmap;
use ndarray::{Array2, ArrayView2};
use npyz::{NpyFile, WriteOptions, WriterBuilder as _};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::files::{self, Sync};

/// A tensor to be saved, with its name.
pub struct Named<'a> {
    pub name: String,
    pub shape: (usize, usize),
    pub values: &'a [f32],
}

impl<'a> Named<'a> {
    pub fn new(name: String, tensor: ArrayView2<'a, f32>) -> Self {
        let values = tensor.to_slice().expect("the arrays here are contiguous");
        Self { name, shape: tensor.dim(), values }
    }

    pub fn view(&self) -> ArrayView2<'a, f32> {
        ArrayView2::from_shape(self.shape, self.values).expect("the shape is that of the array")
    }

    pub fn shape(&self) -> Vec<usize> {
        vec![self.shape.0, self.shape.1]
    }
}

/// A tensor to look up, and its file.
pub struct Wanted<'a> {
    pub path: &'a Path,
    pub tensor: &'a Named<'a>,
}

impl Wanted<'_> {
    /// Checks that the right tensor was found. It is called after the time is taken. It compares only the
    /// first elements: reading all of them would evict the measured data from the caches.
    pub fn check(&self, found: ArrayView2<'_, f32>) {
        assert_eq!(found.dim(), self.tensor.shape);
        assert!(found.iter().take(16).eq(&self.tensor.values[..16]));
    }
}

/// A file format for named tensors.
pub trait Store {
    const NAME: &'static str;

    /// The input that the format's crate needs; preparing it is not timed.
    type Prepared<'a>;

    fn prepare<'a>(tensors: &'a [Named<'a>]) -> Self::Prepared<'a>;

    fn save(prepared: &Self::Prepared<'_>, path: &Path, sync: Sync) -> Duration;

    /// All tensors, loaded into memory.
    type Loaded;

    fn load(path: &Path) -> Self::Loaded;

    /// The elements of a loaded tensor, for the check.
    fn values(loaded: &Self::Loaded, tensor: &Named<'_>) -> Vec<f32>;
}

/// A file format with views of tensors in a mapped file.
pub trait Viewer: Store {
    fn view(wanted: &Wanted<'_>) -> Duration;

    /// Looks up the description of a tensor, such as its shape, without its elements.
    fn describe(wanted: &Wanted<'_>) -> Duration;
}

pub struct Safetensors;

impl Store for Safetensors {
    const NAME: &'static str = "safetensors";

    type Prepared<'a> = &'a [Named<'a>];

    fn prepare<'a>(tensors: &'a [Named<'a>]) -> &'a [Named<'a>] {
        tensors
    }

    /// The crate itself writes to a temporary file and renames it, but does not sync.
    fn save(tensors: &&[Named<'_>], path: &Path, sync: Sync) -> Duration {
        let start = Instant::now();
        let views = tensors.iter().map(|tensor| {
            let bytes = bytemuck::cast_slice(tensor.values);
            let view = TensorView::new(safetensors::Dtype::F32, tensor.shape(), bytes).unwrap();
            (&*tensor.name, view)
        });
        safetensors::serialize_to_file(views, None, path).unwrap();
        assert!(sync == Sync::Off);
        start.elapsed()
    }

    type Loaded = HashMap<String, Array2<f32>>;

    fn load(path: &Path) -> Self::Loaded {
        let map = files::map(path);
        let tensors = SafeTensors::deserialize(&map).unwrap();
        let own = |(name, view): (&str, TensorView<'_>)| {
            let values = bytemuck::pod_collect_to_vec(view.data());
            let shape = (view.shape()[0], view.shape()[1]);
            (name.to_owned(), Array2::from_shape_vec(shape, values).unwrap())
        };
        tensors.iter().map(own).collect()
    }

    fn values(loaded: &Self::Loaded, tensor: &Named<'_>) -> Vec<f32> {
        loaded[&tensor.name].iter().copied().collect()
    }
}

impl Viewer for Safetensors {
    fn view(wanted: &Wanted<'_>) -> Duration {
        let start = Instant::now();
        let map = files::map(wanted.path);
        let tensors = SafeTensors::deserialize(&map).unwrap();
        let found = tensors.tensor(&wanted.tensor.name).unwrap();
        let shape = (found.shape()[0], found.shape()[1]);
        let view = ArrayView2::from_shape(shape, bytemuck::cast_slice(found.data())).unwrap();
        let took = start.elapsed();
        wanted.check(black_box(view));
        took
    }

    fn describe(wanted: &Wanted<'_>) -> Duration {
        let start = Instant::now();
        let map = files::map(wanted.path);
        let (_, metadata) = SafeTensors::read_metadata(&map).unwrap();
        let found = metadata.info(&wanted.tensor.name).unwrap();
        let took = start.elapsed();
        assert_eq!(black_box(found).shape, wanted.tensor.shape());
        took
    }
}

/// burn's file format, through its own crate.
pub struct Burnpack;

impl Store for Burnpack {
    const NAME: &'static str = "burnpack";

    type Prepared<'a> = Vec<(&'a Named<'a>, burn_pack::Bytes)>;

    fn prepare<'a>(tensors: &'a [Named<'a>]) -> Self::Prepared<'a> {
        let bytes = |tensor: &Named<'_>| {
            let bytes = bytemuck::cast_slice(tensor.values).to_vec();
            burn_pack::Bytes::from_bytes_vec(bytes).shared()
        };
        tensors.iter().map(|tensor| (tensor, bytes(tensor))).collect()
    }

    /// The crate writes a temporary file and renames it only if it also syncs; otherwise it writes in place.
    fn save(prepared: &Self::Prepared<'_>, path: &Path, sync: Sync) -> Duration {
        let tensors = prepared.iter().map(|(tensor, bytes)| {
            let (name, shape) = (tensor.name.clone(), tensor.shape());
            burn_pack::Tensor::new(name, burn_pack::DType::F32, shape, None, bytes.clone())
        });
        let start = Instant::now();
        let writer = burn_pack::Writer::new(tensors.collect()).auto_extension(false);
        match sync {
            Sync::Off => writer.write_to_file_in_place(path).unwrap(),
            Sync::Full => writer.write_to_file(path).unwrap(),
        }
        start.elapsed()
    }

    type Loaded = HashMap<String, Array2<f32>>;

    fn load(path: &Path) -> Self::Loaded {
        let tensors = burn_pack::Reader::from_file_exact(path).unwrap().into_tensors().unwrap();
        let own = |tensor: burn_pack::Tensor| {
            let shape = (tensor.shape[0], tensor.shape[1]);
            let (name, bytes) = (tensor.name.clone(), tensor.into_bytes().unwrap());
            let values = match bytes.try_into_vec() {
                Ok(values) => values,
                Err(bytes) => bytemuck::pod_collect_to_vec(&bytes),
            };
            (name, Array2::from_shape_vec(shape, values).unwrap())
        };
        tensors.into_iter().map(own).collect()
    }

    fn values(loaded: &Self::Loaded, tensor: &Named<'_>) -> Vec<f32> {
        loaded[&tensor.name].iter().copied().collect()
    }
}

impl Viewer for Burnpack {
    /// Not a real view: the bytes are read later, when they are needed. That time is not measured.
    fn view(wanted: &Wanted<'_>) -> Duration {
        let start = Instant::now();
        let tensors = burn_pack::Reader::from_file_exact(wanted.path).unwrap().into_tensors();
        let tensors = tensors.unwrap();
        let found = tensors.iter().find(|tensor| tensor.name == wanted.tensor.name).unwrap();
        let took = start.elapsed();
        let bytes = black_box(found).to_bytes().unwrap();
        let values = bytemuck::pod_collect_to_vec(&bytes);
        wanted.check(ArrayView2::from_shape(wanted.tensor.shape, &values).unwrap());
        took
    }

    fn describe(wanted: &Wanted<'_>) -> Duration {
        // The crate gives descriptions only together with the tensors.
        Self::view(wanted)
    }
}

/// zTensor's files, with hashes, which it verifies. The crate syncs every file that it writes.
pub struct ZTensor;

impl ZTensor {
    /// Tensors start at multiples of 64 KiB by default. For smaller ones, the crate's documents advise less; this is
    /// the least.
    const SMALL: u64 = 4096;
}

impl Store for ZTensor {
    const NAME: &'static str = "zTensor";

    /// In ascending order of the names, in which the crate takes them by default.
    type Prepared<'a> = Vec<&'a Named<'a>>;

    fn prepare<'a>(tensors: &'a [Named<'a>]) -> Self::Prepared<'a> {
        let mut sorted: Vec<_> = tensors.iter().collect();
        sorted.sort_by_key(|tensor| &tensor.name);
        sorted
    }

    fn save(prepared: &Self::Prepared<'_>, path: &Path, sync: Sync) -> Duration {
        let start = Instant::now();
        let mean =
            prepared.iter().map(|tensor| tensor.values.len()).sum::<usize>() / prepared.len();
        let options = match mean * size_of::<f32>() {
            ..65_536 => ztensor::Writer::options().canonical(false).align(Self::SMALL),
            _ => ztensor::Writer::options(),
        };
        let mut out = match sync {
            Sync::Off => options.create(path).unwrap(),
            Sync::Full => options.publish(path).unwrap(),
        };
        for tensor in prepared {
            let shape = [tensor.shape.0 as u64, tensor.shape.1 as u64];
            let bytes = bytemuck::cast_slice(tensor.values);
            out.add(&*tensor.name, shape, ztensor::DType::F32, bytes).unwrap();
        }
        out.finish().unwrap();
        start.elapsed()
    }

    type Loaded = HashMap<String, Array2<f32>>;

    fn load(path: &Path) -> Self::Loaded {
        let file = ztensor::Source::open(path).unwrap();
        let own = |tensor: ztensor::Tensor<'_>| {
            assert!(tensor.verify().unwrap().is_checked());
            let [rows, columns] = tensor.shape().try_into().unwrap();
            let values = bytemuck::pod_collect_to_vec(tensor.data().unwrap().map().unwrap());
            let array = Array2::from_shape_vec((rows as usize, columns as usize), values);
            (tensor.name().to_owned(), array.unwrap())
        };
        file.tensors().map(own).collect()
    }

    fn values(loaded: &Self::Loaded, tensor: &Named<'_>) -> Vec<f32> {
        loaded[&tensor.name].iter().copied().collect()
    }
}

impl Viewer for ZTensor {
    fn view(wanted: &Wanted<'_>) -> Duration {
        let start = Instant::now();
        let file = ztensor::Source::open(wanted.path).unwrap();
        let found = file.tensor(&wanted.tensor.name).unwrap();
        let values = bytemuck::cast_slice(found.data().unwrap().map().unwrap());
        let view = ArrayView2::from_shape(wanted.tensor.shape, values).unwrap();
        let took = start.elapsed();
        wanted.check(black_box(view));
        took
    }

    fn describe(wanted: &Wanted<'_>) -> Duration {
        let start = Instant::now();
        let file = ztensor::Source::open(wanted.path).unwrap();
        let found = file.tensor(&wanted.tensor.name).unwrap();
        let took = start.elapsed();
        assert_eq!(black_box(found).num_elements().unwrap(), wanted.tensor.values.len() as u64);
        took
    }
}

/// numpy's npz: an uncompressed zip file of arrays.
pub struct Npz;

impl Store for Npz {
    const NAME: &'static str = "npz";

    type Prepared<'a> = &'a [Named<'a>];

    fn prepare<'a>(tensors: &'a [Named<'a>]) -> &'a [Named<'a>] {
        tensors
    }

    fn save(tensors: &&[Named<'_>], path: &Path, sync: Sync) -> Duration {
        let start = Instant::now();
        files::replace(path, sync, |file| {
            let mut zip = ZipWriter::new(file);
            let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            for tensor in *tensors {
                let shape = [tensor.shape.0 as u64, tensor.shape.1 as u64];
                zip.start_file(npyz::npz::file_name_from_array_name(&tensor.name), stored).unwrap();
                let buffered = BufWriter::with_capacity(1 << 20, &mut zip);
                let array = WriteOptions::new().default_dtype().shape(&shape).writer(buffered);
                let mut array = array.begin_nd().unwrap();
                array.extend(tensor.values).unwrap();
                array.finish().unwrap();
            }
            zip.finish().unwrap();
        });
        start.elapsed()
    }

    type Loaded = HashMap<String, Array2<f32>>;

    fn load(path: &Path) -> Self::Loaded {
        let mut zip = ZipArchive::new(BufReader::new(File::open(path).unwrap())).unwrap();
        let count = zip.len();
        let one = |at| {
            let entry = zip.by_index(at).unwrap();
            let name =
                npyz::npz::array_name_from_file_name(&entry.name().unwrap()).unwrap().to_owned();
            let array = NpyFile::new(BufReader::with_capacity(1 << 20, entry)).unwrap();
            let shape: Vec<usize> = array.shape().iter().map(|&n| n as usize).collect();
            let values = array.into_vec().unwrap();
            (name, Array2::from_shape_vec((shape[0], shape[1]), values).unwrap())
        };
        (0..count).map(one).collect()
    }

    fn values(loaded: &Self::Loaded, tensor: &Named<'_>) -> Vec<f32> {
        loaded[&tensor.name].iter().copied().collect()
    }
}

/// Arrow IPC files. Columns of a batch have equal lengths, so each tensor gets a batch of its own. The
/// footer holds the number of the batch and the shape of each tensor.
pub struct ArrowIpc;

impl ArrowIpc {
    /// Parses an entry of the footer: the number of the batch, and the shape.
    fn place(text: &str) -> (usize, [usize; 2]) {
        let mut numbers = text.split(' ').map(|number| number.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        (next(), [next(), next()])
    }

    fn batch(tensor: &Named<'_>) -> RecordBatch {
        let values = Float32Array::new(ScalarBuffer::from(tensor.values.to_vec()), None);
        RecordBatch::try_from_iter([("values", Arc::new(values) as _)]).unwrap()
    }

    fn floats(batch: &RecordBatch) -> &[f32] {
        batch.column(0).as_any().downcast_ref::<Float32Array>().unwrap().values()
    }

    /// Calls `with` with the footer of a mapped file.
    fn footer<R>(map: &[u8], with: impl FnOnce(arrow_ipc::Footer<'_>) -> R) -> R {
        let trailer = map.len() - 10;
        let len = read_footer_length(map[trailer..].try_into().unwrap()).unwrap();
        with(arrow_ipc::root_as_footer(&map[trailer - len..trailer]).unwrap())
    }

    fn find(footer: arrow_ipc::Footer<'_>, name: &str) -> (usize, [usize; 2]) {
        let all = footer.custom_metadata().unwrap();
        let found = all.iter().find(|entry| entry.key() == Some(name)).unwrap();
        Self::place(found.value().unwrap())
    }
}

impl Store for ArrowIpc {
    const NAME: &'static str = "Arrow IPC";

    type Prepared<'a> = Vec<(&'a Named<'a>, RecordBatch)>;

    fn prepare<'a>(tensors: &'a [Named<'a>]) -> Self::Prepared<'a> {
        tensors.iter().map(|tensor| (tensor, Self::batch(tensor))).collect()
    }

    fn save(prepared: &Self::Prepared<'_>, path: &Path, sync: Sync) -> Duration {
        let start = Instant::now();
        files::replace(path, sync, |file| {
            let schema = Schema::new(vec![Field::new("values", DataType::Float32, false)]);
            let file = BufWriter::with_capacity(1 << 20, file);
            let mut writer = FileWriter::try_new(file, &schema).unwrap();
            for (number, (tensor, batch)) in prepared.iter().enumerate() {
                writer.write(batch).unwrap();
                let (rows, columns) = tensor.shape;
                writer.write_metadata(&*tensor.name, format!("{number} {rows} {columns}"));
            }
            writer.finish().unwrap();
        });
        start.elapsed()
    }

    /// The arrays stay Arrow's, which own their memory.
    type Loaded = (HashMap<String, String>, Vec<RecordBatch>);

    fn load(path: &Path) -> Self::Loaded {
        let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
        (reader.custom_metadata().clone(), reader.map(Result::unwrap).collect())
    }

    fn values(loaded: &Self::Loaded, tensor: &Named<'_>) -> Vec<f32> {
        let (number, _) = Self::place(&loaded.0[&tensor.name]);
        Self::floats(&loaded.1[number]).to_vec()
    }
}

impl Viewer for ArrowIpc {
    fn view(wanted: &Wanted<'_>) -> Duration {
        let start = Instant::now();
        let map = Arc::new(files::map(wanted.path));
        let (batch, shape) = Self::footer(&map, |footer| {
            let (number, shape) = Self::find(footer, &wanted.tensor.name);
            let schema = arrow_ipc::convert::try_fb_to_schema(footer.schema().unwrap()).unwrap();
            let decoder = FileDecoder::new(Arc::new(schema), footer.version());
            let block = *footer.recordBatches().unwrap().get(number);
            let len = block.bodyLength() as usize + block.metaDataLength() as usize;
            let whole = buffer(&map).slice_with_length(block.offset() as usize, len);
            (decoder.read_record_batch(&block, &whole).unwrap().unwrap(), shape)
        });
        let view = ArrayView2::from_shape(shape, Self::floats(&batch)).unwrap();
        let took = start.elapsed();
        wanted.check(black_box(view));
        took
    }

    fn describe(wanted: &Wanted<'_>) -> Duration {
        let start = Instant::now();
        let map = files::map(wanted.path);
        let (_, shape) = Self::footer(&map, |footer| Self::find(footer, &wanted.tensor.name));
        let took = start.elapsed();
        assert_eq!(black_box(shape).to_vec(), wanted.tensor.shape());
        took
    }
}

/// A mapped file as an Arrow buffer.
fn buffer(map: &Arc<Mmap>) -> Buffer {
    let start = NonNull::from(&map[..]).cast();
    // SAFETY: the length is that of the mapping, and the buffer keeps the mapping alive by its `Arc`.
    unsafe { Buffer::from_custom_allocation(start, map.len(), Arc::<Mmap>::clone(map)) }
}
