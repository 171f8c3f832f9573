//! `tenarc` with objects of a server in place of files.

#[path = "../../tests/support/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenarc::{Archive, OArchive, Tensor};

use self::server::Served;

type Model = BTreeMap<String, Tensor<Vec<f32>>>;

/// 20 tensors of 200 KB.
fn model() -> Model {
    (0u8..20).map(|n| (format!("w{n}"), Tensor(vec![f32::from(n); 50_000]))).collect()
}

fn serve() -> (String, Arc<Mutex<Served>>) {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&model()).unwrap();
    let archive: Arc<[u8]> = out.finish().unwrap().into();
    let json: Arc<[u8]> = br#"{"name": "Ada", "age": 36}"#.to_vec().into();
    let objects = [("/runs/7/model.tenarc", archive), ("/ada.json", json)];
    let objects = objects.map(|(path, content)| (path.to_owned(), content));
    server::start(Duration::ZERO, BTreeMap::from(objects))
}

fn tenarc(args: &[&str]) -> Output {
    // For the servers of tests/store/run.
    let settings = [
        ("AWS_ENDPOINT", std::env::var("TENARC_S3").unwrap_or_default()),
        ("AWS_ALLOW_HTTP", "true".into()),
        ("AWS_REGION", "us-east-1".into()),
        ("AWS_ACCESS_KEY_ID", "test".into()),
        ("AWS_SECRET_ACCESS_KEY", "test".into()),
        ("AZURE_STORAGE_USE_EMULATOR", "true".into()),
    ];
    Command::new(env!("CARGO_BIN_EXE_tenarc")).envs(settings).args(args).output().unwrap()
}

fn printed(args: &[&str]) -> String {
    let output = tenarc(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = tenarc(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The requests and bytes since the last call.
fn taken(served: &Mutex<Served>) -> (usize, usize) {
    let mut served = served.lock().unwrap();
    (std::mem::take(&mut served.requests), std::mem::take(&mut served.bytes))
}

#[test]
fn an_archive_is_read_by_ranges() {
    let (url, served) = serve();
    let address = format!("{url}/runs/7/model.tenarc");
    let listed = printed(&["ls", &address]);
    assert!(listed.contains("w19") && listed.contains("50000"), "{listed}");
    let (requests, bytes) = taken(&served);
    // The start, which says what it is, the end, and the header.
    assert!(requests <= 4 && bytes < 100_000, "{requests} requests, {bytes} bytes");
    let shown = printed(&["show", &address, "w7"]);
    assert!(shown.contains('7'), "{shown}");
    let (_, bytes) = taken(&served);
    // Of 4 MB, one tensor.
    assert!(bytes < 300_000, "{bytes}");
    let about = printed(&["info", &address]);
    assert!(about.contains("model.tenarc"), "{about}");
    printed(&["verify", &address]);
    assert!(taken(&served).1 > 4_000_000);
    assert_eq!(
        printed(&["get", &address, "w3"]).lines().count(),
        printed(&["get", &address, "w4"]).lines().count()
    );
}

#[test]
fn other_formats_are_copied_first() {
    let (url, _) = serve();
    let shown = printed(&["show", &format!("{url}/ada.json")]);
    assert!(shown.contains("Ada"), "{shown}");
}

#[test]
fn an_output_is_uploaded_when_it_is_complete() {
    let (url, served) = serve();
    let from = format!("{url}/runs/7/model.tenarc");
    for name in ["copy.tenarc", "copy.safetensors"] {
        printed(&["convert", &from, &format!("{url}/{name}")]);
        let copy = served.lock().unwrap().objects[&format!("/{name}")].clone();
        assert!(copy.len() > 4_000_000, "{name}");
        if name == "copy.tenarc" {
            let loaded: Model = Archive::new(&copy[..]).unwrap().load().unwrap();
            assert!(loaded == model());
        }
    }
    taken(&served);
    printed(&["ls", &format!("{url}/copy.safetensors")]);
    let (requests, bytes) = taken(&served);
    // The start, the length, and all of it at once.
    assert!(requests <= 4 && bytes > 4_000_000, "{requests} requests, {bytes} bytes");
    // A file of another format that cannot be written leaves no object.
    refused(&["convert", &format!("{url}/ada.json"), &format!("{url}/ada.safetensors")]);
    assert!(!served.lock().unwrap().objects.contains_key("/ada.safetensors"));
}

#[test]
fn objects_are_copied_as_they_are() {
    let (url, served) = serve();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let at = |name: &str| format!("{url}/{name}");
    taken(&served);
    printed(&["cp", &at("runs/7/model.tenarc"), &at("ada.json"), folder]);
    // The starts and the lengths, and then each whole.
    let (requests, bytes) = taken(&served);
    assert!(requests <= 10 && bytes < 4_100_000, "{requests} requests, {bytes} bytes");
    printed(&["cp", &format!("{folder}/model.tenarc"), &at("copies/")]);
    printed(&["cp", &at("copies/model.tenarc"), &at("again.tenarc")]);
    let objects = &served.lock().unwrap().objects;
    let local = std::fs::read(format!("{folder}/model.tenarc")).unwrap();
    for name in ["/runs/7/model.tenarc", "/copies/model.tenarc", "/again.tenarc"] {
        assert!(objects[name][..] == local[..], "{name}");
    }
}

#[test]
fn errors_name_the_object() {
    let (url, _) = serve();
    let error = refused(&["ls", &format!("{url}/missing.tenarc")]);
    assert!(error.contains("missing.tenarc") && error.contains("no such object"), "{error}");
    let error = refused(&["ls", "https://"]);
    assert!(error.contains("expected the address of an object"), "{error}");
}

#[test]
#[ignore = "needs servers: tests/store/run"]
fn stores_of_two_protocols_are_read_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let local = dir.path().join("model.tenarc");
    tenarc::save(&local, &model()).unwrap();
    let local = local.to_str().unwrap();
    for folder in ["s3://tenarc/command", "az://tenarc/command"] {
        let [first, second] =
            ["model.tenarc", "copy.safetensors"].map(|name| format!("{folder}/{name}"));
        printed(&["convert", local, &first]);
        printed(&["convert", "--no-clobber", &first, &second]);
        let error = refused(&["convert", "--no-clobber", &first, &second]);
        assert!(error.contains("--no-clobber"), "{error}");
        for address in [&first, &second] {
            assert!(printed(&["ls", address]).contains("w19"));
            printed(&["verify", address]);
        }
        assert_eq!(tenarc(&["diff", &first, &second]).status.code(), Some(0));
    }
}
