//! The form a plan is written in: one of another version is told as that, and not as a field that
//! nobody knows.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Plan, SCHEMA};

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
    /// Reads a plan as it is written, in JSON.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        of_form(text, "the plan", SCHEMA)
    }

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
            found: form.to_owned(),
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
            Self::Text(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for FormError {}
impl std::error::Error for PlanError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_another_version_is_told_as_that() {
        let newer = r#"{"schema":"isolane/plan/9","steps":[{"something":"else"}]}"#;
        let error = Plan::from_json(newer).unwrap_err();
        assert!(matches!(&error, PlanError::Form(form) if form.found == "isolane/plan/9"));
        let none = Plan::from_json(r#"{"schema":"isolane/plan/1","steps":3}"#).unwrap_err();
        assert!(matches!(none, PlanError::Text(_)), "{none}");
        assert!(matches!(Plan::from_json("[]"), Err(PlanError::Text(_))));
    }
}
