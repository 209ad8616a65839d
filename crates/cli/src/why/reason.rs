//! Reason: the JSON form (`--json`), and its sentence.

use serde::Serialize;

/// Verdict on the communication of endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// No communication, for this reason.
    No,
    /// Possible obstacle, or undetermined.
    Perhaps,
    /// Communication works.
    Yes,
}

/// Reason why endpoints do not communicate, or confirmation that they do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Reason {
    /// Kind of reason: see the documentation of `--json`.
    pub(crate) id: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) sentence: String,
    pub(crate) remedy: String,
    pub(crate) domain: u32,
    /// GUIDs of the pair, if it is about one.
    pub(crate) writer: Option<String>,
    pub(crate) reader: Option<String>,
    /// Differences of the pair, with both values.
    pub(crate) differences: Vec<Disagreement>,
}

/// Difference between two endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Disagreement {
    /// Policy name in the standard, `type name`, or `key`.
    pub(crate) name: String,
    pub(crate) offered: String,
    pub(crate) requested: String,
}

impl Reason {
    /// Creates a reason that is not about a pair.
    pub(crate) fn new(
        id: &'static str,
        verdict: Verdict,
        domain: u32,
        sentence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            id,
            verdict,
            sentence: sentence.into(),
            remedy: remedy.into(),
            domain,
            writer: None,
            reader: None,
            differences: Vec::new(),
        }
    }
}
