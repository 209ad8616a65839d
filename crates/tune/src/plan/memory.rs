//! Memory: avoids page faults, compaction and swapping while a critical job waits.

use crate::setting::Document;

use super::builder::{PlanBuilder, Rationale};
use super::target::PlanInput;

pub(super) fn plan(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let facts = input.facts;
    if input.tuning.memory.value && facts.memory.transparent_huge_pages.as_deref() == Some("always")
    {
        builder.attribute(
            facts,
            "memory.huge-pages",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "madvise",
            Rationale::of_all(
                "a page fault may copy 2 MiB, some 100 us, in a program that did not ask for huge pages",
                "programs with large heaps take more page faults, unless they ask (madvise)",
            ),
        );
    }
    if let Some(bytes @ 1..) = facts
        .memory
        .swap_bytes
        .filter(|_| input.tuning.memory.value)
    {
        builder.not_planned(
            "memory.swap",
            format!(
                "{} MiB of swap are on: to take them away may end programs that are in them",
                bytes >> 20
            ),
            "swapoff -a, and remove it from /etc/fstab; or lock the program's memory (mlockall)",
        );
    }
    limits(input, builder);
}

fn limits(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    if !input.tuning.limits.value {
        builder.not_planned(
            "rights.limits",
            "who may use real-time priorities and lock memory is not for a profile to say",
            "limits = true in [tune] gives it to the group realtime; of a service: LimitRTPRIO=80, \
             LimitMEMLOCK=infinity",
        );
        return;
    }
    builder.document(
        input.facts,
        "rights.limits",
        Document::RealtimeLimits,
        Rationale::of_all(
            "executors run at real-time priorities with locked memory, without being root",
            "members of the group realtime can take a core for themselves; from their next login on",
        ),
    );
}
