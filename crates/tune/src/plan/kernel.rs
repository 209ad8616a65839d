//! Limits that no plan can change: the kernel, and a hypervisor.

use super::builder::PlanBuilder;
use super::target::PlanInput;

pub(super) fn plan(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let kernel = &input.facts.kernel;
    if kernel.realtime == Some(false) {
        builder.not_planned(
            "kernel.realtime",
            format!(
                "kernel {} is not PREEMPT_RT: whatever is set up, no bound can be stated",
                kernel.release
            ),
            "install one (Debian: apt install linux-image-rt-amd64), boot it, and plan again",
        );
    }
    if kernel.virtual_machine == Some(true) {
        builder.not_planned(
            "kernel.virtual-machine",
            "this is a virtual machine: the hypervisor takes cores away, whatever is set up in here",
            "pin its virtual cores on the host, and keep other guests off them",
        );
    }
}
