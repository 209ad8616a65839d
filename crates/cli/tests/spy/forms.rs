//! Tests of `spy` with the same datagrams in every capture format, and with files that are no captures.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::support::{
    Frame, Scratch, captured, frames, pcap, pcap_of_nanoseconds, pcapng, pcapng_without_times, run,
    spy,
};

const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const COOKED: u32 = 113;
const COOKED_2: u32 = 276;

/// Output of `spy` for a file.
fn shown(file: &[u8]) -> String {
    let file = Scratch::new(file);
    let said = run(&mut spy(&[file.path()]));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.out.is_empty());
    said.out
}

/// Frames of a capture with another link-layer header.
fn with_header(header: &[u8]) -> Vec<Frame> {
    let mut frames = frames("fast-cyc");
    for frame in &mut frames {
        frame.bytes.splice(..14, header.iter().copied());
        frame.original_len = frame.bytes.len() as u32;
    }
    frames
}

#[test]
fn every_form_of_capture_shows_the_same() {
    let usual = shown(&pcap(ETHERNET, &frames("fast-cyc")));
    assert_eq!(
        shown(&pcap_of_nanoseconds(ETHERNET, &frames("fast-cyc"))),
        usual
    );
    assert_eq!(shown(&pcap(RAW, &with_header(&[]))), usual);
    let cooked: [u8; 16] = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x08, 0x00];
    assert_eq!(shown(&pcap(COOKED, &with_header(&cooked))), usual);
    let mut cooked_2 = [0; 20];
    cooked_2[0] = 0x08;
    assert_eq!(shown(&pcap(COOKED_2, &with_header(&cooked_2))), usual);
    let named = shown(&pcapng(ETHERNET as u16, &frames("fast-cyc")));
    assert_eq!(named.replace(" eth7 ", " "), usual);
    assert_ne!(named, usual, "the interface is named");
}

#[test]
fn vlan_tags_are_shown() {
    let mut tagged = frames("fast-cyc");
    for frame in &mut tagged {
        // A VLAN tag after the addresses: VLAN 5, priority 7.
        frame.bytes.splice(12..12, [0x81, 0x00, 0xe0, 0x05]);
        frame.original_len += 4;
    }
    let tagged = shown(&pcap(ETHERNET, &tagged));
    let usual = shown(&pcap(ETHERNET, &frames("fast-cyc")));
    assert_eq!(tagged.replace(", VLAN 5 PCP 7", ""), usual);
    assert!(tagged.contains("VLAN 5 PCP 7"));
}

#[test]
fn the_frames_that_are_shown_can_be_written_for_other_programs() {
    let file = Scratch::new(&pcapng(ETHERNET as u16, &frames("fast-cyc")));
    let written = Scratch::new(b"older");
    let only = ["--topic", "Square", "--kind", "data"];
    let said = run(spy(&[file.path(), "--write", written.path()]).args(only));
    assert_eq!(said.code, 0, "{}", said.err);
    let samples = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.split_once("sequence "));
        // Only the first file has the announcements, which name the type of the samples.
        let lines = lines.filter_map(|(_, said)| said.split(", sample ").next());
        lines.map(String::from).collect()
    };
    assert!(samples(&said.out).len() > 2, "{}", said.out);
    assert_eq!(samples(&shown_of(&written)), samples(&said.out));

    let all = Scratch::new(b"");
    run(&mut spy(&[file.path(), "--write", all.path()]));
    assert_eq!(shown_of(&all), shown_of(&file));
    // A large sample with all its fragments.
    let large = captured("big-cyc");
    let large = large.to_str().expect("UTF-8");
    run(&mut spy(&[large, "--write", all.path()]));
    assert!(shown_of(&all).contains("in 10 IP fragments"));
    let said = run(&mut spy(&[file.path(), "--write", "-"]));
    assert_eq!(said.code, 2, "{}", said.err);
    let said = run(&mut spy(&[file.path(), "--write", "/nowhere/x.pcapng"]));
    assert_eq!(said.code, 3, "{}", said.err);
}

#[test]
fn frames_without_a_time_stamp_are_written_without_one() {
    let mut all = frames("fast-cyc");
    let short = all.split_off(all.len() / 2);
    let mut file = pcapng_without_times(ETHERNET as u16, 0, &all);
    // Frames truncated by the capture, of another interface, and with time stamps again.
    file.extend(pcapng_without_times(RAW as u16, 101, &[]));
    file.extend(pcapng_without_times(ETHERNET as u16, 101, &short));
    file.extend(pcapng(ETHERNET as u16, &all));
    let file = Scratch::new(&file);
    let written = Scratch::new(b"");
    let said = run(&mut spy(&[file.path(), "--write", written.path()]));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.starts_with("--:--:--"), "{}", said.out);
    assert!(said.out.contains(", captured 59 B"), "{}", said.out);
    assert_eq!(shown_of(&written), said.out);
    let times = |file: &Scratch| {
        let said = run(&mut spy(&[file.path(), "--json", "-"]));
        let records = said.out.lines().map(str::to_owned);
        records
            .filter(|line| line.contains("\"time\":null"))
            .count()
    };
    assert!(times(&written) > 10);
    assert_eq!(times(&written), times(&file));
}

