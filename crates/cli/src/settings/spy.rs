//! Settings of `spy`: the source of frames, the filter and the outputs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use isolane_model::{Source, Sourced};

use crate::arguments::SpyArguments;
use crate::failure::Failure;
use crate::spy::filter::Filter;
use crate::values::Destination;

use super::{Interfaces, NetworkSettings, or_default, seconds};

#[derive(Debug)]
pub(crate) struct SpySettings {
    pub(crate) source: SpySource,
    pub(crate) filter: Filter,
    /// Source of the filter's domain.
    pub(crate) domain_source: Source,
    /// Number of datagrams to show; `None`: no limit.
    pub(crate) count: Sourced<Option<u64>>,
    /// Time to listen; `None`: no limit.
    pub(crate) run_for: Sourced<Option<Duration>>,
    pub(crate) json: Option<Destination>,
    /// File for the shown frames, as pcapng.
    pub(crate) write: Option<PathBuf>,
}

/// Source of frames.
#[derive(Debug)]
pub(crate) enum SpySource {
    File(PathBuf),
    /// Interfaces of these names; empty: all.
    Live(Sourced<Vec<String>>),
}

impl SpySettings {
    pub(super) fn new(network: NetworkSettings, arguments: SpyArguments) -> Result<Self, Failure> {
        let named = network.interfaces.source != Source::Default;
        let source = match arguments.file {
            Some(_) if named => {
                return Err(Failure::wrong_usage(
                    "`spy FILE` takes no --interface",
                    "a capture has been made on its interfaces already",
                ));
            }
            Some(_) if arguments.seconds.is_some() => {
                return Err(Failure::wrong_usage(
                    "`spy FILE` takes no --seconds",
                    "a capture is read as fast as it can be",
                )
                .with_remedy("--count N stops after so many datagrams"));
            }
            Some(file) => SpySource::File(file),
            None => SpySource::Live(network.interfaces.map(|interfaces| match interfaces {
                Interfaces::All => Vec::new(),
                Interfaces::Named(names) => names,
            })),
        };
        if arguments.write.as_deref() == Some(Path::new("-")) {
            return Err(Failure::wrong_usage(
                "`--write` takes the name of a file",
                "standard output has the text",
            ));
        }
        // The default is all domains: interfaces carry more than one.
        let domain = network.domain;
        let asked = domain.source != Source::Default;
        Ok(Self {
            source,
            filter: Filter {
                domain: asked.then(|| domain.value.get()),
                levels: arguments.level,
                topics: arguments.topic,
                entities: arguments.writer,
                kinds: arguments.kind,
            },
            domain_source: domain.source,
            count: or_default(arguments.count.map(Some), "--count", None),
            run_for: or_default(
                arguments.seconds.map(|n| Some(seconds(n))),
                "--seconds",
                None,
            ),
            json: arguments.json,
            write: arguments.write,
        })
    }
}
