//! Merging of consecutive plans into one that is applied after each boot.

use super::{Plan, Precondition};

impl Plan {
    /// Merges this plan with an earlier one that was applied. Where both change the same setting, this plan's value
    /// counts. A reliance of this plan that the earlier plan sets becomes a step.
    ///
    /// Steps keep their order, because a plan may rely on settings of earlier steps.
    #[must_use]
    pub fn following(mut self, earlier: &Self) -> Self {
        let mut steps = earlier.steps.clone();
        for step in self.steps {
            match steps.iter_mut().find(|known| known.setting == step.setting) {
                Some(known) => {
                    // The original value, from before the first plan, is the one to restore.
                    let from = known.from.clone();
                    *known = step;
                    known.undo = super::shell::undo(&known.setting, &from);
                    known.from = from;
                }
                None => steps.push(step),
            }
        }
        steps.retain(|step| step.from != step.to);
        let is_set = |precondition: &Precondition| {
            let mut steps = steps.iter();
            steps.any(|step| step.setting == precondition.setting && step.to == precondition.value)
        };
        let mut relies_on = earlier.relies_on.clone();
        relies_on.retain(|known| !self.relies_on.iter().any(|it| it.setting == known.setting));
        relies_on.append(&mut self.relies_on);
        relies_on.retain(|precondition| !is_set(precondition));
        Self {
            steps,
            relies_on,
            ..self
        }
    }
}
