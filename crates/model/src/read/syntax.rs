//! Syntax errors of the TOML parser, with isolane's suggestions.

use core::ops::Range;

use toml::de::Error;

use super::report::{Report, Wrong};
use super::values::shortened;

/// Reports the parser's errors.
pub(super) fn report(content: &str, errors: &[Error], report: &mut Report) {
    let mut errors: Vec<(Range<usize>, &str)> = errors
        .iter()
        .map(|error| (place_of(content, error), error.message()))
        .collect();
    errors.sort_by_key(|(span, _)| span.start);
    // All keys of a repeated table are repeated as well, but only the table is reported.
    let mut repeated_table: Option<Range<usize>> = None;
    for (span, message) in errors {
        let in_header = line_at(content, span.start).trim_start().starts_with('[');
        if message != "duplicate key" {
            let wrong = match is_value_missing(content, span.start) {
                true => Wrong::new("a value is missing", "here").help("write it behind the `=`"),
                false => Wrong::new(message, "here").help(help_for(message)),
            };
            report.syntax(span, wrong, in_header);
            continue;
        }
        if repeated_table
            .as_ref()
            .is_some_and(|table| table.contains(&span.start))
        {
            continue;
        }
        let name = shortened(content.get(span.clone()).unwrap_or_default());
        let wrong = if in_header {
            repeated_table = Some(table_at(content, span.start));
            Wrong::new(
                format!("the table of `{name}` is given twice"),
                "the second one",
            )
            .help("names are unique: rename one, or make one table of both")
        } else {
            Wrong::new(format!("`{name}` is given twice"), "the second one")
                .help("remove one of them")
        };
        // This is not reported as `in_header`: only the second value is missing in the tree.
        report.syntax(span, wrong, false);
    }
}

/// Span of an error. For a key with too many parts the parser gives no span, so the line with the most dots is used.
fn place_of(content: &str, error: &Error) -> Range<usize> {
    if error.message() != "recursion limit" {
        return error.span().unwrap_or(0..0);
    }
    let lines = content.split_inclusive('\n').scan(0, |start, line| {
        *start += line.len();
        Some((*start - line.len(), line))
    });
    let deepest = lines.max_by_key(|(_, line)| line.matches('.').count());
    deepest.map_or(0..0, |(start, _)| start..start + 1)
}

/// Suggestion for an error of the parser.
fn help_for(message: &str) -> &'static str {
    if message.starts_with("string values must be quoted") {
        "write it in double quotes"
    } else if message.contains("unclosed") {
        "the closing bracket or quote is missing"
    } else {
        "a line is `key = value`, `[table]` or `# comment`; see `isolane config --example`"
    }
}

/// Returns true if the line at `offset` ends with its `=`.
fn is_value_missing(content: &str, offset: usize) -> bool {
    let line = line_at(content, offset);
    let without_comment = line.split('#').next().unwrap_or_default();
    without_comment.trim_end().ends_with('=') && !without_comment.contains(['"', '\''])
}

/// Line at a byte offset.
fn line_at(content: &str, offset: usize) -> &str {
    let (before, after) = content.split_at(content.floor_char_boundary(offset));
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = after
        .find('\n')
        .map_or(content.len(), |newline| before.len() + newline);
    &content[start..end]
}

/// Range from an offset in a table's header to the next header.
fn table_at(content: &str, offset: usize) -> Range<usize> {
    let offset = content.floor_char_boundary(offset);
    let end = content[offset..]
        .find("\n[")
        .map_or(content.len(), |newline| offset + newline);
    offset..end
}
