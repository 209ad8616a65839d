//! Live view on the terminal: coloured lines that can be scrolled, between a title bar and a bar with the keys.
//!
//! At the end, even after a panic, the terminal shows its earlier content again.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as StyledLine, Text};
use ratatui::widgets::Paragraph;

use isolane_model::Word;

use super::lines::{self, Kind, Line};
use super::sample::Sample;
use super::selection::Selection;

/// Request of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    /// Redraw the view: it was scrolled, paused or resized, or shows a selection.
    Draw,
    Quit,
}

/// Terminal in raw mode, and what it shows.
pub(crate) struct View {
    terminal: DefaultTerminal,
    sample: Option<Sample>,
    title: String,
    scroll: Scroll,
    keys: Keys,
}

/// State that keys change, other than the scroll position.
#[derive(Clone, Debug, Default)]
struct Keys {
    selection: Selection,
    is_paused: bool,
    /// True while the explanation of the keys is shown.
    is_explaining: bool,
    /// True while the user types the name of a topic.
    is_typing: bool,
}

/// Explanation of the keys.
const KEYS: [&str; 11] = [
    "Keys",
    "  q                 end",
    "  space             pause, and go on",
    "  s                 sort topics by level, topic, rate",
    "  / TEXT Enter      show only topics whose name contains the text, with their participants",
    "  / Enter           show all topics again",
    "  arrows, h j k l   scroll by a line, or to the side",
    "  PgUp PgDn         scroll by a page; Home and End: to the first and the last line",
    "  ?                 show this explanation, or the participants again",
    "",
    "The columns longest, response and blocked are maxima since the start.",
];

impl View {
    /// Switches the terminal to raw mode and to its alternate screen.
    ///
    /// # Errors
    /// Standard output is no terminal, or the terminal cannot be controlled.
    pub(crate) fn new(selection: Selection) -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
            sample: None,
            title: String::new(),
            scroll: Scroll::default(),
            keys: Keys {
                selection,
                ..Keys::default()
            },
        })
    }

    /// Shows a new sample, unless the view is paused.
    pub(crate) fn show(&mut self, title: String, sample: &Sample) -> io::Result<()> {
        if self.keys.is_paused {
            return Ok(());
        }
        (self.title, self.sample) = (title, Some(sample.clone()));
        self.draw()
    }

    /// Redraws the view.
    pub(crate) fn draw(&mut self) -> io::Result<()> {
        let Self {
            terminal,
            sample,
            title,
            scroll,
            keys,
        } = self;
        let lines = match (keys.is_explaining, sample) {
            (false, Some(sample)) => lines::of(sample, &keys.selection),
            _ => KEYS.map(explanation).into(),
        };
        let mut shown = 0;
        terminal.draw(|frame| shown = draw(frame, title, &lines, scroll, keys))?;
        scroll.page = shown;
        Ok(())
    }

    /// Waits for a request of the user, at most `time`.
    pub(crate) fn wait(&mut self, time: Duration) -> io::Result<Wish> {
        if !event::poll(time)? {
            return Ok(Wish::Nothing);
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                Ok(self.keys.press(key, &mut self.scroll))
            }
            Event::Resize(..) => Ok(Wish::Draw),
            _ => Ok(Wish::Nothing),
        }
    }
}

fn explanation(text: &str) -> Line {
    Line {
        kind: Kind::Row,
        text: text.to_owned(),
    }
}

/// Maximum length of a typed topic name.
const MAX_TYPED_CHARACTERS: usize = 64;

impl Keys {
    fn press(&mut self, key: KeyEvent, scroll: &mut Scroll) -> Wish {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Wish::Quit;
        }
        if self.is_typing {
            self.type_topic(key.code);
            return Wish::Draw;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('?') => self.is_explaining = !self.is_explaining,
            KeyCode::Char('s') => self.selection.order = self.selection.order.next(),
            KeyCode::Char('/') => {
                (self.is_typing, self.is_explaining) = (true, false);
                self.selection.topic.clear();
            }
            code if scroll.by(code) => {}
            _ => return Wish::Nothing,
        }
        Wish::Draw
    }

    /// Changes the selected topic while it is typed. Enter ends typing, and Esc shows all topics again.
    fn type_topic(&mut self, code: KeyCode) {
        let topic = &mut self.selection.topic;
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                topic.clear();
                self.is_typing = false;
            }
            KeyCode::Backspace => {
                topic.pop();
            }
            KeyCode::Char(letter) if topic.chars().count() < MAX_TYPED_CHARACTERS => {
                topic.push(letter);
            }
            _ => {}
        }
    }

    /// Text of the bar with the keys, and the state that they changed.
    fn bar(&self, place: &str) -> String {
        let Self {
            selection,
            is_paused,
            is_typing,
            ..
        } = self;
        if *is_typing {
            return format!(
                " show topics that contain: {}_  Enter ends",
                selection.topic
            );
        }
        let state = if *is_paused { "  PAUSED" } else { "" };
        let topic = match selection.is_everything() {
            true => String::new(),
            false => format!("  only topics with {:?}", selection.topic),
        };
        let order = selection.order.word();
        format!(" q ends  ? explains the keys  {place}{state}  sorted by {order}{topic}")
    }
}

