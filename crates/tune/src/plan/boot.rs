//! Isolation of the executor's core from other programs, by kernel arguments or systemd.
//!
//! Both deny the core to all other programs, so the profile `balanced` uses neither.

use isolane_model::Isolation;

use super::carrier::Asked;
use super::draft::Draft;
use super::{arguments, slices};

pub(super) fn plan(asked: &Asked<'_>, draft: &mut Draft) {
    let Some(core) = asked.core() else {
        return;
    };
    let others = asked.other_cores();
    if asked.tuning.isolation.value == Isolation::None {
        return;
    }
    if others.is_empty() {
        draft.refuse(
            "boot.isolation",
            "there is one core: the executor shares it with everything else",
            "use a machine with two cores or more",
        );
        return;
    }
    match asked.tuning.isolation.value {
        Isolation::Boot => arguments::plan(asked, core, &others, draft),
        _ => slices::plan(asked, core, &others, draft),
    }
}
