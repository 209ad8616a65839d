//! Runs the command for tests: its only settings are its arguments, and it ends with its test.

#![allow(dead_code, reason = "each test uses a part of what is here")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Time limit, longer than any command needs on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The command with these arguments, without the settings of the machine's user.
pub(crate) fn isolane(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args(arguments)
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    command
}

/// Runs a command; returns exit code, standard output and standard error.
pub(crate) fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let code = status.code().expect("no signal");
    (code, text(stdout), text(stderr))
}

/// Child process that is killed at the end of its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn pid(&self) -> u64 {
        self.0.id().into()
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }

    /// Stops the process with SIGSTOP.
    pub(crate) fn stop(&self) {
        let process = self.0.id().to_string();
        let kill = Command::new("kill").args(["-STOP", &process]).status();
        assert!(kill.expect("kill exists").success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Folder of one test, removed at its end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("isolane-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Writes a file; returns the folder's path.
    pub(crate) fn write(&self, name: &str, text: &str) -> &Path {
        std::fs::write(self.0.join(name), text).expect("a file in it");
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
