//! `isolane tune`: plan, apply, verify and roll back settings of this machine.

mod apply;
mod failure;
mod plan;
mod receive_queues;
mod status;
mod verify;

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use isolane::Interfaces;
use isolane_tune::apply::{Links, STATE_FOLDER, damaged_journals};
use isolane_tune::limits::LINK_TIMEOUT;
use isolane_tune::verify::{ProbeError, ReceiveQueues};
use isolane_tune::{Interface, interfaces, vlan_parent};

use self::apply::Apply;
use self::failure::failure;
use self::plan::{Export, PlanChanges};
pub(super) use self::plan::{FACTS, recorded};
use self::receive_queues::{Answer, Learn, Ports};
use self::status::ShowStatus;
use self::verify::Verify;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{joined, tell};
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(crate) enum Tune {
    /// Plan changes to this machine, each with its reason, cost and undo; changes nothing
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane tune plan", "plan the changes of the description's profile on this machine"),
        ("isolane tune plan --profile latency --diff", "print only what another profile would change"),
        ("isolane tune plan plan.json", "save the plan, for `isolane tune apply plan.json`"),
        (
            "isolane tune plan --facts left.json --host left",
            "plan for another machine, recorded there with: isolane doctor --facts --json left.json",
        ),
    ], "doctor (what is wrong, in words), tune export (for other tools), config (the profile's switches)"))]
    Plan(PlanChanges),
    /// Apply a plan completely, or not at all
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune apply plan.json", "apply now, and again at each boot"),
        ("sudo isolane tune apply plan.json --no-boot", "apply until the next boot only"),
    ], "tune rollback (undoes it), tune status (whether it is still in effect)"))]
    Apply(Apply),
    /// Show the applied settings, and which of them other programs have changed since
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane tune status", "list the settings; exit code 1 if one is no longer in effect"),
        ("isolane tune status --json - | jq '.settings[] | select(.in_force | not)'", "print those not in effect"),
    ], "tune verify (measures their effect), tune rollback (undoes them all)"))]
    Status(ShowStatus),
    /// Measure the effect of the applied settings: wake-up latency, other work on the core, transmit and receive queues
    #[command(after_help = ExitCode::help_with_examples(&[
        (
            "sudo isolane tune verify",
            "check settings and wake-ups; exit code 1 if a check fails or there is nothing to check",
        ),
        ("sudo isolane tune verify --core 3 --seconds 60 --max-latency 100us", "fail if a wake-up is later"),
        ("sudo isolane tune verify -i eth0 --peer 10.0.0.2", "check also which queues datagrams use"),
        ("sudo isolane tune verify --watch", "after the checks, report each setting that another program changes"),
    ], "tune ports (receive queues by port), tune status (the settings alone)"))]
    Verify(Verify),
    /// Find UDP ports whose datagrams arrive on a given receive queue, here and at another host
    #[command(after_help = ExitCode::help_with_examples(&[
        (
            "sudo isolane tune ports 10.0.0.2 -i eth0",
            "print the receive queues of each pair of ports; exit code 1 if the host does not answer",
        ),
        (
            "sudo isolane tune ports 10.0.0.2 -i eth0 --queue 1 --peer-queue 1",
            "find pairs whose datagrams arrive on queue 1 at both ends; exit code 1 if there are none",
        ),
    ], "tune answer (runs on the other host)"))]
    Ports(Ports),
    /// Measure which RSS indirection table entries another host's datagrams select, if the device does not report its
    /// hash key
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune learn 10.0.0.2 -i eth0 --json learnt.json", "measure, in about a second; then:"),
        (
            "isolane tune plan --receive-queues learnt.json",
            "plan an RSS table that sends described flows to their queue",
        ),
    ], "tune answer --learn (runs on the other host), tune ports (checks the result)"))]
    Learn(Learn),
    /// Answer `tune ports`, `learn` or `verify` of another host with the receive queues of its datagrams
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune answer -i eth0", "answer for a minute, at the default ports"),
        ("sudo isolane tune answer -i eth0 --ports 7407,7415 --seconds 600", "answer at other ports, for ten minutes"),
        ("sudo isolane tune answer -i eth0 --learn", "answer `tune learn`"),
    ], "tune ports, tune learn, tune verify --peer (ask from the other host)"))]
    Answer(Answer),
    /// Print a plan in another tool's format, for machines without isolane
    #[command(after_help = ExitCode::help_with_examples(&[
        (
            "isolane tune export --format sh > tune.sh",
            "write a script; run it with `sh tune.sh apply`, undo with `sh tune.sh undo`",
        ),
        ("isolane tune export --format systemd --to root", "write a unit, its script and drop-ins below root/"),
        ("isolane tune export --format tuned", "print a TuneD profile"),
    ], "tune plan (prints the same plan, with reasons)"))]
    Export(Export),
    /// Restore the settings found before the first plan, also after a crash or a reboot
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune rollback", "restore all settings; safe to repeat"),
    ], "tune status (what it would undo)"))]
    Rollback(StateArguments),
}

