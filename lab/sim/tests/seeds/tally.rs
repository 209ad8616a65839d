//! Counts of the faults and situations that occurred. Seeds in which a situation never occurred prove nothing about it.

use std::fmt;

macro_rules! tally {
    ($($(#[doc = $words:literal])+ $name:ident),+ $(,)?) => {
        /// What ordeals have gone through.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
        pub(crate) struct Tally {
            $($(#[doc = $words])+ pub(crate) $name: u64,)+
        }

        impl Tally {
            /// Each count with its words.
            fn counts(&self) -> Vec<(String, u64)> {
                vec![$((concat!($($words),+).trim().to_owned(), self.$name)),+]
            }

            /// Both together.
            pub(crate) fn plus(self, other: Self) -> Self {
                Self { $($name: self.$name + other.$name),+ }
            }
        }
    };
}

tally! {
    /// participants that crashed
    crashes,
    /// participants that said good-bye
    farewells,
    /// restarts under a new GUID prefix
    restarts_anew,
    /// restarts under the old GUID prefix
    restarts_as_before,
    /// processes that were stopped for a while
    stops,
    /// cuts in both directions
    cuts,
    /// cuts in one direction
    one_way_cuts,
    /// pairs of nodes between which one direction lost more
    lopsided_links,
    /// endpoints that were deleted
    deletions,
    /// leases that ran out
    leases,
    /// matches that ended and were made again
    rematches,
    /// datagrams that were lost
    lost,
    /// datagrams that came twice
    doubled,
    /// datagrams that a cut stopped
    stopped,
    /// samples that were written
    written,
    /// samples that were taken
    taken,
    /// samples that waited for earlier ones, or were had before
    out_of_order,
    /// samples sent again
    repaired,
    /// fragments sent
    fragments,
    /// fragments sent again
    fragments_repaired,
    /// writes that found no room and were tried again
    refused,
    /// samples that a reader was owed by KEEP_ALL, and had
    owed,
    /// samples of history sent to who came late
    history,
    /// readers that came late and had the whole history
    late_readers,
    /// matches in peace
    matches,
}

impl Tally {
    /// What was never met with.
    pub(crate) fn unmet(&self) -> Option<String> {
        let unmet = self.counts().into_iter().find(|(_, count)| *count == 0);
        unmet.map(|(words, _)| words)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (words, count) in self.counts() {
            writeln!(f, "{count:>12} {words}")?;
        }
        Ok(())
    }
}
