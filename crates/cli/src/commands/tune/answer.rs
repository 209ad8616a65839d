//! `isolane tune answer`: answers another host's questions about receive queues.

use isolane_tune::verify::ProbeServer;

use super::{place_of, taken};
use crate::commands::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, tell};
use crate::settings::AnswerSettings;

pub(super) fn run(settings: &AnswerSettings) -> Result<ExitCode, Failure> {
    let (address, queues) = place_of(&settings.interface)?;
    let (ports, level) = (&settings.ports.value, settings.level.value);
    let answerer = ProbeServer::open(queues, address, ports, level)
        .map_err(|(port, error)| taken(port, &error))?;
    let until = Until::new(Some(settings.run_for.value))?;
    let named: Vec<String> = ports.iter().map(u16::to_string).collect();
    tell(format!(
        "answering at {address}, ports {}; on the other host: isolane tune ports {address} -i NAME",
        named.join(",")
    ));
    let answered = answerer
        .serve(settings.run_for.value, until.flag())
        .map_err(|error| {
            let what = "answering ended early";
            Failure::new(ExitCode::MachineForbids, what, error.to_string())
        })?;
    tell(format!(
        "{} answered, {} were none, {} came too fast",
        count_of(answered.questions, "question"),
        answered.foreign,
        answered.too_fast
    ));
    Ok(match until.interrupted() {
        true => ExitCode::Interrupted,
        false => ExitCode::Done,
    })
}
