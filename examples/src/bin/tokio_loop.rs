//! Asynchronous tasks, here on tokio: the participant runs on its own thread, and a task awaits its samples.
//!
//! Prints greetings of `hello_publisher`.

use std::error::Error;

use isolane::{Participant, Qos, TopicType};

#[derive(TopicType)]
struct Greeting {
    number: u32,
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let participant = Participant::spawn(|| Participant::builder(0).build())?;
    let mut reader = participant.create_reader::<Greeting>("Greetings", &Qos::reliable())?;
    while let Some(sample) = reader.next().await {
        if let Some(Greeting { number, text }) = sample.value {
            println!("{number}: {text}");
        }
    }
    Ok(())
}
