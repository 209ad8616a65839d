//! Requests and replies over two topics: run `request_reply serve` in one terminal and `request_reply 6 7` in another.
//!
//! A reply has the number of its request and the GUID of the client, so that a client finds its own.

use std::{env, error::Error, time::Duration};

use isolane::{Participant, Qos, TopicType};

#[derive(TopicType, Default)]
struct Request {
    client: [u8; 16],
    number: u32,
    factors: Vec<f64>,
}

#[derive(TopicType, Default)]
struct Reply {
    client: [u8; 16],
    number: u32,
    product: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        return serve();
    }
    let factors = arguments.iter().map(|it| it.parse());
    println!("{}", ask(factors.collect::<Result<_, _>>()?)?);
    Ok(())
}

fn serve() -> Result<(), Box<dyn Error>> {
    let participant = Participant::builder(0).build()?;
    let qos = Qos::reliable().keep_all();
    let replies = participant.create_writer::<Reply>("Products", &qos)?;
    let requests = participant.create_reader::<Request>("Factors", &qos)?;
    // Samples are decoded into this value, so that its memory is reused.
    requests.on_sample(Request::default(), move |sample| {
        let Some(request) = sample.value else { return };
        let reply = Reply {
            client: request.client,
            number: request.number,
            product: request.factors.iter().product(),
        };
        if let Err(error) = replies.write(&reply) {
            eprintln!("cannot reply: {error}");
        }
    })?;
    participant.run()
}

fn ask(factors: Vec<f64>) -> Result<f64, Box<dyn Error>> {
    let participant = Participant::builder(0).build()?;
    let qos = Qos::reliable().keep_all();
    let requests = participant.create_writer::<Request>("Factors", &qos)?;
    let replies = participant.create_reader::<Reply>("Products", &qos)?;
    let is_served = || requests.matched_readers() > 0 && replies.matched_writers() > 0;
    if !participant.run_until(Duration::from_secs(10), is_served) {
        return Err("no server in 10 s".into());
    }
    let (client, number) = (participant.guid().to_bytes(), 1);
    requests.write(&Request {
        client,
        number,
        factors,
    })?;
    while let Some(sample) = replies.take_timeout(Duration::from_secs(10)).transpose() {
        match sample.map(|sample| sample.value) {
            Ok(Some(reply)) if (reply.client, reply.number) == (client, number) => {
                return Ok(reply.product);
            }
            Ok(_) => {} // a reply to another client
            Err(error) => eprintln!("not a reply: {error}"),
        }
    }
    Err("no reply in 10 s".into())
}
