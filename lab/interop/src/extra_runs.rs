//! Interop runs outside the cells' axes: other questions about a peer, isolane's lanes, and hosts with two interfaces.

use std::path::Path;

use isolane_support::Result;
use serde_json::{Value, json};

use super::cell::Axis;
use super::report::{ExtraReport, Verdict};
use super::side::{Installed, Peer};
use super::{coexistence, large, two_interfaces};

/// A run outside the product of axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtraRun {
    /// Datagrams that IP fragments, which must arrive by the kernel socket.
    Large(Peer),
    /// A pair of that peer that keeps exchanging samples while isolane starts, stops and is killed.
    Coexistence(Peer),
    /// Best-effort samples where both hosts have two interfaces.
    TwoInterfaces(Peer),
}

impl ExtraRun {
    const ALL: [Self; 5] = [
        Self::Large(Peer::CycloneDds),
        Self::Large(Peer::FastDds),
        Self::Coexistence(Peer::CycloneDds),
        Self::TwoInterfaces(Peer::CycloneDds),
        Self::TwoInterfaces(Peer::FastDds),
    ];

    /// Returns the runs whose name contains every pattern.
    pub(super) fn chosen(patterns: &[String]) -> Vec<Self> {
        let is_wanted = |run: &Self| {
            let name = run.name();
            patterns.iter().all(|pattern| name.contains(pattern))
        };
        Self::ALL.into_iter().filter(is_wanted).collect()
    }

    /// Name in the table, for `--only` and of the output folder.
    pub(super) fn name(self) -> String {
        match self {
            Self::Large(peer) => format!("{}-large-datagrams", peer.word()),
            Self::Coexistence(peer) => format!("{}-coexistence", peer.word()),
            Self::TwoInterfaces(peer) => format!("{}-two-interfaces", peer.word()),
        }
    }

    fn peer(self) -> Peer {
        match self {
            Self::Large(peer) | Self::Coexistence(peer) | Self::TwoInterfaces(peer) => peer,
        }
    }

    /// Runs it. The programs' output stays in `folder` if it fails.
    pub(super) fn run(self, peers: &[Installed], isolane: &Path, folder: &Path) -> ExtraReport {
        let installed = peers
            .iter()
            .find(|installed| installed.peer == self.peer())
            .expect("all peers were looked for");
        let folder = folder.join(self.name());
        let (verdict, counts) = match &installed.program {
            Ok(program) => self
                .counted(program, isolane, &folder)
                .unwrap_or_else(|error| (Err(error.to_string()), Value::Null)),
            Err(reason) => (Err(reason.clone()), Value::Null),
        };
        let (result, detail) = match verdict {
            Ok(detail) => {
                let _ = std::fs::remove_dir_all(&folder);
                (Verdict::Pass, detail)
            }
            Err(detail) => (Verdict::Fail, detail),
        };
        ExtraReport {
            name: self.name(),
            peer: installed.identity.clone(),
            datapath: match self {
                Self::TwoInterfaces(_) => "udp",
                Self::Large(_) | Self::Coexistence(_) => "xdp",
            },
            result,
            detail,
            counts,
        }
    }

    fn counted(
        self,
        program: &Path,
        isolane: &Path,
        folder: &Path,
    ) -> Result<(std::result::Result<String, String>, Value)> {
        match self {
            Self::Large(peer) => {
                let arrived = large::run(peer, program, isolane, folder)?;
                let counts = json!({
                    "written": arrived.written,
                    "samples": arrived.samples,
                    "datagrams": arrived.carried,
                });
                Ok((arrived.judge(), counts))
            }
            Self::Coexistence(_) => {
                let coexistence = coexistence::run(program, isolane, folder)?;
                Ok((coexistence.judge(), serde_json::to_value(&coexistence)?))
            }
            Self::TwoInterfaces(peer) => {
                let arrived = two_interfaces::run(peer, program, isolane, folder)?;
                Ok((arrived.judge(), arrived.counts()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_by_which_it_is_chosen() {
        let only = |pattern: &str| ExtraRun::chosen(&[pattern.to_owned()]);
        assert_eq!(ExtraRun::chosen(&[]), ExtraRun::ALL);
        assert_eq!(
            only("coexistence"),
            [ExtraRun::Coexistence(Peer::CycloneDds)]
        );
        let of_fastdds = [
            ExtraRun::Large(Peer::FastDds),
            ExtraRun::TwoInterfaces(Peer::FastDds),
        ];
        assert_eq!(only("fastdds-"), of_fastdds);
        assert_eq!(only("loss-10"), []);
    }
}
