//! Runner of inputs in this process: catches panics, aborts on a hang, and saves the input in both cases.
//!
//! The same seed gives the same mutations with every compiler. They are not guided by coverage, so they find bugs near
//! saved inputs, as are most that a change introduces. libFuzzer finds other bugs, and their inputs are then saved.

use std::{
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::abort,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;

use crate::{
    limits::{MAX_INPUT_BYTES, MAX_INPUT_TIME},
    target::Target,
};

/// Path of this package.
const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// Reads the saved inputs of a target, in the order of their paths. Returns each with its path.
///
/// # Errors
/// The folder or a file in it cannot be read.
pub fn corpus(target: Target) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(corpus_folder(target))? {
        let path = entry?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: PathBuf| fs::read(&path).map(|bytes| (path, bytes));
    paths.into_iter().map(read).collect()
}

/// Folder of a target's saved inputs.
#[must_use]
pub fn corpus_folder(target: Target) -> PathBuf {
    Path::new(HOME).join("corpus").join(target.name)
}

/// Failing input.
#[derive(Debug)]
pub struct Finding {
    /// Path of the saved input; the panic's message is on standard error.
    pub path: PathBuf,
}

/// Running input with its start time.
type Running = Option<(Instant, Vec<u8>)>;

/// Runner of one target's inputs, with a watchdog.
pub struct Runner {
    target: Target,
    running: Arc<Mutex<Running>>,
    inputs: u64,
}

impl Runner {
    /// Creates the runner and starts its watchdog.
    #[must_use]
    pub fn new(target: Target) -> Self {
        let running = Arc::new(Mutex::new(Running::None));
        let watched = Arc::downgrade(&running);
        thread::spawn(move || {
            while let Some(running) = watched.upgrade() {
                let running = running.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((since, input)) = &*running
                    && since.elapsed() > MAX_INPUT_TIME
                {
                    let path = save(target, "hang", input);
                    eprintln!(
                        "{}: an input takes too long. {}",
                        target.name,
                        way_back(target, &path)
                    );
                    abort();
                }
                drop(running);
                thread::sleep(Duration::from_millis(200));
            }
        });
        Self {
            target,
            running,
            inputs: 0,
        }
    }

    /// Number of inputs run.
    #[must_use]
    pub fn inputs(&self) -> u64 {
        self.inputs
    }

    /// Runs one input.
    ///
    /// # Errors
    /// The input panicked and was saved.
    pub fn run(&mut self, input: &[u8]) -> Result<(), Finding> {
        self.inputs += 1;
        self.note(Some((Instant::now(), input.to_vec())));
        let run = self.target.run;
        let result = catch_unwind(AssertUnwindSafe(|| run(input)));
        self.note(None);
        result.map_err(|_| {
            let path = save(self.target, "crash", input);
            eprintln!("{}", way_back(self.target, &path));
            Finding { path }
        })
    }

    /// Runs `count` mutations of the corpus, or fewer if `time` ends.
    ///
    /// # Errors
    /// A mutation panicked and was saved.
    pub fn mutate(
        &mut self,
        corpus: &[Vec<u8>],
        seed: u64,
        count: u64,
        time: Duration,
    ) -> Result<(), Finding> {
        let mut random = Rng::with_seed(seed);
        let end = Instant::now() + time;
        for _ in 0..count {
            if Instant::now() >= end {
                break;
            }
            self.run(&mutated(&mut random, corpus))?;
        }
        Ok(())
    }

    fn note(&self, running: Running) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }
}

fn way_back(target: Target, path: &Path) -> String {
    let path = path.display();
    format!("Again: cargo xtask fuzz {} --input {path}", target.name)
}

/// Saves an input among the target's artifacts, under a unique name.
fn save(target: Target, what: &str, input: &[u8]) -> PathBuf {
    // FNV-1a; used only for the name.
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let folder = Path::new(HOME).join("artifacts").join(target.name);
    let path = folder.join(format!("{what}-{hash:016x}"));
    let saved = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input));
    if let Err(error) = saved {
        eprintln!(
            "{} cannot be saved: {error}. The input: {input:02x?}",
            path.display()
        );
    }
    path
}

/// Boundary values of bytes.
const EDGES: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, 0x20];
/// Maximum number of changes of one input.
const MAX_CHANGES: usize = 6;
/// Maximum length in bytes of a piece that is inserted, removed or copied.
const MAX_PIECE: usize = 48;

/// Returns one of the inputs of the corpus, or a random input, with a few changes.
#[must_use]
pub fn mutated(random: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = match random.usize(..=corpus.len()) {
        place if place < corpus.len() => corpus[place].clone(),
        _ => {
            let length = random.usize(..256);
            std::iter::repeat_with(|| random.u8(..))
                .take(length)
                .collect()
        }
    };
    for _ in 0..1 + random.usize(..MAX_CHANGES) {
        change(random, &mut input, corpus);
    }
    input.truncate(MAX_INPUT_BYTES);
    input
}

fn change(random: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    if input.is_empty() {
        input.push(random.u8(..));
        return;
    }
    let place = random.usize(..input.len());
    let end = (place + 1 + random.usize(..MAX_PIECE)).min(input.len());
    match random.u8(..9) {
        0 => input[place] ^= 1 << random.u8(..8),
        1 => input[place] = random.u8(..),
        2 => input[place] = EDGES[random.usize(..EDGES.len())],
        3 => input[place] = input[place].wrapping_add(random.u8(..16)).wrapping_sub(8),
        4 => {
            input.drain(place..end);
        }
        5 => input.truncate(place),
        6 => {
            let piece = input[place..end].to_vec();
            input.splice(place..place, piece);
        }
        7 => {
            let count = random.usize(..MAX_PIECE);
            let piece: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
                .take(count)
                .collect();
            input.splice(place..place, piece);
        }
        _ => {
            // Inserts a piece of another input.
            let Some(other) = random.choice(corpus).filter(|other| !other.is_empty()) else {
                return;
            };
            let from = random.usize(..other.len());
            let to = (from + 1 + random.usize(..4 * MAX_PIECE)).min(other.len());
            input.splice(place..end, other[from..to].iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let corpus = [b"one".to_vec(), b"another".to_vec()];
        let some = |seed| {
            let mut random = Rng::with_seed(seed);
            (0..50)
                .map(|_| mutated(&mut random, &corpus))
                .collect::<Vec<_>>()
        };
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        assert!(some(3).iter().all(|input| input.len() <= MAX_INPUT_BYTES));
    }
}
