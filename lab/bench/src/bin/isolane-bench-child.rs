//! Child processes for the tests of this crate; `isolane` offers the same behind a hidden command.
//!
//! With the argument `hold` the program makes a testbed, starts a cable in it, prints the cable's process id and waits
//! to be killed.

use std::io::Read;
use std::process::ExitCode;

use isolane_bench::cable::{self, Cable};
use isolane_bench::child::{self, Program};
use isolane_bench::namespace::{TestHosts, TestHostsConfig};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("hold"), None) => match hold() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        (Some(role), None) => child::main(role),
        _ => {
            eprintln!("usage: isolane-bench-child (hold | ROLE as JSON)");
            ExitCode::from(2)
        }
    }
}

fn hold() -> Result<(), Box<dyn std::error::Error>> {
    let testbed = TestHosts::new(&TestHostsConfig::default())?;
    let cable = Cable::start(&testbed, &Program::current(&[])?, &cable::Config::default())?;
    println!("{}", cable.process_id());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