impl Drop for View {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Maximum horizontal scroll position in columns. Lines are rarely longer.
const MAX_COLUMN: u16 = 160;

#[derive(Default)]
struct Scroll {
    first: usize,
    /// First visible column.
    column: u16,
    /// Number of visible lines.
    page: usize,
}

impl Scroll {
    /// Scrolls as the key demands. Returns false if the key does not scroll.
    fn by(&mut self, code: KeyCode) -> bool {
        const COLUMNS: u16 = 8;
        let page = self.page.saturating_sub(1).max(1);
        self.column = match code {
            KeyCode::Left | KeyCode::Char('h') => self.column.saturating_sub(COLUMNS),
            KeyCode::Right | KeyCode::Char('l') => (self.column + COLUMNS).min(MAX_COLUMN),
            _ => self.column,
        };
        self.first = match code {
            KeyCode::Up | KeyCode::Char('k') => self.first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first.saturating_add(1),
            KeyCode::PageUp => self.first.saturating_sub(page),
            KeyCode::PageDown => self.first.saturating_add(page),
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            KeyCode::Left | KeyCode::Right | KeyCode::Char('h' | 'l') => self.first,
            _ => return false,
        };
        true
    }

    /// Limits the vertical position, so that the last page is full.
    fn within(&mut self, lines: usize, height: usize) {
        self.first = self.first.min(lines.saturating_sub(height));
    }
}

/// Draws the view. Returns the height of the area for lines.
fn draw(
    frame: &mut Frame<'_>,
    title: &str,
    lines: &[Line],
    scroll: &mut Scroll,
    keys: &Keys,
) -> usize {
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ]);
    let [above, middle, below] = areas.areas(frame.area());
    let bar = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(format!(" {title}")).style(bar), above);

    let height = usize::from(middle.height);
    scroll.within(lines.len(), height);
    let last = lines.len().min(scroll.first + height);
    let shown = &lines[scroll.first..last];
    let text: Text<'_> = shown.iter().map(styled).collect();
    frame.render_widget(Paragraph::new(text).scroll((0, scroll.column)), middle);

    let place = match lines.len() > height {
        true => format!("lines {} to {last} of {}", scroll.first + 1, lines.len()),
        false => String::from("all is shown"),
    };
    frame.render_widget(Paragraph::new(keys.bar(&place)).style(bar), below);
    height
}

fn styled(line: &Line) -> StyledLine<'_> {
    let style = match line.kind {
        Kind::Title => Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD),
        Kind::Heading => Style::new().add_modifier(Modifier::DIM),
        Kind::Alert => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        Kind::Note => Style::new().fg(Color::Yellow),
        Kind::Row | Kind::Blank => Style::new(),
    };
    StyledLine::styled(line.text.as_str(), style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn line(kind: Kind, text: impl Into<String>) -> Line {
        Line {
            kind,
            text: text.into(),
        }
    }

    fn drawn(lines: &[Line], scroll: &mut Scroll) -> String {
        let mut terminal = Terminal::new(TestBackend::new(70, 6)).expect("a terminal of memory");
        let drawing = terminal.draw(|frame| {
            draw(frame, "isolane top", lines, scroll, &Keys::default());
        });
        drawing.expect("memory takes all");
        terminal.backend().to_string()
    }

    #[test]
    fn what_does_not_fit_is_scrolled_to_and_no_further() {
        let lines: Vec<Line> = (0..10)
            .map(|n| line(Kind::Row, format!("row {n}")))
            .collect();
        let mut scroll = Scroll::default();
        let top = drawn(&lines, &mut scroll);
        assert!(top.contains("row 0") && !top.contains("row 4"), "{top}");
        assert!(top.contains("lines 1 to 4 of 10"), "{top}");
        scroll.by(KeyCode::End);
        let end = drawn(&lines, &mut scroll);
        assert!(end.contains("row 9") && end.contains("row 6"), "{end}");
        scroll.by(KeyCode::Up);
        assert!(drawn(&lines, &mut scroll).contains("row 5"));
        assert!(!scroll.by(KeyCode::Char('x')));
        // On narrow terminals, lines can be scrolled to the right.
        scroll.by(KeyCode::Right);
        let right = drawn(&[line(Kind::Row, "left ... right")], &mut scroll);
        assert!(
            right.contains("right") && !right.contains("left"),
            "{right}"
        );
    }

    #[test]
    fn keys_select_sort_explain_and_end() {
        let (mut keys, mut scroll) = (Keys::default(), Scroll::default());
        let mut press = |keys: &mut Keys, code| keys.press(KeyEvent::from(code), &mut scroll);
        for letter in "/Brq".chars() {
            assert_eq!(press(&mut keys, KeyCode::Char(letter)), Wish::Draw);
        }
        press(&mut keys, KeyCode::Backspace);
        press(&mut keys, KeyCode::Enter);
        assert_eq!(keys.selection.topic, "Br");
        press(&mut keys, KeyCode::Char('s'));
        press(&mut keys, KeyCode::Char('s'));
        let bar = keys.bar("all is shown");
        assert!(
            bar.contains("sorted by rate") && bar.contains("\"Br\""),
            "{bar}"
        );
        press(&mut keys, KeyCode::Char('?'));
        assert!(keys.is_explaining);
        press(&mut keys, KeyCode::Char('/'));
        press(&mut keys, KeyCode::Enter);
        assert!(keys.selection.is_everything() && !keys.is_explaining);
        assert_eq!(press(&mut keys, KeyCode::Char('x')), Wish::Nothing);
        assert_eq!(press(&mut keys, KeyCode::Char('q')), Wish::Quit);
    }

    #[test]
    fn a_terminal_without_room_is_no_harm() {
        let mut terminal = Terminal::new(TestBackend::new(1, 1)).expect("a terminal of memory");
        let lines = [line(Kind::Title, "é".repeat(200))];
        let drawing = terminal.draw(|frame| {
            draw(frame, "x", &lines, &mut Scroll::default(), &Keys::default());
        });
        assert!(drawing.is_ok());
    }
}
