//! Memory: avoids page faults, compaction and swapping while a critical job waits.

use crate::setting::Document;

use super::carrier::Asked;
use super::draft::{Draft, Said};

pub(super) fn plan(asked: &Asked<'_>, draft: &mut Draft) {
    let facts = asked.facts;
    if asked.tuning.memory.value && facts.memory.transparent_huge_pages.as_deref() == Some("always")
    {
        draft.attribute(
            facts,
            "memory.huge-pages",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "madvise",
            Said::of_all(
                "a page fault may copy 2 MiB, some 100 us, in a program that did not ask for huge pages",
                "programs with large heaps take more page faults, unless they ask (madvise)",
            ),
        );
    }
    if let Some(bytes @ 1..) = facts
        .memory
        .swap_bytes
        .filter(|_| asked.tuning.memory.value)
    {
        draft.refuse(
            "memory.swap",
            format!(
                "{} MiB of swap are on: to take them away may end programs that are in them",
                bytes >> 20
            ),
            "swapoff -a, and remove it from /etc/fstab; or lock the program's memory (mlockall)",
        );
    }
    limits(asked, draft);
}

fn limits(asked: &Asked<'_>, draft: &mut Draft) {
    if !asked.tuning.limits.value {
        draft.refuse(
            "rights.limits",
            "who may use real-time priorities and lock memory is not for a profile to say",
            "limits = true in [tune] gives it to the group realtime; of a service: LimitRTPRIO=80, \
             LimitMEMLOCK=infinity",
        );
        return;
    }
    draft.document(
        asked.facts,
        "rights.limits",
        Document::RealtimeLimits,
        Said::of_all(
            "executors run at real-time priorities with locked memory, without being root",
            "members of the group realtime can take a core for themselves; from their next login on",
        ),
    );
}
