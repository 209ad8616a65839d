//! Parses a unit and starts its service as systemd does: systemd.syntax(7), systemd.unit(5), systemd.service(5).

use std::path::Path;
use std::process::Command;
use std::str::Chars;

use crate::command::run;

/// Lines of a unit: section, name, value.
pub(super) struct Unit(Vec<(String, String, String)>);

impl Unit {
    pub(super) fn read(path: &str) -> Self {
        let text = std::fs::read_to_string(path).expect("a unit");
        let mut section = "";
        let mut lines = Vec::new();
        for line in text.lines().map(str::trim) {
            assert!(!line.ends_with('\\'), "the next line would belong to it");
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                section = name.strip_suffix(']').expect("a section");
                continue;
            }
            let (name, value) = line.split_once('=').expect("a name and a value");
            let value = value.trim_start().to_owned();
            lines.push((section.to_owned(), name.to_owned(), value));
        }
        Self(lines)
    }

    /// All values of this name, in order.
    pub(super) fn all(&self, section: &str, name: &str) -> Vec<&str> {
        let lines = self.0.iter();
        let own = lines.filter(|(of, known, _)| of == section && known == name);
        own.map(|(_, _, value)| value.as_str()).collect()
    }

    /// Words of all values of this name: other units.
    pub(super) fn words(&self, section: &str, name: &str) -> Vec<&str> {
        let values = self.all(section, name).into_iter();
        values.flat_map(str::split_whitespace).collect()
    }

    /// Returns whether the file exists without which systemd does not start the unit.
    pub(super) fn has_its_condition(&self) -> bool {
        let paths = self.all("Unit", "ConditionPathExists");
        assert_eq!(paths.len(), 1, "{paths:?}");
        Path::new(&specified(paths[0])).exists()
    }

    /// Paths whose file systems are mounted before the unit starts.
    pub(super) fn mounts(&self) -> Vec<String> {
        let values = self.all("Unit", "RequiresMountsFor").into_iter();
        let words = values.flat_map(words);
        words.map(|word| specified(&word)).collect()
    }

    /// Program and arguments of the unit.
    pub(super) fn command(&self) -> (String, Vec<String>) {
        let lines = self.all("Service", "ExecStart");
        assert_eq!(lines.len(), 1, "a service of one command: {lines:?}");
        let mut words = words(lines[0]).into_iter().map(|word| specified(&word));
        let program = words.next().expect("a program");
        assert!(program.starts_with('/'), "{program}: a prefix, or no path");
        // Rule of systemd's string_is_safe(), which applies with any quoting.
        let is_odd = |letter: char| letter.is_control() || ['"', '\'', '\\'].contains(&letter);
        assert!(!program.contains(is_odd), "systemd refuses {program}");
        (
            program,
            words.map(|word| without_variables(&word)).collect(),
        )
    }

    /// Starts the unit as systemd starts a system service; returns exit code, standard output and standard error.
    pub(super) fn start(&self) -> (i32, String, String) {
        run(&mut self.started())
    }

    /// Command that the unit starts.
    pub(super) fn started(&self) -> Command {
        assert!(self.has_its_condition(), "it would not be started");
        let (program, arguments) = self.command();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
            .env("LANG", "C.UTF-8")
            .stdin(std::process::Stdio::null());
        command
    }
}

/// Words between white space, without quotes, and with escapes replaced.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(begin), letter) if begin == letter => quote = None,
            (_, '\\') => word.get_or_insert_default().push(escaped(&mut letters)),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    assert_eq!(quote, None, "a quote without an end in {line}");
    words.extend(word);
    words
}

/// Text after a backslash.
fn escaped(letters: &mut Chars<'_>) -> char {
    match letters.next().expect("something behind a backslash") {
        'n' => '\n',
        't' => '\t',
        's' => ' ',
        same @ ('\\' | '"' | '\'') => same,
        'x' => {
            let digits: String = letters.take(2).collect();
            let code = u8::from_str_radix(&digits, 16).expect("two digits");
            char::from(code)
        }
        other => panic!("systemd knows no escape \\{other}, or none that is of use here"),
    }
}

/// Replaces `%%` by a percent sign. Other specifiers describe the unit or the machine.
fn specified(word: &str) -> String {
    let mut parts = word.split("%%");
    assert!(
        parts.all(|part| !part.contains('%')),
        "a specifier in {word}"
    );
    word.replace("%%", "%")
}

/// Replaces `$$` by a dollar sign. There are no variables.
fn without_variables(word: &str) -> String {
    let mut parts = word.split("$$");
    assert!(
        parts.all(|part| !part.contains('$')),
        "a variable in {word}"
    );
    word.replace("$$", "$")
}

/// Output of systemd for a unit; `None` if systemd is not installed.
pub(super) fn verified(path: &str) -> Option<String> {
    let output = Command::new("systemd-analyze")
        .args(["verify", path])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let name = Path::new(path).file_name()?.to_str()?;
    // systemd also reads the units of the machine on which this unit depends; problems of these are ignored.
    let own = said.lines().filter(|line| line.contains(name));
    Some(own.collect::<Vec<_>>().join("\n"))
}

#[test]
fn words_are_read_as_systemd_reads_them() {
    let read = |line: &str| words(line).join("|");
    assert_eq!(
        read(r#"/bin/a "b c" 'd "e"' f\x20g "\"h\" \\" i"j k""#),
        r#"/bin/a|b c|d "e"|f g|"h" \|ij k"#
    );
    assert_eq!(specified("100%% %%h"), "100% %h");
    assert_eq!(without_variables("$$HOME a$$"), "$HOME a$");
}
