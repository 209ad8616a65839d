//! Needs of a description on this machine, for `doctor` and `tune`.

use isolane_model::System;
use isolane_tune::Needs;

use crate::failure::Failure;

/// Needs of this machine's host entry, or of the domain alone without a description.
pub(super) fn of(
    system: Option<&System>,
    domain: u32,
    host: Option<&str>,
    hostname: &str,
) -> Result<Needs, Failure> {
    let Some(system) = system else {
        return Ok(Needs::of_domain(domain));
    };
    Needs::of_system(system, host, hostname).map_err(|hosts| {
        Failure::wrong_usage(
            format!(
                "the description has no host \"{}\"",
                host.unwrap_or_default().escape_debug()
            ),
            format!("its hosts are {}", hosts.join(", ")),
        )
        .with_remedy("name one of them: --host NAME")
    })
}
