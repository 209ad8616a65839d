//! Check of the demo's page in a browser, at the widths of a desktop and a phone, and on paper.
//!
//! A script that inspects the laid-out page is inserted into a copy of the page. A frame of each width shows the copy.
//! The script's findings are text in the document that Chromium prints. The browser runs in a network namespace without
//! interfaces, so the page cannot load anything from outside; the script also reports requests. Screenshots and the
//! paper version remain in a folder for people to look at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use isolane_support::steps::Outcome;
use isolane_support::workspace::Metadata;
use isolane_support::{Result, command};
use serde::Deserialize;

/// Script for the copy: finds layout faults and sends them to the parent of the frame.
const PROBE: &str = include_str!("probe.html");
/// Document that shows the copy in frames and collects their messages.
const HARNESS: &str = include_str!("harness.html");
/// Widths in CSS pixels: a small phone, a tablet in portrait, a desktop.
const WIDTHS: [u32; 3] = [360, 768, 1280];
/// Number of pictures for each comparison: the distribution of round trips, its tail, box plots, and the course.
const PICTURES_OF_A_COMPARISON: usize = 4;

/// Findings of the script in one frame.
#[derive(Debug, Deserialize)]
struct Seen {
    width: u32,
    /// Width of the content. If it is greater than the frame's width, the page scrolls horizontally.
    scroll_width: u32,
    pictures: usize,
    /// Pictures that are too small to read, and labels that do not fit into their picture.
    unreadable: Vec<String>,
    /// Number of runs in the keys of the figures.
    rows: usize,
    /// Requests of the page to other servers.
    requests: Vec<String>,
    /// Words of values that were not formatted, such as `NaN` or `None`.
    slips: Vec<String>,
}

/// Opens the page that the demo wrote, and checks it.
pub fn check(metadata: &Metadata) -> Result<Outcome> {
    let page = metadata.target_directory.join("demo.html");
    let report = fs::read(metadata.target_directory.join("demo.json"))?;
    let report: serde_json::Value = serde_json::from_slice(&report)?;
    let runs = report["runs"].as_array().map_or(0, Vec::len);
    let folder = metadata.target_directory.join("page");
    fs::create_dir_all(&folder)?;
    let harness = prepare(&fs::read_to_string(&page)?, &folder)?;

    let arguments = ["--virtual-time-budget=10000", "--dump-dom"];
    let document = String::from_utf8(open(&harness, &arguments, &folder)?)?;
    let seen = read(&document)?;
    for look in &seen {
        eprintln!(
            "{} px: {} pictures, {} rows, content {} px wide",
            look.width, look.pictures, look.rows, look.scroll_width
        );
    }
    for (name, size) in [("desk.png", "1280,2400"), ("phone.png", "500,3200")] {
        let screenshot = format!("--screenshot={}", folder.join(name).display());
        let size = format!("--window-size={size}");
        open(&page, &[&screenshot, &size], &folder)?;
    }
    let paper = folder.join("paper.pdf");
    let print = format!("--print-to-pdf={}", paper.display());
    open(&page, &[&print, "--no-pdf-header-footer"], &folder)?;
    if !fs::read(&paper)?.starts_with(b"%PDF-") {
        return Ok(Outcome::Failed(
            "Chromium printed something that is no PDF".into(),
        ));
    }
    let faults: Vec<String> = seen.iter().filter_map(|look| fault(look, runs)).collect();
    Ok(match faults.is_empty() {
        true => Outcome::Passed,
        false => Outcome::Failed(format!("{}: {}", page.display(), faults.join("; "))),
    })
}

