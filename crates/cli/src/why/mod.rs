//! `isolane why`: what keeps the endpoints of a topic from talking, in a sentence each.
//!
//! What was heard of a domain, of others, of this host's interfaces, packet filters and participants is a plain
//! value ([`Facts`]); [`judge`] is a function of it, so that its tests need no network. Pairs of a writer and a
//! reader are in `pair`, what is missing in `absent`, what is known without discovery in `described`, what this host does to datagrams in `host`.

mod absent;
mod described;
mod facts;
mod host;
mod pair;
mod reason;

pub(crate) use self::described::DescribedHere;
pub(crate) use self::facts::{Facts, FullTables, Heard, Ignoring, LocalNetwork, Refusal};
pub(crate) use self::reason::{Reason, Verdict};

/// Every reason there is, those that keep endpoints from talking first.
pub(crate) fn judge(facts: &Facts) -> Vec<Reason> {
    let mut reasons = pair::reasons(facts);
    // What is described is announced by nobody.
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
