//! Command `isolane` with one more datapath: `isolane-unix sub Square --datapath unix --peer 127.0.0.1`.

use isolane::{DATAPATHS, Kinds};
use isolane_unix_datagram::UnixKind;

#[global_allocator]
static ALLOCATOR: isolane::ExitWithoutMemory = isolane::ExitWithoutMemory;

const KINDS: Kinds = &[DATAPATHS[0], DATAPATHS[1], &UnixKind];

fn main() -> std::process::ExitCode {
    isolane_cli::run(KINDS)
}
