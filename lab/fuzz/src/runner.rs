//! Runner of inputs in this process: catches panics, aborts hangs, and saves the input in both cases.

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

use crate::{limits::MAX_INPUT_TIME, mutate::mutated, target::Target};

/// Folder of this package.
const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// Reads the saved inputs of a target with their paths, ordered by name.
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

/// Failing input, with the path it was saved to.
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
