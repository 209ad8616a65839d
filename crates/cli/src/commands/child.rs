//! `isolane child ROLE`: the cable, a flood, or an end of a measurement, started by its parent process.

use crate::exit_code::ExitCode;

pub(crate) fn run(role: &str) -> ExitCode {
    if isolane_bench::child::main(role) == std::process::ExitCode::SUCCESS {
        ExitCode::Done
    } else {
        ExitCode::AnswerIsNo
    }
}
