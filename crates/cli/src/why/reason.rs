//! One reason: the form of `--json`, and the sentence for people.

use serde::Serialize;

/// Whether endpoints talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// They do not, because of this.
    No,
    /// This may keep them from it, or cannot be seen.
    Perhaps,
    /// They do.
    Yes,
}

/// Why endpoints do not talk, or that they do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Reason {
    /// What kind of reason: see the documentation of `--json`.
    pub(crate) id: &'static str,
    pub(crate) verdict: Verdict,
    /// The reason, in one sentence.
    pub(crate) sentence: String,
    /// What to do about it.
    pub(crate) remedy: String,
    /// The domain it is about.
    pub(crate) domain: u32,
    /// GUIDs of the two, where it is about a pair.
    pub(crate) writer: Option<String>,
    pub(crate) reader: Option<String>,
    /// Where the two differ, with both values.
    pub(crate) differences: Vec<Disagreement>,
}

/// What two endpoints do not agree in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Disagreement {
    /// The policy's name in the standard, `type name`, or `key`.
    pub(crate) name: String,
    pub(crate) offered: String,
    pub(crate) requested: String,
}

impl Reason {
    /// One that is not about a pair.
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
