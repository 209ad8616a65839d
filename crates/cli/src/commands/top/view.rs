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

use super::lines::{Kind, Line};

/// Request of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    /// Redraw the view: it was scrolled, paused or resized.
    Draw,
    Quit,
}

/// Terminal in raw mode, and what it shows.
pub(crate) struct View {
    terminal: DefaultTerminal,
    lines: Vec<Line>,
    title: String,
    scroll: Scroll,
    is_paused: bool,
}

impl View {
    /// Switches the terminal to raw mode and to its alternate screen.
    ///
    /// # Errors
    /// Standard output is no terminal, or the terminal cannot be controlled.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
            lines: Vec::new(),
            title: String::new(),
            scroll: Scroll::default(),
            is_paused: false,
        })
    }

    /// Shows new lines, unless the view is paused.
    pub(crate) fn show(&mut self, title: String, lines: Vec<Line>) -> io::Result<()> {
        if self.is_paused {
            return Ok(());
        }
        (self.title, self.lines) = (title, lines);
        self.draw()
    }

    /// Redraws the view.
    pub(crate) fn draw(&mut self) -> io::Result<()> {
        let Self {
            terminal,
            lines,
            title,
            scroll,
            is_paused,
        } = self;
        let mut shown = 0;
        terminal.draw(|frame| shown = draw(frame, title, lines, scroll, *is_paused))?;
        scroll.page = shown;
        Ok(())
    }

    /// Waits for a request of the user, at most `time`.
    pub(crate) fn wait(&mut self, time: Duration) -> io::Result<Wish> {
        if !event::poll(time)? {
            return Ok(Wish::Nothing);
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Ok(self.key(key)),
            Event::Resize(..) => Ok(Wish::Draw),
            _ => Ok(Wish::Nothing),
        }
    }

    fn key(&mut self, key: KeyEvent) -> Wish {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
            KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
            KeyCode::Char(' ') => {
                self.is_paused = !self.is_paused;
                Wish::Draw
            }
            code => match self.scroll.by(code) {
                true => Wish::Draw,
                false => Wish::Nothing,
            },
        }
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
    is_paused: bool,
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
    let state = if is_paused {
        "PAUSED, space goes on"
    } else {
        "space pauses"
    };
    let keys = format!(" q ends  {place}  {state}  arrows, PgUp, PgDn, Home, End scroll");
    frame.render_widget(Paragraph::new(keys).style(bar), below);
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
            draw(frame, "isolane top", lines, scroll, false);
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
    fn a_terminal_without_room_is_no_harm() {
        let mut terminal = Terminal::new(TestBackend::new(1, 1)).expect("a terminal of memory");
        let lines = [line(Kind::Title, "é".repeat(200))];
        let drawing = terminal.draw(|frame| {
            draw(frame, "x", &lines, &mut Scroll::default(), true);
        });
        assert!(drawing.is_ok());
    }
}
