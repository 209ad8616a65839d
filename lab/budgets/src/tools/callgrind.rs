//! Instructions: callgrind emulates the program and counts those inside of one function.

use std::path::Path;
use std::process::Command;

use isolane_support::{Result, command};

/// Instructions of a round inside of a function, the kernel's not among them.
pub(super) fn instructions(
    program: &Path,
    way: &str,
    rounds: u32,
    function: &str,
    folder: &Path,
) -> Result<f64> {
    let profile = folder.join(format!("callgrind.{way}.{function}"));
    let arguments = [
        "--tool=callgrind",
        &format!("--toggle-collect=*::{function}"),
        &format!("--callgrind-out-file={}", profile.display()),
    ];
    let mut callgrind = super::tool("valgrind", &arguments, program, way, rounds);
    Ok(collect(&mut callgrind)? as f64 / f64::from(rounds))
}

/// Runs callgrind; returns what it collected.
pub(crate) fn collect(callgrind: &mut Command) -> Result<u64> {
    let output = callgrind
        .output()
        .map_err(|error| command::cannot_start(callgrind, &error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = collected(&said).filter(|&count| count > 0 && output.status.success());
    collected.ok_or_else(|| {
        let command = command::displayed(callgrind);
        format!("`{command}` collected nothing ({}): {said}", output.status).into()
    })
}

/// The line `==PID== Collected : 1705000`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callgrind_collected_stands_behind_the_last_blank() {
        let said = "==7== Events    : Ir\n==7== Collected : 1705000\n==7== \n";
        assert_eq!(collected(said), Some(1_705_000));
        assert_eq!(collected("==7== error"), None);
    }
}
