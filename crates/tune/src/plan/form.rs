//! The form a plan is written in: one of another version is told as that, and not as a field that
//! nobody knows.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Plan, SCHEMA};
use crate::limits::{MAX_ERROR_TEXT, MAX_SHOWN_TEXT};

/// Written by another version of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormError {
    /// What: the plan, or a file.
    pub what: String,
    /// Its form.
    pub found: String,
    /// The form that this program knows.
    pub known: &'static str,
}

/// Why a text is no plan.
#[derive(Debug)]
pub enum PlanError {
    /// It is one of another form.
    Form(FormError),
    /// It is none.
    Text(serde_json::Error),
}

/// What a plan of any form says.
#[derive(Deserialize)]
struct AnyForm {
    schema: String,
}

impl Plan {
    /// # Errors
    /// It is of another form.
    pub(crate) fn check_form(&self) -> Result<(), FormError> {
        check(&self.schema, "the plan", SCHEMA)
    }
}

/// Reads what says of which form it is, if it is of this one.
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
            // It may name what stands in the text, which may be long.
            Self::Text(error) => {
                let said: String = error.to_string().chars().take(MAX_ERROR_TEXT).collect();
                formatter.write_str(&said)
            }
        }
    }
}

impl std::error::Error for FormError {}
impl std::error::Error for PlanError {}