/// Returns the fault of the page at one width, if any.
fn fault(look: &Seen, runs: usize) -> Option<String> {
    let width = look.width;
    let fault = if look.scroll_width > width {
        format!("scrolls sideways, {} px", look.scroll_width)
    } else if look.pictures == 0 || !look.pictures.is_multiple_of(PICTURES_OF_A_COMPARISON) {
        format!("{} pictures", look.pictures)
    } else if look.rows != runs {
        format!("{} rows for {runs} runs", look.rows)
    } else if let Some(picture) = look.unreadable.first() {
        format!("cannot be read: {picture}")
    } else if let Some(request) = look.requests.first() {
        format!("asks for {request}")
    } else if let Some(slip) = look.slips.first() {
        format!("says {slip:?}")
    } else {
        return None;
    };
    Some(format!("at {width} px: {fault}"))
}

/// Writes the copy with the script and the document with the frames. Returns the path of the document.
fn prepare(page: &str, folder: &Path) -> Result<PathBuf> {
    let Some((before, after)) = page.rsplit_once("</body>") else {
        return Err("the page has no end".into());
    };
    fs::write(
        folder.join("probed.html"),
        format!("{before}{PROBE}</body>{after}"),
    )?;
    let frames: String = WIDTHS
        .map(|width| format!("<iframe src=\"probed.html\" style=\"width:{width}px;height:900px;border:0\"></iframe>\n"))
        .concat();
    let harness = folder.join("harness.html");
    fs::write(
        &harness,
        HARNESS
            .replace("FRAMES", &frames)
            .replace("COUNT", &WIDTHS.len().to_string()),
    )?;
    Ok(harness)
}

/// Parses the frames' messages from the document that Chromium printed.
fn read(document: &str) -> Result<Vec<Seen>> {
    let found = document
        .split_once("<pre id=\"found\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    let Some((found, _)) = found.filter(|(found, _)| !found.is_empty()) else {
        return Err("the page has no findings: its script did not run to its end".into());
    };
    let text = found
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let seen: Vec<Seen> = serde_json::from_str(&text)?;
    match seen.iter().map(|look| look.width).eq(WIDTHS) {
        true => Ok(seen),
        false => Err(format!("looked at other widths: {seen:?}").into()),
    }
}

/// Opens a file in Chromium and returns its output, without network, with an empty profile, and without its sandbox,
/// which root cannot use.
fn open(file: &Path, arguments: &[&str], folder: &Path) -> Result<Vec<u8>> {
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--log-level=3",
    ]);
    command.arg(format!(
        "--user-data-dir={}",
        folder.join("profile").display()
    ));
    command.args(arguments);
    command::output(command.arg(format!("file://{}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look() -> Seen {
        Seen {
            width: 360,
            scroll_width: 360,
            pictures: 4,
            unreadable: vec![],
            rows: 12,
            requests: vec![],
            slips: vec![],
        }
    }

    #[test]
    fn a_page_that_fits_and_is_complete_has_no_fault() {
        assert_eq!(fault(&look(), 12), None);
    }

    #[test]
    fn each_thing_a_reader_stumbles_over_is_a_fault() {
        let with = |change: fn(&mut Seen)| {
            let mut look = look();
            change(&mut look);
            fault(&look, 12).unwrap_or_default()
        };
        let says = |change, fault: &str| assert_eq!(with(change), format!("at 360 px: {fault}"));
        says(|look| look.scroll_width = 400, "scrolls sideways, 400 px");
        says(|look| look.pictures = 0, "0 pictures");
        says(|look| look.pictures = 3, "3 pictures");
        says(|look| look.rows = 11, "11 rows for 12 runs");
        assert!(with(|look| look.unreadable = vec!["2 ms".into()]).contains("cannot be read"));
        assert!(with(|look| look.requests = vec!["x.js".into()]).contains("asks for x.js"));
        assert!(with(|look| look.slips = vec!["NaN".into()]).contains("NaN"));
    }

    #[test]
    fn a_script_that_did_not_run_is_not_a_page_without_faults() {
        assert!(read("<html><pre id=\"found\"></pre></html>").is_err());
        assert!(read("<html></html>").is_err());
        assert!(
            read("<pre id=\"found\">[]</pre>").is_err(),
            "no width was looked at"
        );
    }
}
