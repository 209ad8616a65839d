//! Services that move interrupts or change settings.

use crate::setting::Document;

use super::builder::{PlanBuilder, Rationale};
use super::target::PlanInput;

pub(super) const IRQBALANCE: &str = "irqbalance";
/// Services that apply rules of their own to settings of a plan: process name, full name, remedy.
const OTHERS: [(&str, &str, &str); 2] = [
    (
        "tuned",
        "tuned",
        "isolane tune export --format tuned makes a profile for it; or: systemctl disable --now tuned",
    ),
    (
        // Truncated as in `/proc`.
        "power-profiles-",
        "power-profiles-daemon",
        "systemctl disable --now power-profiles-daemon",
    ),
];

pub(super) fn plan(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    if !input.tuning.services.value {
        return;
    }
    for (shown, name, remedy) in OTHERS {
        if input.runs(shown) {
            builder.not_planned(
                format!("services.{name}"),
                format!("{name} runs, and may undo steps of this plan when it likes"),
                remedy,
            );
        }
    }
    let Some(core) = input.core().filter(|_| input.runs(IRQBALANCE)) else {
        return;
    };
    if input.facts.boot.has_systemd != Some(true) {
        builder.not_planned(
            "services.irqbalance",
            "irqbalance runs, and was not started by systemd: what it may move cannot be set by a file of ours",
            format!("end it, or start it with IRQBALANCE_BANNED_CPULIST={core}"),
        );
        return;
    }
    builder.document(
        input.facts,
        "services.irqbalance",
        Document::BannedFromBalance { core },
        Rationale::of_all(
            format!(
                "every ten seconds irqbalance moves interrupts, to core {core} too, and undoes what was set of them"
            ),
            "it balances among the other cores only, and takes the critical queue's interrupt there too, unless it is \
             told not to (--banirq); takes systemctl daemon-reload and a restart of irqbalance, or a boot; what \
             /etc/default/irqbalance or /etc/sysconfig/irqbalance says of the same variable counts before it",
        ),
    );
}
