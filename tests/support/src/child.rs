//! Tests that go on in another process. The process runs this test program again, for one test only,
//! and environment variables tell that test what to do.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
#[cfg(unix)]
use std::{thread::sleep, time::Duration};

const ROLE: &str = "TENARC_TEST_ROLE";
const DIR: &str = "TENARC_TEST_DIR";

/// What this process was started for; `None` in an ordinary run of the tests.
pub fn role() -> Option<(String, PathBuf)> {
    Some((env::var(ROLE).ok()?, PathBuf::from(env::var_os(DIR)?)))
}

/// Arguments that run only `test`, in the main thread, with all output shown.
fn arguments(test: &str) -> [&str; 4] {
    [test, "--exact", "--nocapture", "--test-threads=1"]
}

/// The test `test` as a child with a role, behind a program that runs it (or none).
pub fn command(wrapper: &[&str], test: &str, role: &str, dir: &Path) -> Command {
    let this = env::current_exe().unwrap();
    let mut command = match wrapper {
        [] => Command::new(&this),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(&this);
            command
        }
    };
    command.args(arguments(test)).env(ROLE, role).env(DIR, dir).env_remove("RUST_BACKTRACE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn run(wrapper: &[&str], test: &str, role: &str, dir: &Path) -> Output {
    command(wrapper, test, role, dir).output().unwrap()
}

/// What a child has to say: the lines that begin with `mark`, without it.
pub fn told(output: &[u8], mark: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    // The harness writes in front of the first one.
    text.lines().filter_map(|line| Some(line.split_once(mark)?.1.to_owned())).collect()
}

/// A temporary directory in memory, where there is one: syncing takes its time elsewhere.
pub fn fast_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Starts a child that tells of its steps (a line with `step ` and a number for each), and kills it a little after it has told of
/// so many. Returns the last step that it told of.
#[cfg(unix)]
pub fn killed_after(command: &mut Command, steps: usize, later: Duration) -> u32 {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::ExitStatusExt as _;

    const SIGKILL: i32 = 9;

    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut told = lines.filter_map(|line| line.split_once("step ")?.1.parse().ok());
    let step = told.nth(steps - 1).expect("the run ended early");
    sleep(later);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
    told.last().unwrap_or(step)
}
