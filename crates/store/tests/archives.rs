//! Archives in a store: how many requests they take, and what happens when some of them fail.

#![allow(clippy::cast_precision_loss, clippy::float_cmp)]

mod support;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ndarray::{Array2, s};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::Requests;
use tenarc::{OArchive, Tensor};
use tenarc_store::{Kind, Result, Store};

use self::support::{Fault, Trial};

type Model = BTreeMap<String, Tensor<Vec<f32>>>;

fn tensor(len: usize, seed: usize) -> Tensor<Vec<f32>> {
    Tensor((0..len).map(|at| (at % 1000 + seed) as f32).collect())
}

fn model(tensors: usize, len: usize) -> Model {
    (0..tensors).map(|number| (format!("w{number:03}"), tensor(len, number))).collect()
}

/// Runs a test in both kinds of runtimes.
fn in_runtimes<F: Future<Output = Result<()>>>(test: impl Fn() -> F) {
    let mut single = tokio::runtime::Builder::new_current_thread();
    let mut several = tokio::runtime::Builder::new_multi_thread();
    for builder in [&mut single, several.worker_threads(2)] {
        builder.enable_all().build().unwrap().block_on(test()).unwrap();
    }
}

#[test]
fn what_was_saved_is_loaded_in_few_requests() {
    in_runtimes(|| async {
        let trial = Trial::new();
        let store = trial.store();
        let model = model(20, 10_000);
        store.save("a/model.tenarc", &model).await?;
        assert_eq!(trial.take().by_name, BTreeMap::from([("put", 1)]));

        let archive = store.archive("a/model.tenarc").await?;
        assert_eq!(trial.take().requests, 1);
        let tensors = archive.tensors().await?;
        assert_eq!(tensors.len(), 20);
        assert_eq!(trial.take().requests, 1);
        let part: Vec<f32> = archive.slice("w007", s![10..20]).await?;
        assert_eq!(part, model["w007"][10..20]);
        let asked = trial.take();
        assert_eq!((asked.requests, asked.bytes), (1, 40_000));
        assert_eq!(store.load::<Model>("a/model.tenarc").await?, model);
        let asked = trial.take();
        // The end, and then all of the value.
        assert_eq!(asked.requests, 2);
        let name: Tensor<Vec<f32>> = archive.get_at("w003").await?;
        assert_eq!(name, model["w003"]);
        Ok(())
    });
}

#[test]
fn stores_without_suffixes_take_one_request_more() {
    in_runtimes(|| async {
        let trial = Trial::new();
        let store = trial.store();
        store.save("model.tenarc", &model(3, 5000)).await?;
        trial.set(|settings| settings.no_suffixes = true);
        assert_eq!(store.load::<Model>("model.tenarc").await?.len(), 3);
        let asked = trial.take();
        assert_eq!(asked.by_name["stat"], 1);
        Ok(())
    });
}

#[test]
fn long_objects_are_written_in_parts_of_bounded_memory() {
    in_runtimes(|| async {
        let trial = Trial::new();
        trial.set(|settings| settings.wait = Duration::from_millis(30));
        let store = trial.store().with_part_len(256 << 10);
        let model = model(75, 1 << 16);
        store.save("model.tenarc", &model).await?;
        let asked = trial.take();
        // 19 MiB in parts of 256 KiB, 32 at once.
        assert_eq!(
            (asked.by_name["part"], asked.by_name["upload"], asked.by_name["finish"]),
            (76, 1, 1)
        );
        assert!(asked.most_written <= 32 * (256 << 10) && asked.together > 3, "{asked:?}");
        assert!(store.load::<Model>("model.tenarc").await? == model);
        Ok(())
    });
}

#[test]
fn two_hundred_tensors_are_loaded_about_as_fast_as_ranges() {
    in_runtimes(|| async {
        let trial = Trial::new();
        let store = trial.store();
        let model = model(200, 1 << 14);
        store.save("model.tenarc", &model).await?;
        let wait = Duration::from_millis(30);
        trial.set(|settings| settings.wait = wait);
        let started = Instant::now();
        assert!(store.load::<Model>("model.tenarc").await? == model);
        let asked = trial.take();
        // 12.5 MiB: the end, and then 13 requests of 1 MiB, side by side.
        assert!(asked.requests <= 14 && asked.together > 8, "{asked:?}");
        // One by one, 200 requests take six seconds.
        assert!(started.elapsed() < 60 * wait, "{:?}", started.elapsed());
        Ok(())
    });
}

