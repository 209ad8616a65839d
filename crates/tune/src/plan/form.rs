//! Format version of a plan. Another version is reported as such, not as an unknown field.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Plan, SCHEMA};
use crate::limits::{MAX_ERROR_TEXT, MAX_SHOWN_TEXT};

/// Mismatch of the format version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
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
    Form(SchemaError),
    /// Syntax error, or unknown fields.
    Text(serde_json::Error),
}

/// Fields common to all format versions.
#[derive(Deserialize)]
struct AnySchema {
    schema: String,
}

impl Plan {
    /// Fails for another format version.
    pub(crate) fn check_schema(&self) -> Result<(), SchemaError> {
        check(&self.schema, "the plan", SCHEMA)
    }
}

/// Parses a value that names its format version, after checking the version.
pub(crate) fn parse_versioned<T: DeserializeOwned>(
    text: &str,
    what: &str,
    known: &'static str,
) -> Result<T, PlanError> {
    let any: AnySchema = serde_json::from_str(text).map_err(PlanError::Text)?;
    check(&any.schema, what, known).map_err(PlanError::Form)?;
    serde_json::from_str(text).map_err(PlanError::Text)
}

fn check(form: &str, what: &str, known: &'static str) -> Result<(), SchemaError> {
    match form == known {
        true => Ok(()),
        false => Err(SchemaError {
            what: what.to_owned(),
            found: form.chars().take(MAX_SHOWN_TEXT).collect(),
            known,
        }),
    }
}

impl fmt::Display for SchemaError {
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
                let rationale: String = error.to_string().chars().take(MAX_ERROR_TEXT).collect();
                formatter.write_str(&rationale)
            }
        }
    }
}

impl std::error::Error for SchemaError {}
impl std::error::Error for PlanError {}
