//! Prints greetings. Run `hello_publisher` in another terminal.

use std::{error::Error, time::Duration};

use isolane::{Participant, Qos, TopicType};

#[derive(TopicType)]
struct Greeting {
    number: u32,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let participant = Participant::builder(0).build()?;
    let reader = participant.create_reader::<Greeting>("Greetings", &Qos::reliable())?;
    loop {
        // `take_timeout` runs the loop of the participant until a sample arrives.
        match reader.take_timeout(Duration::from_secs(10))? {
            Some(sample) => {
                if let Some(Greeting { number, text }) = sample.value {
                    println!("{number}: {text}");
                }
            }
            None => println!(
                "no greeting in 10 s from {} writers",
                reader.matched_writers()
            ),
        }
    }
}