/// Folder of the journal.
#[derive(Debug, Args)]
pub(crate) struct StateArguments {
    /// Use the journal in this folder, which holds the settings found before any change
    #[arg(long, value_name = "DIR", default_value = STATE_FOLDER)]
    state: PathBuf,
}

impl Tune {
    pub(super) fn run(self, settings: Settings) -> Result<ExitCode, Failure> {
        match self {
            Self::Plan(plan) => plan.run(settings),
            Self::Export(export) => export.run(settings),
            Self::Answer(answer) => answer.run(settings),
            Self::Apply(apply) => settings.begin().and_then(|()| apply.run()),
            Self::Status(status) => settings.begin().and_then(|()| status.run()),
            Self::Rollback(state) => settings.begin().and_then(|()| status::rollback(&state)),
            Self::Verify(verify) => verify.run(&settings),
            Self::Ports(ports) => ports.run(settings),
            Self::Learn(learn) => learn.run(&settings),
        }
    }
}

/// Returns the interface of `--interface`. Exactly one must be named, because each interface has its own queues.
fn only_interface(settings: &Settings) -> Result<&str, Failure> {
    match &settings.network.interfaces.value {
        Interfaces::Named(names) if names.len() == 1 => Ok(&names[0]),
        _ => Err(no_interface()),
    }
}

fn no_interface() -> Failure {
    Failure::wrong_usage(
        "one interface must be named",
        "each interface has its own queues",
    )
    .with_remedy("name it: --interface NAME")
}

/// First address of an interface, and the receive queues of its device. The device of a VLAN interface is the
/// underlying device.
fn place_of(interface: &str) -> Result<(Ipv4Addr, ReceiveQueues), Failure> {
    let (known, device) = served_by(interface)?;
    let failed = |why: &str| {
        let what = format!("{interface} cannot be used");
        Failure::forbidden(what, why)
    };
    let Some((address, _)) = known.addresses.first() else {
        let remedy = format!("give it an address: ip address add ADDRESS/24 dev {interface}");
        return Err(failed("it has no IPv4 address").with_remedy(remedy));
    };
    let queues =
        ReceiveQueues::of(&device.name).ok_or_else(|| failed("it has just been removed"))?;
    Ok((*address, queues))
}

/// Interface and its device. The device of a VLAN interface is the underlying device.
fn served_by(interface: &str) -> Result<(Interface, Interface), Failure> {
    let failed = |why: String| {
        let what = format!("{interface} cannot be used");
        Failure::forbidden(what, why)
    };
    let all = interfaces().map_err(|error| failed(error.to_string()))?;
    let known = all.iter().find(|known| known.name == interface);
    let known = known.ok_or_else(|| {
        let names = joined(all.iter().map(|known| &known.name), ", ");
        failed(format!("there is no interface of that name, only {names}"))
    })?;
    Ok((known.clone(), vlan_parent(&all, known).clone()))
}

