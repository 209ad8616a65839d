//! Where packages of another release come from: the machine's own sources, with that release's name in them.

/// Sources of a release, in one of apt's two forms.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sources {
    /// Paragraphs of fields (`debian.sources`).
    Paragraphs(String),
    /// A line each (`sources.list`).
    Lines(String),
}

impl Sources {
    /// apt tells the forms by the name.
    pub(super) fn file_name(&self) -> &'static str {
        match self {
            Sources::Paragraphs(_) => "release.sources",
            Sources::Lines(_) => "release.list",
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Sources::Paragraphs(text) | Sources::Lines(text) => text,
        }
    }
}

/// The release's name, from what `/etc/os-release` says.
pub(super) fn codename(os_release: &str) -> Option<&str> {
    let mut lines = os_release.lines();
    let name = lines.find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(name.trim_matches('"')).filter(|name| !name.is_empty())
}

/// The sources among these whose suites are all of release `own`, as they are for release `wanted`. Those of
/// others, who may not know the release, are left out.
pub(super) fn of_release(text: &str, own: &str, wanted: &str) -> Option<Sources> {
    let is_field = |line: &str| line.starts_with("Types:");
    let kept = if text.lines().any(is_field) {
        let paragraphs = text.split("\n\n").filter_map(|paragraph| {
            let mut lines = paragraph.lines();
            let suites = lines.find_map(|line| line.strip_prefix("Suites:"))?;
            let kept = suites.split_whitespace().all(|suite| is_of(suite, own));
            kept.then(|| renamed(paragraph, own, wanted))
        });
        Sources::Paragraphs(paragraphs.collect::<Vec<_>>().join("\n\n"))
    } else {
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace().filter(|word| !is_option(word));
            let kept = words.next() == Some("deb") && is_of(words.nth(1)?, own);
            kept.then(|| renamed(line, own, wanted))
        });
        Sources::Lines(lines.collect::<Vec<_>>().join("\n"))
    };
    (!kept.text().is_empty()).then_some(kept)
}

/// `[signed-by=...]` between the kind and the address; without blanks, as everybody writes it.
fn is_option(word: &str) -> bool {
    word.starts_with('[')
}

/// A suite of a release is called as it is, or by that name and what it adds.
fn is_of(suite: &str, release: &str) -> bool {
    let rest = suite.strip_prefix(release);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '/']))
}

/// Words that are suites, renamed; the rest, and comments, as they are.
fn renamed(text: &str, own: &str, wanted: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| {
        let words = line.split(' ').map(|word| match is_of(word, own) {
            true => word.replacen(own, wanted, 1),
            false => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    let mut text = lines.collect::<Vec<_>>().join("\n");
    text.push('\n');
    text
}

/// The first package that `apt-cache depends` lists.
pub(super) fn first_dependency(listed: &str) -> Option<&str> {
    let mut lines = listed.lines();
    lines.find_map(|line| line.trim().strip_prefix("Depends: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_the_own_release_become_those_of_the_other() {
        let text = "Types: deb\n# a remark about bookworm\nURIs: http://deb.example/debian\n\
                    Suites: bookworm bookworm-updates\nComponents: main\n\nTypes: deb\n\
                    URIs: http://deb.example/security\nSuites: bookworm-security\nComponents: main\n";
        let sources = of_release(text, "bookworm", "trixie").unwrap();
        assert_eq!(sources.file_name(), "release.sources");
        assert!(sources.text().contains("Suites: trixie trixie-updates\n"));
        assert!(sources.text().contains("Suites: trixie-security\n"));
        assert!(!sources.text().contains("bookworm"));
    }

    #[test]
    fn sources_a_line_each_are_understood_with_their_options() {
        let text = "deb [signed-by=/k.gpg] http://deb.example/debian bookworm main\n\
                    deb-src http://deb.example/debian bookworm main\n\
                    deb http://cloud.example/apt cloud-bookworm main\n";
        let sources = of_release(text, "bookworm", "trixie").unwrap();
        let expected = "deb [signed-by=/k.gpg] http://deb.example/debian trixie main\n";
        assert_eq!(sources, Sources::Lines(expected.into()));
    }

    #[test]
    fn others_sources_alone_are_none() {
        let others = "Types: deb\nURIs: https://deb.example\nSuites: nodistro\nComponents: main\n";
        assert_eq!(of_release(others, "bookworm", "trixie"), None);
        assert_eq!(of_release("", "bookworm", "trixie"), None);
    }

    #[test]
    fn the_codename_is_what_the_machine_says() {
        let text = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(codename(text), Some("bookworm"));
        assert_eq!(codename("ID=arch\n"), None);
        assert_eq!(codename("VERSION_CODENAME=\n"), None);
    }

    #[test]
    fn the_kernel_is_what_its_package_depends_on() {
        let text = "linux-image-rt-amd64\n  Depends: linux-image-6.12.1-rt-amd64\n  Suggests: x\n";
        assert_eq!(first_dependency(text), Some("linux-image-6.12.1-rt-amd64"));
        assert_eq!(first_dependency("linux-image-rt-amd64\n"), None);
    }
}
