//! Format version of a plan. Another version is reported as such, not as an unknown field.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Plan, SCHEMA};
use crate::limits::{MAX_ERROR_TEXT, MAX_SHOWN_TEXT};

/// Mismatch of the format version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormError {
    /// Plan or file, as text.
    pub what: String,
    /// Format version found.
    pub found: String,
    /// Format version that this program reads.
    pub known: &'static str,
}

/// Reason that a text is not a plan.
#[derive(Debug)]
pub enum PlanError {
    /// Other format version.
    Form(FormError),
    /// Syntax error, or unknown fields.
    Text(serde_json::Error),
}

/// Fields common to all format versions.
#[derive(Deserialize)]
struct AnyForm {
    schema: String,
}

impl Plan {
    /// Fails for another format version.
    pub(crate) fn check_form(&self) -> Result<(), FormError> {
        check(&self.schema, "the plan", SCHEMA)
    }
}

/// Parses a value that names its format version, after checking the version.
pub(crate) fn of_form<T: DeserializeOwned>(
    text: &str,
    what: &str,
    known: &'static str,
) -> Result<T, PlanError> {
    let any: AnyForm = serde_json::from_str(text).map_err(PlanError::Text)?;
    check(&any.schema, what, known).map_err(PlanError::Form)?;
    serde_json::from_str(text).map_err(PlanError::Text)
}

fn check(form: &str, what: &str, known: &'static str) -> Result<(), FormError> {
    match form == known {
        true => Ok(()),
        false => Err(FormError {
            what: what.to_owned(),
            found: form.chars().take(MAX_SHOWN_TEXT).collect(),
            known,
        }),
    }
}

impl fmt::Display for FormError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, known } = self;
        write!(
            formatter,
            "{what} is written as {found}, and this isolane reads {known}"
        )
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(error) => error.fmt(formatter),
            // The error may quote the text, which may be long.
            Self::Text(error) => {
                let said: String = error.to_string().chars().take(MAX_ERROR_TEXT).collect();
                formatter.write_str(&said)
            }
        }
    }
}

impl std::error::Error for FormError {}
impl std::error::Error for PlanError {}
