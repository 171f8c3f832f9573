//! burn-train's learners are stopped between epochs, continue from the files of `TenarcCheckpointer`, and end like those
//! that were not stopped.

#![allow(clippy::cast_precision_loss)] // small numbers

use burn_core as burn;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder};
use burn::data::dataset::InMemDataset;
use burn::module::{Module, Param};
use burn::store::ModuleRecord;
use burn::tensor::{Device, Tensor, TensorData};
use burn_nn::loss::{MseLoss, Reduction};
use burn_nn::{Linear, LinearConfig};
use burn_optim::lr_scheduler::LrSchedulerRecord;
use burn_optim::lr_scheduler::composed::ComposedLrSchedulerConfig;
use burn_optim::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn_optim::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn_optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn_optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer, OptimizerRecord};
use burn_store::burn_pack::{Bytes, Reader, Scalar};
use burn_train::checkpoint::{Checkpoint, Checkpointer, FileCheckpointer, KeepLastNCheckpoints};
use burn_train::metric::LossMetric;
use burn_train::{
    InferenceStep, Learner, RegressionOutput, SupervisedTraining, TrainOutput, TrainStep,
};
use tenarc::DynTensor;
use tenarc_burn::{Record, TenarcCheckpointer};

#[derive(Module, Debug)]
struct Model {
    first: Linear,
    second: Linear,
}

impl Model {
    /// Weights that are the same in each run.
    fn new(device: &Device) -> Self {
        let layer = |inputs: usize, outputs: usize| {
            let mut layer: Linear = LinearConfig::new(inputs, outputs).init(device);
            let values = (0..inputs * outputs).map(|i| (i as f32 * 12.9898).sin()).collect();
            layer.weight = Param::from_data(TensorData::new(values, [inputs, outputs]), device);
            layer.bias =
                Some(Param::from_data(TensorData::new(vec![0.1f32; outputs], [outputs]), device));
            layer
        };
        Self { first: layer(4, 6), second: layer(6, 2) }
    }

    fn regress(&self, inputs: Tensor<2>) -> RegressionOutput {
        let targets = inputs.clone().narrow(1, 0, 2).square();
        let output = self.second.forward(self.first.forward(inputs).tanh());
        let loss = MseLoss::new().forward(output.clone(), targets.clone(), Reduction::Mean);
        RegressionOutput::new(loss, output, targets)
    }
}

impl TrainStep for Model {
    type Input = Tensor<2>;
    type Output = RegressionOutput;

    fn step(&self, inputs: Tensor<2>) -> TrainOutput<RegressionOutput> {
        let item = self.regress(inputs);
        TrainOutput::new(self, item.loss.backward(), item)
    }
}

impl InferenceStep for Model {
    type Input = Tensor<2>;
    type Output = RegressionOutput;

    fn step(&self, inputs: Tensor<2>) -> RegressionOutput {
        self.regress(inputs)
    }
}

#[derive(Clone)]
struct Rows;

impl Batcher<[f32; 4], Tensor<2>> for Rows {
    fn batch(&self, rows: Vec<[f32; 4]>, device: &Device) -> Tensor<2> {
        let shape = [rows.len(), 4];
        Tensor::from_data(TensorData::new(rows.concat(), shape), device)
    }
}

fn data() -> Arc<dyn DataLoader<Tensor<2>>> {
    let row = |n: usize| [1, 2, 3, 5].map(|k| ((n * k) as f32 * 0.7).cos());
    DataLoaderBuilder::new(Rows).batch_size(5).build(InMemDataset::new((0..20).map(row).collect()))
}

#[allow(deprecated)] // burn-ndarray is, but programs use it
fn devices() -> [Device; 2] {
    [Device::flex().autodiff(), Device::ndarray().autodiff()]
}

