//! `isolane tune`, one file per subcommand.

mod answer;
mod apply;
mod export;
mod failure;
mod learn;
mod plan;
mod ports;
mod rollback;
mod source;
mod status;
mod verify;

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use isolane_model::{Source, Sourced};
use isolane_tune::apply::{Links, damaged_journals};
use isolane_tune::limits::LINK_TIMEOUT;
use isolane_tune::verify::{ProbeError, ReceiveQueues};
use isolane_tune::{Interface, interfaces, vlan_parent};

use self::failure::failure;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::{TuneSettings, TuneState};

pub(super) fn run(settings: TuneSettings) -> Result<ExitCode, Failure> {
    match settings {
        TuneSettings::Plan(settings) => plan::run(*settings),
        TuneSettings::Apply(settings) => apply::run(settings),
        TuneSettings::Status(state, json) => status::run(&state, json.as_ref()),
        TuneSettings::Verify(settings) => verify::run(&settings),
        TuneSettings::Ports(settings) => ports::run(&settings),
        TuneSettings::Learn(settings) => learn::run(&settings),
        TuneSettings::Answer(settings) => answer::run(&settings),
        TuneSettings::Export(settings) => export::run(&settings),
        TuneSettings::Rollback(state) => rollback::run(&state),
    }
}

/// First address of an interface, and the receive queues of its device; for a VLAN, of the underlying device.
fn place_of(interface: &str) -> Result<(Ipv4Addr, ReceiveQueues), Failure> {
    let (known, device) = served_by(interface)?;
    let failed = |why: &str| {
        let what = format!("{interface} cannot be used");
        Failure::new(ExitCode::MachineForbids, what, why)
    };
    let Some((address, _)) = known.addresses.first() else {
        let remedy = format!("give it one: ip address add ADDRESS/24 dev {interface}");
        return Err(failed("it has no IPv4 address").with_remedy(remedy));
    };
    let queues = ReceiveQueues::of(&device.name).ok_or_else(|| failed("it has just gone"))?;
    Ok((*address, queues))
}

/// Interface and its device; for a VLAN, the underlying device.
fn served_by(interface: &str) -> Result<(Interface, Interface), Failure> {
    let failed = |why: String| {
        let what = format!("{interface} cannot be used");
        Failure::new(ExitCode::MachineForbids, what, why)
    };
    let all = interfaces().map_err(|error| failed(error.to_string()))?;
    let known = all.iter().find(|known| known.name == interface);
    let known = known.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
        failed(format!(
            "there is none of that name, only {}",
            names.join(", ")
        ))
    })?;
    Ok((known.clone(), vlan_parent(&all, known).clone()))
}

/// Checks that a named state folder exists, because a misspelt name would look like "no plan applied".
fn check_state(state: &TuneState) -> Result<(), Failure> {
    let Sourced { value, source } = &state.0;
    if *source == Source::Default || value.symlink_metadata().is_ok() {
        return Ok(());
    }
    Err(Failure::new(
        ExitCode::MachineForbids,
        format!("{} cannot be looked into", value.display()),
        "there is no such folder, or it cannot be seen",
    )
    .with_remedy("name the folder that the plan was applied with: --state DIR"))
}

/// Damaged journals that earlier rollbacks kept.
fn damaged(state: &TuneState) -> Result<Vec<PathBuf>, Failure> {
    let kept = damaged_journals(&state.0.value);
    kept.map_err(|error| failure("damaged journals cannot be looked for", &error.into()))
}

/// Sentence on damaged journals and what they leave changed; `None` if there are none.
fn damage_note(kept: &[PathBuf]) -> Option<String> {
    let paths: Vec<String> = kept.iter().map(|path| path.display().to_string()).collect();
    (!paths.is_empty()).then(|| {
        format!(
            "{}: settings missing from a damaged journal were not restored, and may still have the values of the plan",
            paths.join(", ")
        )
    })
}

/// Fails with [`ExitCode::AnswerIsNo`] while damaged journals are kept.
fn check_damaged(kept: &[PathBuf]) -> Result<(), Failure> {
    let Some(why) = damage_note(kept) else {
        return Ok(());
    };
    let what = "an earlier rollback could not restore everything";
    Err(Failure::new(ExitCode::AnswerIsNo, what, why).with_remedy(
        "restore them by hand, or reboot, which resets all but files; then remove the damaged journal",
    ))
}

/// Failure to bind a port.
fn taken(port: u16, error: &io::Error) -> Failure {
    let what = format!("port {port} cannot be had");
    Failure::new(ExitCode::MachineForbids, what, error.to_string()).with_remedy(
        match error.kind() {
            io::ErrorKind::AddrInUse => {
                "end the participant that has it, or name others: --ports LIST"
            }
            io::ErrorKind::PermissionDenied => {
                "level 7 takes CAP_NET_ADMIN or CAP_NET_RAW: run it as root, or give --level 6"
            }
            _ => "name others: --ports LIST",
        },
    )
}

/// Failure to get answers from a peer. `remedy` names the command to run there.
fn unanswered(peer: Ipv4Addr, error: ProbeError, remedy: &str) -> Failure {
    match error {
        ProbeError::Port(port, error) => taken(port, &error),
        ProbeError::Silent => Failure::new(
            ExitCode::AnswerIsNo,
            format!("{peer} does not answer"),
            "no question was answered at any of the ports",
        )
        .with_remedy(remedy),
        ProbeError::Restarted => Failure::new(
            ExitCode::AnswerIsNo,
            format!("{peer} rebooted during the measurement"),
            "answers before and after are of two keys of its receive hash",
        )
        .with_remedy("ask again"),
        ProbeError::System(error) => Failure::new(
            ExitCode::MachineForbids,
            "asking ended early",
            error.to_string(),
        ),
    }
}

/// Waits for interrupted links, because the caller's next step may send, and reports those that did not return.
fn await_links(links: &io::Result<Links>, is_stopped: &dyn Fn() -> bool) {
    let down = match links {
        Ok(links) => links.wait(is_stopped),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    };
    match down {
        Ok(down) if is_stopped() && !down.is_empty() => {
            tell(format!(
                "note: not back yet: the link of {}",
                down.join(", ")
            ));
        }
        Ok(down) => {
            for interface in down {
                tell(format!(
                    "note: the link of {interface} went down, and is not back after {} s: look at its other end",
                    LINK_TIMEOUT.as_secs()
                ));
            }
        }
        Err(error) => tell(format!(
            "note: whether links are back cannot be seen ({error}): some devices take seconds"
        )),
    }
}
