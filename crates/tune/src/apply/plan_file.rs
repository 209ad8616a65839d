//! Plan from an untrusted file.

use std::collections::HashMap;
use std::path::Path;

use super::journal;
use super::state::State;
use super::{ApplyError, Here, RELIED_ON};
use crate::plan::{CoreAssignment, Plan, PlanError, SCHEMA, parse_versioned};

/// Plan as read from a file. It must be [admitted](Self::admit) before it can be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFile(Plan);

impl PlanFile {
    /// Parses a plan from JSON.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        parse_versioned(text, "the plan", SCHEMA).map(Self)
    }

    /// Returns the plan, if planning can produce each of its steps. Restoring the original value of a setting, as in
    /// this folder's journal, is allowed too.
    ///
    /// # Errors
    /// [`ApplyError::Unplanned`]; or the journal cannot be read.
    pub fn admit(self, here: &Here, folder: &Path) -> Result<Plan, ApplyError> {
        let state = State::find(folder)?;
        let contents = match state {
            Some(state) => journal::read(&state)?,
            None => None,
        };
        let mut found = HashMap::new();
        if let Some(contents) = contents {
            contents.check_schema()?;
            contents.check()?;
            found.extend(contents.originals_since(&here.boot_id));
        }
        let Self(plan) = self;
        let steps = plan.steps.iter();
        let mut agreed = CoreAssignment::default();
        let steps = steps.filter(|step| {
            let found = found.get(&step.setting);
            !(step.is_valid(found, &here.cores) && agreed.admit(step))
        });
        let mut refused: Vec<String> = steps
            .map(|step| format!("{}: {} to {}", step.id, step.setting, step.to))
            .collect();
        let relied_on = plan.relies_on.iter().filter(|it| !it.is_valid());
        refused.extend(relied_on.map(|it| format!("{RELIED_ON}: {}", it.setting)));
        match refused.is_empty() {
            true => Ok(plan),
            false => Err(ApplyError::Unplanned(refused)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_another_version_is_told_as_that() {
        let newer = r#"{"schema":"isolane/plan/9","steps":[{"something":"else"}]}"#;
        let error = PlanFile::from_json(newer).unwrap_err();
        assert!(matches!(&error, PlanError::Form(form) if form.found == "isolane/plan/9"));
        let none = format!(r#"{{"schema":"{SCHEMA}","steps":3}}"#);
        let none = PlanFile::from_json(&none).unwrap_err();
        assert!(matches!(none, PlanError::Text(_)), "{none}");
        assert!(matches!(PlanFile::from_json("[]"), Err(PlanError::Text(_))));
    }

    #[test]
    fn what_an_error_says_of_a_long_text_is_short() {
        let long = "x".repeat(1 << 20);
        for text in [
            format!(r#"{{"schema":"{long}"}}"#),
            format!(r#"{{"schema":"{SCHEMA}","{long}":1}}"#),
        ] {
            let error = PlanFile::from_json(&text).unwrap_err();
            assert!(
                error.to_string().len() < 400,
                "{} bytes",
                error.to_string().len()
            );
        }
    }
}
