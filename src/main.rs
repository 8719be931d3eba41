//! The `holon` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    holon::cli::main()
}
