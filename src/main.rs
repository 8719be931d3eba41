use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(verb), Some(folder)) if verb == "supervise" => holon::runtime::process::supervise(Path::new(&folder)),
        _ => ExitCode::SUCCESS,
    }
}