/// Checks that the folder named by `--state` exists. Without the check, a misspelt name would look like a machine
/// without a plan.
fn check_state(state: &StateArguments) -> Result<(), Failure> {
    let folder = &state.state;
    if folder.as_os_str() == STATE_FOLDER || folder.symlink_metadata().is_ok() {
        return Ok(());
    }
    Err(Failure::forbidden(
        format!("cannot read the folder {}", folder.display()),
        "it does not exist, or is not visible",
    )
    .with_remedy("name the folder that the plan was applied with: --state DIR"))
}

/// Paths of damaged journals, which earlier rollbacks set aside.
fn damaged(state: &StateArguments) -> Result<Vec<PathBuf>, Failure> {
    let kept = damaged_journals(&state.state);
    kept.map_err(|error| failure("cannot look for damaged journals", &error.into()))
}

/// Sentence on damaged journals and their consequence; `None` if there are none.
fn damage_note(kept: &[PathBuf]) -> Option<String> {
    let paths = joined(kept.iter().map(|path| path.display()), ", ");
    (!kept.is_empty()).then(|| {
        format!(
            "{paths}: settings missing from a damaged journal were not restored, and may still have the values of the plan"
        )
    })
}

/// Returns a failure with [`ExitCode::AnswerIsNo`] if there are damaged journals.
fn check_damaged(kept: &[PathBuf]) -> Result<(), Failure> {
    let Some(why) = damage_note(kept) else {
        return Ok(());
    };
    let what = "an earlier rollback could not restore all settings";
    Err(Failure::new(ExitCode::AnswerIsNo, what, why).with_remedy(
        "restore the settings by hand, or reboot, which resets all settings except files; then remove the damaged \
         journal",
    ))
}

/// Failure for a port that cannot be bound.
fn taken(port: u16, error: &io::Error) -> Failure {
    let what = format!("port {port} cannot be opened");
    Failure::forbidden(what, error).with_remedy(match error.kind() {
        io::ErrorKind::AddrInUse => {
            "end the participant that uses it, or name other ports: --ports LIST"
        }
        io::ErrorKind::PermissionDenied => {
            "level 7 needs CAP_NET_ADMIN or CAP_NET_RAW: run it as root, or give --level 6"
        }
        _ => "name other ports: --ports LIST",
    })
}

/// Failure of a measurement with a peer. `remedy` names the command to run on the peer if it did not answer.
fn unanswered(peer: Ipv4Addr, error: ProbeError, remedy: &str) -> Failure {
    match error {
        ProbeError::Port(port, error) => taken(port, &error),
        ProbeError::Silent => Failure::new(
            ExitCode::AnswerIsNo,
            format!("{peer} does not answer"),
            "no probe was answered at any of the ports",
        )
        .with_remedy(remedy),
        ProbeError::Restarted => Failure::new(
            ExitCode::AnswerIsNo,
            format!("{peer} was rebooted during the measurement"),
            "its device has another RSS hash key since then, so answers from before and after the reboot do not fit \
             together",
        )
        .with_remedy("measure again"),
        ProbeError::System(error) => Failure::forbidden(
            "the measurement ended early",
            error.to_string(),
        ),
    }
}

/// Waits until the links that went down are up again, because the user may send next. Reports links that stay down.
fn await_links(links: &io::Result<Links>, is_stopped: &dyn Fn() -> bool) {
    let down = match links {
        Ok(links) => links.wait(is_stopped),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    };
    match down {
        Ok(down) if is_stopped() && !down.is_empty() => {
            tell(format!(
                "note: not up again yet: the link of {}",
                down.join(", ")
            ));
        }
        Ok(down) => {
            for interface in down {
                tell(format!(
                    "note: the link of {interface} went down, and is not up again after {} s: check its other end",
                    LINK_TIMEOUT.as_secs()
                ));
            }
        }
        Err(error) => tell(format!(
            "note: the state of the links cannot be read ({error}): some devices need seconds until their link is up"
        )),
    }
}