/// Trains up to an epoch, from the last one that has a file.
fn train(device: &Device, dir: &Path, epochs: usize) -> TenarcCheckpointer {
    let files = TenarcCheckpointer::new(dir.join("checkpoints")).unwrap();
    let mut training = SupervisedTraining::<Model>::new(dir.join("logs"), data(), data())
        .metrics((LossMetric::new(),))
        .with_application_logger(None)
        .with_checkpointing_strategy(KeepLastNCheckpoints::new(2))
        .with_custom_checkpointers(files.clone(), files.clone(), files.clone())
        .num_epochs(epochs);
    if let Some(epoch) = files.last_epoch().unwrap() {
        training = training.checkpoint(epoch);
    }
    let scheduler = ComposedLrSchedulerConfig::new()
        .cosine(CosineAnnealingLrSchedulerConfig::new(0.5, 7))
        .exponential(ExponentialLrSchedulerConfig::new(0.5, 0.9));
    let optimizer = AdamWConfig::new().with_amsgrad(true).init();
    let learner = Learner::new(Model::new(device), optimizer, scheduler.init().unwrap());
    training.launch(learner);
    files
}

/// The bytes of all tensors, and the numbers of the scheduler.
fn contents(files: &TenarcCheckpointer, epoch: usize) -> (BTreeMap<String, Vec<u8>>, Vec<Scalar>) {
    let file = files.checkpoints().dir().join(format!("step-{epoch:020}.tenarc"));
    let archive = tenarc::open(file).unwrap();
    archive.verify().unwrap();
    let content = |info: tenarc::tensor::TensorInfo| {
        let tensor: DynTensor = archive.tensor(info.path()).unwrap();
        (info.path().to_owned(), tensor.le_bytes().into_owned())
    };
    let scheduler: LrSchedulerRecord = files.restore(epoch).unwrap();
    let pack = Reader::from_bytes(scheduler.into_bytes().unwrap()).unwrap();
    let tensors = archive.tensors().unwrap().into_iter().map(content).collect();
    (tensors, pack.scalars().values().copied().collect())
}

#[test]
fn a_learner_that_was_stopped_ends_like_others() {
    for device in &devices() {
        a_learner_is_stopped(device);
    }
}

fn a_learner_is_stopped(device: &Device) {
    let dir = tempfile::tempdir().unwrap();
    let whole = train(device, &dir.path().join("whole"), 6);
    for epochs in [1, 2, 5, 6] {
        train(device, &dir.path().join("stopped"), epochs);
    }
    let stopped = TenarcCheckpointer::new(dir.path().join("stopped/checkpoints")).unwrap();
    assert_eq!(stopped.checkpoints().steps().unwrap(), [5, 6]);
    assert_eq!(whole.checkpoints().steps().unwrap(), [5, 6]);
    let (tensors, numbers) = contents(&whole, 6);
    assert_eq!(contents(&stopped, 6), (tensors.clone(), numbers.clone()));
    assert_ne!(contents(&stopped, 5).0, tensors);
    assert!(!numbers.is_empty());
    let of_weight: Vec<_> = tensors.keys().filter(|path| path.contains("first.weight")).collect();
    assert_eq!(
        of_weight,
        [
            "module.tensors.first.weight",
            "optimizer.first.weight.tensors.momentum.max_moment_2",
            "optimizer.first.weight.tensors.momentum.moment_1",
            "optimizer.first.weight.tensors.momentum.moment_2",
        ]
    );
}

/// A model and an optimizer after a few steps.
fn trained(device: &Device) -> (Model, ModuleOptimizer, ModuleLrScheduler) {
    let mut model = Model::new(device);
    let mut optimizer = AdamConfig::new().init();
    let config = CosineAnnealingLrSchedulerConfig::new(0.5, 7);
    let mut scheduler = config.init().unwrap();
    for _ in 0..3 {
        let loss = model.regress(Tensor::ones([3, 4], device)).loss;
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(scheduler.step(), model, gradients);
    }
    (model, optimizer, scheduler)
}

type Pack = (BTreeMap<String, (String, Vec<u8>, Option<u64>)>, String, String);

/// What is in a record, without an order.
fn pack(bytes: Bytes) -> Pack {
    let reader = Reader::from_bytes(bytes).unwrap();
    let (scalars, texts) = (format!("{:?}", reader.scalars()), format!("{:?}", reader.metadata()));
    let content = |tensor: burn_store::burn_pack::Tensor| {
        let (name, dtype, shape, id, bytes) = tensor.into_parts().unwrap();
        (name, (format!("{dtype:?} {shape:?}"), bytes.to_vec(), id))
    };
    (reader.into_tensors().unwrap().into_iter().map(content).collect(), scalars, texts)
}

