//! `isolane child ROLE`: the cable, a flood, an end of a measurement. Nobody types this.

use crate::exit_code::ExitCode;

/// Does what the role says until the parent says stop.
pub(crate) fn run(role: &str) -> ExitCode {
    if isolane_bench::child::main(role) == std::process::ExitCode::SUCCESS {
        ExitCode::Done
    } else {
        ExitCode::AnswerIsNo
    }
}
