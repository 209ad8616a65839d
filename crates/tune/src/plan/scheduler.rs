//! Scheduler limits on real-time threads.

use super::builder::{PlanBuilder, Rationale};
use super::target::PlanInput;

pub(super) fn plan(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let scheduling = &input.facts.scheduling;
    if input.tuning.throttling_off.value {
        let held = match (
            scheduling.realtime_runtime_us,
            scheduling.realtime_period_us,
        ) {
            (Some(runtime), Some(period)) => (period - runtime).max(0) / 1000,
            _ => 0,
        };
        builder.attribute(
            input.facts,
            "scheduler.throttling",
            "/proc/sys/kernel/sched_rt_runtime_us",
            "-1",
            Rationale::of_all(
                format!("a real-time thread that does not sleep stands still for {held} ms of each period"),
                "a runaway real-time thread takes its core for good: nothing ordinary runs there again",
            ),
        );
    }
    let Some(core) = input.core().filter(|_| input.tuning.fair_server_off.value) else {
        return;
    };
    builder.attribute(
        input.facts,
        format!("scheduler.fair-server.{core}"),
        &format!("/sys/kernel/debug/sched/fair_server/cpu{core}/runtime"),
        "0",
        Rationale::of_all(
            "when ordinary programs wait on the executor's core, it stands still for as long as is kept for them: \
             50 ms of each second unless somebody changed it",
            format!("ordinary programs on core {core} may starve"),
        ),
    );
}