fn shown_of(file: &Scratch) -> String {
    run(&mut spy(&[file.path()])).out
}

#[test]
fn links_and_protocols_that_are_not_decoded_are_counted() {
    let mut odd = frames("fast-cyc");
    odd.truncate(3);
    odd[0].bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
    odd[1].bytes[12..14].copy_from_slice(&[0x08, 0x06]);
    let file = Scratch::new(&pcap(ETHERNET, &odd));
    let said = run(&mut spy(&[file.path()]));
    assert!(said.err.contains("ipv6 1, not_udp 1"), "{}", said.err);
    let file = Scratch::new(&pcap(105, &odd));
    let said = run(&mut spy(&[file.path()]));
    assert!(
        said.err.contains("unknown_link 3") && said.err.contains("link type 105"),
        "{}",
        said.err
    );
}

#[test]
fn a_capture_that_breaks_off_is_shown_as_far_as_it_goes() {
    let mut file = pcap(ETHERNET, &frames("fast-cyc"));
    file.truncate(file.len() - 10);
    let file = Scratch::new(&file);
    let said = run(&mut spy(&[file.path()]));
    assert_eq!(said.code, 0);
    assert!(said.out.lines().count() > 10);
    assert!(
        said.err.contains("ends in the middle of a frame"),
        "{}",
        said.err
    );
}

#[test]
fn frames_of_a_capture_that_goes_on_are_shown_as_they_come() {
    let file = pcap(ETHERNET, &frames("fast-cyc")[..1]);
    let mut child = spy(&["-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let (sender, lines) = mpsc::channel();
    let reading = thread::spawn(move || {
        out.lines()
            .for_each(|line| sender.send(line).expect("ours"));
    });
    let mut input = child.stdin.take().expect("piped");
    input.write_all(&file).expect("room");
    let mut written = file.len();
    let line = loop {
        if let Ok(line) = lines.recv_timeout(Duration::from_millis(50)) {
            break line.expect("UTF-8");
        }
        assert!(written < 256 << 10, "the buffer is full first");
        input.write_all(&file[24..]).expect("room");
        written += file.len() - 24;
    };
    assert!(line.contains("discovery"), "{line}");
    drop(input);
    assert!(child.wait().expect("it ends").success());
    reading.join().expect("it ends");
}

#[test]
fn the_header_of_a_capture_may_come_in_pieces() {
    let frames = &frames("fast-cyc")[..1];
    for (file, cut) in [
        (pcap(ETHERNET, frames), 3),
        (pcapng(1, frames), 6),
        (pcapng(1, frames), 25),
    ] {
        let mut child = spy(&["-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(&file[..cut]).expect("room");
        // Long enough for the command to read the first piece alone, unless the machine is busy.
        thread::sleep(Duration::from_millis(300));
        input.write_all(&file[cut..]).expect("room");
        drop(input);
        assert!(child.wait().expect("it ends").success(), "cut at {cut}");
    }
}

#[test]
fn what_is_no_capture_is_refused_with_what_to_do() {
    let text = Scratch::new(b"just a text that is long enough to hold a header of a capture\n");
    let empty = Scratch::new(b"");
    let folder = std::env::temp_dir();
    for (path, why) in [
        ("/nowhere/trace.pcap", "No such file"),
        (text.path(), "neither pcap nor pcapng"),
        (empty.path(), "neither pcap nor pcapng"),
        (folder.to_str().expect("UTF-8"), "a directory"),
    ] {
        let said = run(&mut spy(&[path]));
        assert_eq!(
            (said.code, said.out.as_str()),
            (2, ""),
            "{path}: {}",
            said.err
        );
        assert!(said.err.contains(why), "{path}: {}", said.err);
        assert!(said.err.contains("to do:"), "{path}: {}", said.err);
    }
}

#[test]
fn options_that_make_no_sense_for_a_file_are_refused() {
    let path = captured("cyc-cyc");
    let path = path.to_str().expect("UTF-8");
    for (arguments, why) in [
        (&[path, "--interface", "lo"][..], "takes no --interface"),
        (&[path, "--seconds", "3"], "takes no --seconds"),
        (&[path, "--kind", "date"], "data-frag"),
        (&[path, "--writer", "xyz"], "hexadecimal"),
        (&[path, "--level", "8"], "0 to 7"),
    ] {
        let said = run(&mut spy(arguments));
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}");
        assert!(said.err.contains(why), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_without_a_word() {
    let mut frames = frames("fast-cyc");
    // More than the capacity of a pipe.
    for _ in 0..5 {
        frames.extend(frames.clone());
    }
    let file = Scratch::new(&pcap(ETHERNET, &frames));
    let mut child = spy(&[file.path()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut line).expect("a line");
    drop(out);
    let mut err = String::new();
    let mut stream = child.stderr.take().expect("piped");
    stream.read_to_string(&mut err).expect("UTF-8");
    let code = child.wait().expect("it ends").code();
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("panicked") && !err.contains("why:"), "{err}");
}
