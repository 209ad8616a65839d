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
        match reader.take_timeout(Duration::from_secs(10)) {
            Ok(Some(sample)) => {
                if let Some(Greeting { number, text }) = sample.value {
                    println!("{number}: {text}");
                }
            }
            Ok(None) => println!("no greeting from {} writers", reader.matched_writers()),
            // A peer has sent a sample that is not of the type. The reader goes on with the next one.
            Err(error) => eprintln!("not a greeting: {error}"),
        }
    }
}
