//! Options of `tune`.

mod apply;
mod landing;
mod plan;
mod verify;

use clap::{Args, Subcommand};

use crate::exit_code::ExitCode;

pub(crate) use self::apply::{TuneApplyArguments, TuneStateArguments, TuneStatusArguments};
pub(crate) use self::landing::{AnswerArguments, LearnArguments, PortsArguments};
pub(crate) use self::plan::{TuneExportArguments, TunePlanArguments, TuneSourceArguments};
pub(crate) use self::verify::TuneVerifyArguments;

#[derive(Debug, Args)]
pub(crate) struct TuneArguments {
    #[command(subcommand)]
    pub(crate) tune: Tune,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tune {
    /// Plan changes of this machine, with reason, cost and undo of each; changes nothing
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane tune plan", "what the description's profile asks for, on this machine"),
        ("isolane tune plan --profile latency --diff", "another profile; only what would change"),
        ("isolane tune plan plan.json", "and keep it, for `isolane tune apply plan.json`"),
        (
            "isolane tune plan --facts left.json --host left",
            "of a machine that was recorded: isolane doctor --facts --json left.json",
        ),
    ], "doctor (what is wrong, in words), tune export (for other tools), config (the profile's switches)"))]
    Plan(TunePlanArguments),
    /// Apply a plan completely, or not at all
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune apply plan.json", "now, and again after each boot"),
        ("sudo isolane tune apply plan.json --no-boot", "until the next boot"),
    ], "tune rollback (undoes it), tune status (does it still stand)"))]
    Apply(TuneApplyArguments),
    /// Show applied settings, and those that others have changed since
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane tune status", "exit code 1 if something does not stand any more"),
        ("isolane tune status --json - | jq '.settings[] | select(.stands | not)'", "for programs"),
    ], "tune verify (does the machine do what it was set to), tune rollback (undoes it all)"))]
    Status(TuneStatusArguments),
    /// Measure whether the applied settings are effective: wake-ups, other work on the core, transmit queues
    ///
    /// Ends with exit code 1 if a check fails, and with 2 if there was nothing to check: no plan is applied, and no
    /// --at-most limits wake-up latency.
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune verify", "the settings, and wake-ups on the described host's core"),
        ("sudo isolane tune verify --core 3 --seconds 60 --at-most 100us", "exit code 1 if one was later"),
        ("sudo isolane tune verify -i eth0 --peer 10.0.0.2", "and by which transmit queue each level leaves"),
        ("sudo isolane tune verify --watch", "then tell whenever somebody undoes a setting"),
    ], "tune ports (where datagrams land), tune status (the settings alone)"))]
    Verify(TuneVerifyArguments),
    /// Find ports whose datagrams reach the critical receive queue in both directions, with the help of another host
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune ports 10.0.0.2 -i eth0", "where each pair of ports lands; exit code 1 without any answer"),
        (
            "sudo isolane tune ports 10.0.0.2 -i eth0 --queue 1 --peer-queue 1",
            "those that land on queue 1 at both ends; exit code 1 if there are none",
        ),
    ], "tune answer (runs on the other host)"))]
    Ports(PortsArguments),
    /// Learn which entries of the RSS indirection table a host's datagrams select, where the hash key cannot be read
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune learn 10.0.0.2 -i eth0 --json learnt.json", "asks for a second; then:"),
        ("isolane tune plan --placement learnt.json", "plans a table that leads described flows to their queue"),
    ], "tune answer --learn (runs on the other host), tune ports (then measures)"))]
    Learn(LearnArguments),
    /// Answer another host's `tune ports` or `tune learn` with the receive queues of its datagrams
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune answer -i eth0", "for a minute, at the ports suggested for level 7"),
        ("sudo isolane tune answer -i eth0 --ports 7407,7415 --seconds 600", "at others, for longer"),
        ("sudo isolane tune answer -i eth0 --learn", "at those that tune learn asks at"),
    ], "tune ports, tune learn (the sides that ask)"))]
    Answer(AnswerArguments),
    /// Print a plan in another tool's format, for machines without isolane
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane tune export --format sh > tune.sh", "a script: sh tune.sh apply | undo"),
        ("isolane tune export --format systemd --to root", "a unit, its script and drop-ins, as files"),
        ("isolane tune export --format tuned", "a profile of TuneD"),
    ], "tune plan (what is exported, with reasons)"))]
    Export(TuneExportArguments),
    /// Restore the settings found before the first plan, also after a crash or a reboot
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane tune rollback", "may be repeated"),
    ], "tune status (what it would undo)"))]
    Rollback(TuneStateArguments),
}
