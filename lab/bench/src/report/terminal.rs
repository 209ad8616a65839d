//! Capabilities of the terminal.

/// Character set of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Unicode block elements.
    Unicode,
    /// ASCII only.
    Ascii,
}

impl Charset {
    /// Character set of the locale: the first of these variables that is set decides.
    pub fn of_environment() -> Charset {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(|name| std::env::var(name).ok())
            .find(|value| !value.is_empty());
        Charset::of_locale(locale.as_deref().unwrap_or("C"))
    }

    fn of_locale(locale: &str) -> Charset {
        let locale = locale.to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Charset::Unicode
        } else {
            Charset::Ascii
        }
    }

    /// Bar of `eighths` eighths of a character. In ASCII it is rounded, and a non-zero bar below half a character is a
    /// dot.
    pub(super) fn bar(self, eighths: usize) -> String {
        const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        match self {
            Charset::Unicode => "█".repeat(eighths / 8) + PARTS[eighths % 8],
            Charset::Ascii if (1..4).contains(&eighths) => ".".to_owned(),
            Charset::Ascii => "#".repeat((eighths + 4) / 8),
        }
    }

    /// Separator between columns.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Charset::Unicode => "│",
            Charset::Ascii => "|",
        }
    }
}

/// Width in characters of the terminal on standard output; 100 if it is not a terminal.
pub fn terminal_width() -> usize {
    const ELSEWHERE: usize = 100;
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => ELSEWHERE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_says_whether_blocks_can_be_shown() {
        assert_eq!(Charset::of_locale("de_DE.UTF-8"), Charset::Unicode);
        assert_eq!(Charset::of_locale("C.utf8"), Charset::Unicode);
        assert_eq!(Charset::of_locale("C"), Charset::Ascii);
        assert_eq!(Charset::of_locale("en_GB.ISO-8859-1"), Charset::Ascii);
    }

    #[test]
    fn bars_grow_by_eighths_or_by_signs() {
        assert_eq!(Charset::Unicode.bar(0), "");
        assert_eq!(Charset::Unicode.bar(17), "██▏");
        assert_eq!(Charset::Ascii.bar(17), "##");
        assert_eq!(Charset::Ascii.bar(1), ".");
        assert_eq!(Charset::Ascii.bar(0), "");
    }
}
