//! Inputs of fuzz targets by hand, without libFuzzer: `replay` runs files, `seeds` writes the inputs
//! that the corpus began with. `cargo xtask fuzz` is the usual way here.

use std::{env, error::Error, fs, path::PathBuf, process::ExitCode};

use isolane_fuzz::{runner::Runner, seeds, target};

const USAGE: &str = "usage: isolane-fuzz replay TARGET FILE... | isolane-fuzz seeds FOLDER";

fn main() -> ExitCode {
    match run(env::args().skip(1).collect()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("isolane-fuzz: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Vec<String>) -> Result<ExitCode, Box<dyn Error>> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["replay", name, ref files @ ..] if !files.is_empty() => {
            let target = target::named(name).ok_or_else(|| {
                let names = target::ALL.map(|target| target.name).join(", ");
                format!("there is no target {name}; there are {names}")
            })?;
            let mut runner = Runner::new(target);
            let mut failed = false;
            for file in files {
                let failure = runner.run(&fs::read(file)?).is_err();
                println!("{file}: {}", if failure { "FAIL" } else { "pass" });
                failed |= failure;
            }
            Ok(ExitCode::from(u8::from(failed)))
        }
        ["seeds", folder] => {
            let written = seeds::write(&PathBuf::from(folder))?;
            println!("{written} inputs in {folder}");
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(USAGE.into()),
    }
}
