//! Bounds that were released from the same records by an earlier job: their event is planned again too.

use super::{Answer, Check};
use crate::artifact::Artifact;
use privfit_kernel::account::Event;

/// Checks the bounds that the schema says were released, if there are some.
pub(super) fn check(artifact: &Artifact, checks: &mut Vec<Check>) {
    let Some(private_bounds) = &artifact.schema.private_bounds else { return };
    let name = "private bounds";
    checks.push(match (&private_bounds.event, &private_bounds.plan) {
        (Event::NotPrivate { .. }, _) => Check::new(name, false, "bounds of the schema were released without a guarantee"),
        (_, None) => {
            Check::with(name, Answer::NotChecked, "the schema does not record what the noise of its bounds was planned from")
        }
        (_, Some(plan)) if plan.planner != crate::certificate::versions::PLANNER => {
            Check::with(name, Answer::NotChecked, format!("planned by planner {}, and this is another one", plan.planner))
        }
        (event, Some(plan)) => match crate::job::bounds::event(private_bounds.columns.len(), plan) {
            Ok(again) if super::replan::same_event(&again, event) => {
                let text = "the noise of the released bounds is what their own epsilon and delta ask for";
                Check::new(name, true, text)
            }
            Ok(_) => Check::new(name, false, "planned again, the noise of the released bounds is another"),
            Err(error) => Check::new(name, false, format!("the recorded facts of the released bounds have no plan: {error}")),
        },
    });
}
