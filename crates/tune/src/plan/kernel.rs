//! Limits that no plan can change: the kernel, and a hypervisor.

use super::carrier::Asked;
use super::draft::Draft;

pub(super) fn plan(asked: &Asked<'_>, draft: &mut Draft) {
    let kernel = &asked.facts.kernel;
    if kernel.realtime == Some(false) {
        draft.refuse(
            "kernel.realtime",
            format!(
                "kernel {} is not PREEMPT_RT: whatever is set up, no bound can be stated",
                kernel.release
            ),
            "install one (Debian: apt install linux-image-rt-amd64), boot it, and plan again",
        );
    }
    if kernel.virtual_machine == Some(true) {
        draft.refuse(
            "kernel.virtual-machine",
            "this is a virtual machine: the hypervisor takes cores away, whatever is set up in here",
            "pin its virtual cores on the host, and keep other guests off them",
        );
    }
}
