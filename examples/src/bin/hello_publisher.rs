//! Publishes a greeting each second. Run `hello_subscriber` in another terminal.

use std::{error::Error, time::Duration};

use isolane::{Participant, Qos, TopicType};

#[derive(TopicType)]
struct Greeting {
    number: u32,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let participant = Participant::builder(0).build()?;
    let writer = participant.create_writer::<Greeting>("Greetings", &Qos::reliable())?;
    for number in 1.. {
        let text = "hello".to_owned();
        writer.write(&Greeting { number, text })?;
        println!("wrote {number} to {} readers", writer.matched_readers());
        // The loop sends what was written, discovers readers and repeats lost samples.
        participant.run_for(Duration::from_secs(1));
    }
    Ok(())
}
