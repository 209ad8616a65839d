//! `isolane why`: reasons why the endpoints of a topic do not communicate, a sentence each.
//!
//! Discovery data, interfaces, packet filters and participants of this host form a plain value ([`Facts`]). [`judge`]
//! is a function of it, so that its tests need no network. `pair` compares writers with readers, `absent` covers a
//! missing side, `described` covers static discovery, `host` covers packet filters.

mod absent;
mod described;
mod facts;
mod host;
mod pair;
mod reason;

pub(crate) use self::described::DescribedHere;
pub(crate) use self::facts::{Facts, FullTables, Heard, Ignoring, LocalNetwork, Refusal};
pub(crate) use self::reason::{Reason, Verdict};

/// All reasons, those that prevent communication first.
pub(crate) fn judge(facts: &Facts) -> Vec<Reason> {
    let mut reasons = pair::reasons(facts);
    // Described endpoints are not announced.
    match facts.described.is_empty() {
        true => reasons.extend(absent::reasons(facts)),
        false => reasons.extend(described::reasons(facts)),
    }
    let is_explained = reasons.iter().any(|reason| reason.verdict == Verdict::No);
    reasons.extend(host::reasons(facts, is_explained));
    reasons.sort_by_key(|reason| reason.verdict);
    reasons
}

#[cfg(test)]
mod tests;