#[test]
fn at_each_failure_of_a_save_the_old_value_stays() {
    in_runtimes(|| async {
        for (old, new) in [(model(1, 10), model(2, 1000)), (model(3, 100), model(10, 1 << 16))] {
            for fault in [Fault::Dead, Fault::Refused, Fault::AnswerLost, Fault::Conflict] {
                let trial = Trial::new();
                let store = trial.store();
                store.save("model.tenarc", &old).await?;
                for number in 0.. {
                    trial.set(|settings| settings.fault = Some((number, fault)));
                    let saved = store.save("model.tenarc", &new).await;
                    trial.settled().await;
                    let asked = trial.take();
                    trial.set(|settings| settings.fault = None);
                    let found: Model = store.load("model.tenarc").await?;
                    match saved {
                        Ok(()) => {
                            assert!(found == new);
                            assert_eq!(number, asked.requests);
                            break;
                        }
                        Err(error) => {
                            let answer = if fault == Fault::Conflict { "409" } else { "503" };
                            assert!(error.to_string().contains(answer), "{error}");
                            // Behind it, there was only the attempt to drop the parts.
                            let is_last = number + 1 + asked.aborted == asked.requests;
                            assert!(
                                found == old
                                    || fault == Fault::AnswerLost && is_last && found == new
                            );
                        }
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn at_each_failure_of_a_load_there_is_an_error_or_the_value() {
    in_runtimes(|| async {
        let trial = Trial::new();
        let store = trial.store();
        let model = model(40, 1 << 14);
        store.save("model.tenarc", &model).await?;
        for fault in [Fault::Dead, Fault::Refused, Fault::Truncated] {
            for number in 0.. {
                trial.set(|settings| settings.fault = Some((number, fault)));
                let loaded = store.load::<Model>("model.tenarc").await;
                let asked = trial.take();
                match loaded {
                    // What was fetched before it was needed is asked for again.
                    Ok(loaded) => assert!(loaded == model),
                    Err(error) => {
                        let text = format!("{error}");
                        assert!(text.contains("503") || text.contains("the store sent"), "{text}");
                        assert!(text.contains("runs/7/model.tenarc"), "{text}");
                        assert_eq!(error.kind(), Kind::Store);
                    }
                }
                if number > asked.requests {
                    break;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn parts_and_ranges_are_answered_in_any_order() {
    in_runtimes(|| async {
        for seed in 1..=20 {
            let trial = Trial::new();
            let store = trial.store().with_part_len(100_000);
            trial.set(|settings| settings.seed = seed);
            let model = model(40, 1 << 14);
            store.save("model.tenarc", &model).await?;
            let store = store.with_requests(Requests::server().with_longest(50_000));
            assert!(store.load::<Model>("model.tenarc").await? == model, "seed {seed}");
        }
        Ok(())
    });
}

#[test]
fn an_object_that_was_replaced_is_never_mixed() {
    in_runtimes(|| async {
        for ignores_versions in [false, true] {
            let trial = Trial::new();
            trial.set(|settings| settings.ignores_versions = ignores_versions);
            let store = trial.store();
            store.save("model.tenarc", &model(3, 50_000)).await?;
            let archive = store.archive("model.tenarc").await?;
            archive.tensor::<Vec<f32>>("w000").await?;
            store.save("model.tenarc", &model(3, 50_000)).await?;
            let error = archive.tensor::<Vec<f32>>("w001").await.unwrap_err();
            assert_eq!(error.kind(), Kind::Changed, "{error}");
            assert!(error.to_string().contains("was replaced"), "{error}");
            store.archive("model.tenarc").await?.tensor::<Vec<f32>>("w001").await?;
        }
        Ok(())
    });
}

#[test]
fn what_is_missing_or_exists_or_is_no_archive_is_said() {
    in_runtimes(|| async {
        let store = Trial::new().store();
        let error = store.archive("nothing.tenarc").await.unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        assert!(error.to_string().contains("`runs/7/nothing.tenarc`"), "{error}");
        store.create("one.tenarc", &1).await?;
        let error = store.create("one.tenarc", &2).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Exists);
        assert_eq!(store.load::<i32>("one.tenarc").await?, 1);
        let long = model(5, 1 << 17);
        store.create("long.tenarc", &long).await?;
        assert_eq!(store.create("long.tenarc", &long).await.unwrap_err().kind(), Kind::Exists);

        let mut writer = store.writer("text");
        tokio::task::spawn_blocking(move || {
            writer.write_all(b"this is no archive").unwrap();
            writer.finish().unwrap();
        })
        .await
        .unwrap();
        let error = store.archive("text").await.unwrap_err();
        assert_eq!((error.kind(), error.archive().is_some()), (Kind::Archive, true), "{error}");
        let error = store.load::<String>("one.tenarc").await.unwrap_err();
        assert_eq!(error.kind(), Kind::Archive, "{error}");

        store.delete("one.tenarc").await?;
        store.delete("one.tenarc").await?;
        assert_eq!(store.load::<i32>("one.tenarc").await.unwrap_err().kind(), Kind::NotFound);
        Ok(())
    });
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    in_runtimes(|| async {
        let trial = Trial::new();
        let store = trial.store();
        let mut writer = store.writer("model.tenarc");
        tokio::task::spawn_blocking(move || writer.write_all(&vec![7; 5 << 20]).unwrap())
            .await
            .unwrap();
        for _ in 0..1000 {
            if trial.take().aborted > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(store.archive("model.tenarc").await.unwrap_err().kind(), Kind::NotFound);
        Ok(())
    });
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Event {
    id: u32,
    score: f32,
}

#[test]
fn tables_are_read_by_column() {
    in_runtimes(|| async {
        let trial = Trial::new();
        let store = trial.store().with_save_options(SaveOptions::default().with_statistics(true));
        let events: Vec<_> = (0..200_000).map(|id| Event { id, score: id as f32 }).collect();
        store.save("events.tenarc", &events).await?;
        trial.take();
        let archive = store.archive("events.tenarc").await?;
        let scores =
            archive.with(|archive| archive.only()?.table("")?.column::<Vec<f32>>("score")).await?;
        assert_eq!(scores[199_999], 199_999.0);
        let asked = trial.take();
        assert!(asked.requests <= 6 && asked.bytes < 800_000 + (80 << 10), "{asked:?}");
        Ok(())
    });
}

#[test]
fn values_are_written_one_after_the_other() {
    in_runtimes(|| async {
        let store = Trial::new().store();
        let writer = store.writer("steps.tenarc");
        let written = tokio::task::spawn_blocking(move || -> Result<()> {
            let mut out = OArchive::new(writer)?;
            for step in 0..100 {
                out.save_as("state", &tensor(1000, step))?;
            }
            out.finish()?.finish()?;
            Ok(())
        });
        written.await.unwrap()?;
        let archive = store.archive("steps.tenarc").await?;
        let all =
            archive.with(|archive| archive.series("state", "")?.stack::<Array2<f32>>(..)).await?;
        assert_eq!(all[[99, 0]], 99.0);
        Ok(())
    });
}

#[test]
fn a_save_in_the_background_is_a_task() {
    in_runtimes(|| async {
        let trial = Trial::new();
        let store = trial.store();
        trial.set(|settings| settings.wait = Duration::from_millis(50));
        let state = Arc::new(model(5, 1 << 17));
        let saving = tokio::spawn({
            let (store, state) = (store.clone(), state.clone());
            async move { store.save("model.tenarc", &*state).await }
        });
        // The training goes on, and reads the same state.
        saving.await.unwrap()?;
        assert!(store.load::<Model>("model.tenarc").await? == *state);
        Ok(())
    });
}

#[test]
fn directories_are_stores_too() {
    let dir = std::env::temp_dir().join(format!("tenarc-store-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let url = url::Url::from_file_path(&dir).unwrap();
    in_runtimes(|| async {
        let store = Store::open(url.as_str())?;
        let model = model(3, 1000);
        store.save("deep/model.tenarc", &model).await?;
        assert_eq!(store.load::<Model>("deep/model.tenarc").await?, model);
        assert_eq!(tenarc::load::<Model>(dir.join("deep/model.tenarc"))?, model);
        store.save("deep/long.tenarc", &self::model(5, 1 << 17)).await?;
        assert_eq!(tenarc::load::<Model>(dir.join("deep/long.tenarc"))?.len(), 5);
        Ok(())
    });
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn urls_that_cannot_be_opened_are_explained() {
    for (url, part) in [
        ("model.tenarc", "this is no URL"),
        ("ftp://host/path", "`ftp://host/path`"),
        #[cfg(not(feature = "aws"))]
        ("s3://bucket/path", "it needs the feature `aws`"),
        #[cfg(not(feature = "azure"))]
        ("az://container/path", "it needs the feature `azure`"),
    ] {
        let error = Store::open(url).unwrap_err();
        assert!(error.to_string().contains(part), "{url}: {error}");
    }
}

#[test]
fn blocking_calls_work_outside_and_are_refused_inside_of_a_runtime() {
    let store = Trial::new().store().blocking().unwrap();
    let model = model(10, 1 << 17);
    store.save("model.tenarc", &model).unwrap();
    assert!(store.load::<Model>("model.tenarc").unwrap() == model);
    let archive = store.archive("model.tenarc").unwrap();
    drop(store.clone());
    let some: Vec<f32> = archive.get().unwrap().tensor("w003").unwrap();
    assert_eq!(some, *model["w003"]);
    in_runtimes(|| async {
        for refused in [
            store.save("other.tenarc", &1).err(),
            store.load::<i32>("other.tenarc").err(),
            store.delete("other.tenarc").err(),
            archive.get().err(),
            Trial::new().store().blocking().err(),
        ] {
            assert_eq!(refused.unwrap().kind(), Kind::Unsupported);
        }
        Ok(())
    });
}
