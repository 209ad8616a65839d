//! Plans one after the other, as one: what has to be set again after a boot.

use super::{Plan, Reliance};

impl Plan {
    /// This plan behind an earlier one that was carried out: the steps of both, with what this one wants
    /// where both are about the same setting. What this one relied on, and the earlier one sets, is a
    /// step now.
    ///
    /// Steps keep their order: what a plan relies on was set by those before it.
    #[must_use]
    pub fn following(mut self, earlier: &Self) -> Self {
        let mut steps = earlier.steps.clone();
        for step in self.steps {
            match steps.iter_mut().find(|known| known.setting == step.setting) {
                Some(known) => {
                    // Found before the first of them: that is what is to come back.
                    let from = known.from.clone();
                    *known = step;
                    known.undo = super::shell::undo(&known.setting, &from);
                    known.from = from;
                }
                None => steps.push(step),
            }
        }
        steps.retain(|step| step.from != step.to);
        let is_set = |reliance: &Reliance| {
            let mut steps = steps.iter();
            steps.any(|step| step.setting == reliance.setting && step.to == reliance.value)
        };
        let mut relies_on = earlier.relies_on.clone();
        relies_on.retain(|known| !self.relies_on.iter().any(|it| it.setting == known.setting));
        relies_on.append(&mut self.relies_on);
        relies_on.retain(|reliance| !is_set(reliance));
        Self {
            steps,
            relies_on,
            ..self
        }
    }
}
