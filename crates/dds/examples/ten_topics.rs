//! Memory usage of a participant with ten topics, for `cargo xtask budgets`.
//!
//! ```text
//! cargo run --release --package isolane --example ten_topics
//! ```
//!
//! One participant over UDP on 127.0.0.1 has a reliable writer and a reliable reader of each topic. All eight levels
//! are in use, so that every lane is open. The participant sends itself samples of 1 KiB until each history and cache
//! has been full. It then prints the resident memory of the process, which includes the frame pages that samples have
//! touched.

use std::{cell::Cell, error::Error, fs, rc::Rc, time::Duration};

use isolane::{Level, Participant, Qos, TopicType};

const TOPICS: u8 = 10;
const DEPTH: u16 = 10;
const SAMPLES: u32 = 100;
const PATIENCE: Duration = Duration::from_secs(30);

/// Sample of 1 KiB, serialised.
#[derive(TopicType, Clone)]
struct Sample {
    number: u32,
    rest: [u8; 1020],
}

fn main() -> Result<(), Box<dyn Error>> {
    let domain = 1 + std::process::id() % 80;
    let participant = Participant::builder(domain).loopback().build()?;
    let seen = Rc::new(Cell::new(0));
    let mut sample = Sample {
        number: 0,
        rest: [0; 1020],
    };
    let mut ends = Vec::new();
    for topic in 0..TOPICS {
        let name = format!("Topic {topic} of process {}", std::process::id());
        let qos = Qos::reliable()
            .keep_last(DEPTH)
            .level(Level::clamp(i32::from(topic % 8)));
        let writer = participant.create_writer::<Sample>(&name, &qos)?;
        let reader = participant.create_reader::<Sample>(&name, &qos)?;
        let of_callback = Rc::clone(&seen);
        reader.on_sample(sample.clone(), move |_| {
            of_callback.set(of_callback.get() + 1);
        })?;
        ends.push((writer, reader));
    }
    let is_matched = || {
        let mut ends = ends.iter();
        ends.all(|(writer, reader)| writer.matched_readers() == 1 && reader.matched_writers() == 1)
    };
    if !participant.run_until(PATIENCE, is_matched) {
        return Err("the topics have not matched".into());
    }
    for number in 0..SAMPLES {
        sample.number = number;
        let expected = seen.get() + u32::from(TOPICS);
        for (writer, _) in &ends {
            writer.write(&sample)?;
        }
        if !participant.run_until(PATIENCE, || seen.get() == expected) {
            return Err("samples are missing".into());
        }
    }
    println!("topics {TOPICS}");
    println!("resident_bytes {}", resident_bytes()?);
    Ok(())
}

fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next())
        .ok_or("no VmRSS")?;
    Ok(kib.parse::<u64>()? * 1_024)
}