fn save_both<R: Checkpoint>(
    ours: &impl Checkpointer<R>,
    theirs: &impl Checkpointer<R>,
    record: impl Fn() -> R,
) {
    ours.save(2, record()).unwrap();
    theirs.save(2, record()).unwrap();
}

fn compare<R: Checkpoint>(ours: &impl Checkpointer<R>, theirs: &impl Checkpointer<R>) -> Pack {
    let [ours, theirs] = [ours.restore(2).unwrap(), theirs.restore(2).unwrap()]
        .map(|record| pack(record.checkpoint_into_bytes().unwrap()));
    assert_eq!(ours, theirs);
    ours
}

#[test]
fn records_are_those_that_burns_own_checkpointer_gives() {
    for device in &devices() {
        records_are_compared(device);
    }
}

fn records_are_compared(device: &Device) {
    let dir = tempfile::tempdir().unwrap();
    let ours = TenarcCheckpointer::new(dir.path().join("ours")).unwrap();
    let [of_model, of_optimizer, of_scheduler] =
        ["model", "optim", "scheduler"].map(|name| FileCheckpointer::new(dir.path(), name));
    let (model, optimizer, scheduler) = trained(device);

    save_both::<ModuleRecord>(&ours, &of_model, || model.clone().into_record());
    save_both::<LrSchedulerRecord>(&ours, &of_scheduler, || scheduler.to_record());
    assert_eq!(ours.last_epoch().unwrap(), None, "an incomplete checkpoint has no file");
    let error = Checkpointer::<ModuleRecord>::restore(&ours, 2).unwrap_err().to_string();
    assert!(error.contains("step 2"), "{error}");
    save_both::<OptimizerRecord>(&ours, &of_optimizer, || optimizer.to_record());
    assert_eq!(ours.last_epoch().unwrap(), Some(2));

    assert_eq!(compare::<ModuleRecord>(&ours, &of_model).0.len(), 4);
    let (tensors, numbers, paths) = compare::<OptimizerRecord>(&ours, &of_optimizer);
    assert_eq!(tensors.len(), 8);
    assert!(numbers.contains("time") && paths.contains("first.weight"), "{numbers} {paths}");
    assert!(!compare::<LrSchedulerRecord>(&ours, &of_scheduler).1.is_empty());
}

#[test]
fn an_epoch_is_deleted_whether_it_is_complete_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let files = TenarcCheckpointer::new(dir.path()).unwrap();
    let (model, optimizer, scheduler) = trained(&Device::flex().autodiff());
    // The three calls of burn-train come from three threads, so one can be late.
    files.save(1, optimizer.to_record()).unwrap();
    Checkpointer::<OptimizerRecord>::delete(&files, 1).unwrap();
    files.save(1, model.clone().into_record()).unwrap();
    files.save(1, scheduler.to_record()).unwrap();
    assert_eq!(files.last_epoch().unwrap(), None);
    Checkpointer::<ModuleRecord>::delete(&files, 1).unwrap();
    Checkpointer::<LrSchedulerRecord>::delete(&files, 1).unwrap();

    files.save(2, optimizer.to_record()).unwrap();
    files.save(2, model.into_record()).unwrap();
    files.save(2, scheduler.to_record()).unwrap();
    assert_eq!(files.last_epoch().unwrap(), Some(2));
    Checkpointer::<ModuleRecord>::delete(&files, 2).unwrap();
    assert_eq!(files.last_epoch().unwrap(), None);
    Checkpointer::<OptimizerRecord>::delete(&files, 2).unwrap();
}

#[test]
fn too_many_dimensions_are_an_error_and_no_panic() {
    let (_, optimizer, _) = trained(&Device::flex().autodiff());
    let record = Record::new(optimizer.to_record()).unwrap();
    let mut value = tenarc::to_value(&record).unwrap();
    assert!(
        tenarc::from_value::<Record<OptimizerRecord>>(value.clone()).unwrap().into_inner().is_ok()
    );
    value["first.weight"]["rank"] = 9u8.into();
    let record: Record<OptimizerRecord> = tenarc::from_value(value).unwrap();
    let error = record.into_inner().unwrap_err().to_string();
    assert!(error.contains("at most 8") && error.contains("first.weight"), "{error}");
}
