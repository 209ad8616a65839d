//! Isolation of the executor's core from other programs, by kernel arguments or systemd.
//!
//! Both deny the core to all other programs, so the profile `balanced` uses neither.

use isolane_model::Isolation;

use super::builder::PlanBuilder;
use super::target::PlanInput;
use super::{arguments, slices};

pub(super) fn plan(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let Some(core) = input.core() else {
        return;
    };
    let others = input.other_cores();
    if input.tuning.isolation.value == Isolation::None {
        return;
    }
    if others.is_empty() {
        builder.not_planned(
            "boot.isolation",
            "there is one core: the executor shares it with everything else",
            "use a machine with two cores or more",
        );
        return;
    }
    match input.tuning.isolation.value {
        Isolation::Boot => arguments::plan(input, core, &others, builder),
        _ => slices::plan(input, core, &others, builder),
    }
}
