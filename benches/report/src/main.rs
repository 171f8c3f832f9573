//! ```text
//! cargo run -p tenarc-benches-report              # writes the charts and tables
//! cargo run -p tenarc-benches-report -- --check   # fails if they are not up to date
//! ```

use std::process::ExitCode;

fn main() -> ExitCode {
    tenarc_benches_report::main(std::env::args().skip(1))
}
