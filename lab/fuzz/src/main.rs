//! Fuzz inputs without libFuzzer. `replay` runs files, and `seeds` writes the initial corpus. `states` lists the states
//! that the saved corpus of the target `protocol` reaches. With a time, `states` searches for inputs that reach other
//! states, and saves these inputs. `cargo xtask fuzz` is the usual interface.

use std::{
    env,
    error::Error,
    fs,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use isolane_fuzz::{
    reached,
    runner::{Runner, corpus, corpus_folder, mutated},
    seeds,
    target::{self, Target},
};

const USAGE: &str = "usage: isolane-fuzz replay TARGET FILE... | isolane-fuzz seeds FOLDER | isolane-fuzz states [SECONDS]";

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
        ["states"] => states(Duration::ZERO),
        ["states", seconds] => states(Duration::from_secs(seconds.parse()?)),
        _ => Err(USAGE.into()),
    }
}

/// Runs the saved corpus of the target `protocol`, then searches for `time` for inputs that reach further states.
fn states(time: Duration) -> Result<ExitCode, Box<dyn Error>> {
    let target = target::named("protocol").ok_or("there is no target protocol")?;
    let mut corpus: Vec<_> = corpus(target)?
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect();
    let mut runner = Runner::new(target);
    for input in &corpus {
        runner.run(input).map_err(|_| "a saved input fails")?;
    }
    println!("{}", reached());
    look_for_more(target, &mut runner, &mut corpus, time)?;
    let reached = reached();
    if !time.is_zero() {
        println!("{reached}");
    }
    Ok(ExitCode::from(u8::from(!reached.unreached.is_empty())))
}

fn look_for_more(
    target: Target,
    runner: &mut Runner,
    corpus: &mut Vec<Vec<u8>>,
    time: Duration,
) -> Result<(), Box<dyn Error>> {
    let end = Instant::now() + time;
    // Each process has another seed. The search need not be repeatable, because found inputs are saved.
    let mut random = fastrand::Rng::with_seed(std::process::id().into());
    while Instant::now() < end && !reached().unreached.is_empty() {
        let before = reached();
        let input = match random.bool() {
            true => mutated(&mut random, corpus),
            false => seeds::protocol_script(random.u64(..)),
        };
        runner.run(&input).map_err(|_| "an input fails")?;
        let now = reached();
        let found = before
            .unreached
            .iter()
            .find(|it| !now.unreached.contains(it));
        if let Some(state) = found {
            let words = state.replace(|letter: char| !letter.is_alphanumeric(), "-");
            fs::write(corpus_folder(target).join(format!("state-{words}")), &input)?;
            println!("reached: {state}");
            corpus.push(input);
        }
    }
    Ok(())
}
