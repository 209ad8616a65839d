//! Services that move interrupts or change settings.

use crate::setting::Document;

use super::carrier::Asked;
use super::draft::{Draft, Said};

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

pub(super) fn plan(asked: &Asked<'_>, draft: &mut Draft) {
    if !asked.tuning.services.value {
        return;
    }
    for (shown, name, remedy) in OTHERS {
        if asked.runs(shown) {
            draft.refuse(
                format!("services.{name}"),
                format!("{name} runs, and may undo steps of this plan when it likes"),
                remedy,
            );
        }
    }
    let Some(core) = asked.core().filter(|_| asked.runs(IRQBALANCE)) else {
        return;
    };
    if asked.facts.boot.has_systemd != Some(true) {
        draft.refuse(
            "services.irqbalance",
            "irqbalance runs, and was not started by systemd: what it may move cannot be set by a file of ours",
            format!("end it, or start it with IRQBALANCE_BANNED_CPULIST={core}"),
        );
        return;
    }
    draft.document(
        asked.facts,
        "services.irqbalance",
        Document::BannedFromBalance { core },
        Said::of_all(
            format!(
                "every ten seconds irqbalance moves interrupts, to core {core} too, and undoes what was set of them"
            ),
            "it balances among the other cores only, and takes the critical queue's interrupt there too, unless it is \
             told not to (--banirq); takes systemctl daemon-reload and a restart of irqbalance, or a boot; what \
             /etc/default/irqbalance or /etc/sysconfig/irqbalance says of the same variable counts before it",
        ),
    );
}
