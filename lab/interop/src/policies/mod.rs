//! The policies of DDS, an axis against each peer: what both sides are told, how large the samples are, and
//! what the cable loses.
//!
//! The programs are those of the shapes contract (`shapes`), which has an option for most policies; for the
//! others ours take some beyond it. A policy's value (`table.rs`) says what each side is told and what both
//! must print then (`judge.rs`); the axes are that value, the peer, who publishes, the size of the samples and
//! the loss. CI runs a cover of all pairs of values, `--all` the product.

mod judge;
mod setting;
mod table;

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::at_once::at_once;
use super::cell::{Axis, Loss, Role};
use super::cover::Choice;
use super::peer::{Installed, Peer};
use super::report::{PolicyReport, Verdict};
use super::shapes;
use super::shapes::pair::{Pair, Task};
use super::shapes::vendor::{Programs, Vendor};
use isolane_support::Result;
use isolane_support::workspace::Metadata;

use setting::{Setting, Size};
use table::{KNOWN, POLICIES, Policy};

/// A choice of one value from every axis.
#[derive(Clone, Copy)]
pub(super) struct PolicyCell {
    policy: &'static Policy,
    peer: Peer,
    peer_role: Role,
    setting: Setting,
}

/// How many values each axis has.
pub(super) const AXES: [usize; 5] = [
    POLICIES.len(),
    Peer::ALL.len(),
    Role::ALL.len(),
    Size::ALL.len(),
    Loss::ALL.len(),
];

impl PolicyCell {
    /// The cell of a choice: an index into each axis.
    pub(super) fn choose([policy, peer, role, size, loss]: Choice<{ AXES.len() }>) -> Self {
        Self {
            policy: &POLICIES[policy],
            peer: Peer::ALL[peer],
            peer_role: Role::ALL[role],
            setting: Setting {
                size: Size::ALL[size],
                loss: Loss::ALL[loss],
            },
        }
    }

    /// A name for people, for `--only` and for the folder with the cell's output.
    pub(super) fn name(self) -> String {
        let (peer, role) = (self.peer.word(), self.peer_role.word());
        format!("{peer}-{role}-{}", self.case())
    }

    /// What distinguishes it beside peer and role.
    fn case(self) -> String {
        let Setting { size, loss } = self.setting;
        format!("{}-{}-{}", self.policy.name, size.word(), loss.word())
    }

    fn vendor(self) -> Vendor {
        match self.peer {
            Peer::CycloneDds => Vendor::CycloneDds,
            Peer::FastDds => Vendor::FastDds,
        }
    }

    fn pair(self) -> Pair {
        match self.peer_role {
            Role::Publisher => Pair {
                publisher: self.vendor(),
                subscriber: Vendor::Isolane,
            },
            Role::Subscriber => Pair {
                publisher: Vendor::Isolane,
                subscriber: self.vendor(),
            },
        }
    }

    /// What the peer is known to do otherwise.
    fn known(self) -> Option<&'static str> {
        let known = KNOWN.iter().find(|known| {
            let in_role = known.role.is_none_or(|role| role == self.peer_role);
            known.policy == self.policy.name && known.peer == self.peer && in_role
        });
        known.map(|known| known.why)
    }

    fn run(self, programs: &Programs, folder: &Path, capture: Option<&Path>) -> (Verdict, String) {
        let publisher = self.setting.publisher(self.policy);
        let subscriber = self.setting.subscriber(self.policy);
        let judge = |sides: &_| (self.policy.judge)(sides, self.setting);
        let task = Task {
            publisher: &publisher,
            subscriber: &subscriber,
            is_late: self.policy.is_late,
            loss: self.setting.loss,
            bits_per_s: Some(setting::BITS_PER_S),
            capture,
            longest_life: self.setting.longest_life(),
            judge: &judge,
        };
        let known = self.known().map(|why| (self.vendor(), why));
        let ended = self.pair().run_known(&task, known, programs, folder);
        let (verdict, account) =
            ended.unwrap_or_else(|error| (shapes::Verdict::Fail(error.to_string()), String::new()));
        match verdict {
            shapes::Verdict::Pass => (Verdict::Pass, "as the policy has it".into()),
            shapes::Verdict::Lacking(vendor) => {
                (Verdict::Skip, format!("{} does not have it", vendor.word()))
            }
            shapes::Verdict::Known(why) => (Verdict::Skip, why.into()),
            shapes::Verdict::Fail(why) => (Verdict::Fail, format!("{why}\n{account}")),
        }
    }
}

/// Runs the cells, some at once, and shows each result as it comes.
pub(super) fn run(
    cells: &[PolicyCell],
    peers: &[Installed],
    metadata: &Metadata,
    jobs: usize,
    captures: Option<&Path>,
) -> Result<Vec<PolicyReport>> {
    if cells.is_empty() {
        return Ok(Vec::new());
    }
    let programs = Programs::build(metadata)?;
    let folder = metadata.target_directory.join("interop/policies");
    // Of an earlier run; that there is none is no fault.
    let _ = fs::remove_dir_all(&folder);
    let run_one = |cell: &PolicyCell| {
        let start = Instant::now();
        let capture = captures.map(|captures| captures.join(format!("{}.pcapng", cell.name())));
        let folder = folder.join(cell.name());
        let (result, detail) = cell.run(&programs, &folder, capture.as_deref());
        let peer = peers.iter().find(|installed| installed.peer == cell.peer);
        PolicyReport {
            name: cell.name(),
            peer: peer.map_or_else(String::new, |peer| peer.identity.clone()),
            peer_role: cell.peer_role.word(),
            policy: cell.policy.policy,
            case: cell.case(),
            result,
            detail,
            seconds: start.elapsed().as_secs_f64(),
        }
    };
    let show = |done, report: &PolicyReport| eprintln!("[{done}/{}] {report}", cells.len());
    Ok(at_once(cells, jobs, run_one, show))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::cover::{cover, product};
    use super::*;

    #[test]
    fn every_cell_has_a_name_of_its_own() {
        let cells = product(AXES).into_iter().map(PolicyCell::choose);
        let names = cells.map(PolicyCell::name).collect::<BTreeSet<_>>();
        assert_eq!(names.len(), AXES.iter().product::<usize>());
    }

    #[test]
    fn all_pairs_of_values_are_few_cells() {
        let cells = cover(AXES, 2, 0);
        // As many as the longest axis times the next: fewer there cannot be.
        assert!(
            cells.len() <= POLICIES.len() * 3 + 3,
            "{} cells",
            cells.len()
        );
    }

    #[test]
    fn the_peer_has_the_role_that_the_cell_says() {
        let cell = PolicyCell::choose([0, 1, 0, 2, 2]);
        assert_eq!(cell.pair().to_string(), "fastdds to isolane");
        assert_eq!(
            cell.name(),
            format!("fastdds-publisher-{}-1MiB-loss-10", POLICIES[0].name)
        );
        let cell = PolicyCell::choose([0, 0, 1, 0, 0]);
        assert_eq!(cell.pair().to_string(), "isolane to cyclonedds");
    }
}
