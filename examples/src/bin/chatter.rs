//! Talks with ROS 2: `chatter listen` prints what `ros2 run demo_nodes_cpp talker` publishes, and `chatter talk`
//! publishes for `ros2 run demo_nodes_cpp listener`. Both also talk with each other.
//!
//! ROS 2 puts `rt/` before a topic's name, and writes `package::msg::dds_::Type_` for `package/msg/Type`.

use std::{env, error::Error, time::Duration};

use isolane::{Participant, Qos, TopicType};

#[derive(TopicType)]
#[topic(name = "std_msgs::msg::dds_::String_")]
struct Chat {
    data: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    // The domain is ROS_DOMAIN_ID, 0 by default.
    let domain = env::var("ROS_DOMAIN_ID").map_or(Ok(0), |id| id.parse())?;
    let participant = Participant::builder(domain).build()?;
    // QoS of rclcpp and rclpy with a depth of 10.
    let qos = Qos::reliable().keep_last(10);
    match env::args().nth(1).as_deref() {
        Some("talk") => {
            let writer = participant.create_writer::<Chat>("rt/chatter", &qos)?;
            for number in 1.. {
                let data = format!("Hello World: {number}");
                println!("Publishing: {data}");
                writer.write(&Chat { data })?;
                participant.run_for(Duration::from_secs(1));
            }
            Ok(())
        }
        Some("listen") => {
            let reader = participant.create_reader::<Chat>("rt/chatter", &qos)?;
            loop {
                match reader.take_timeout(Duration::from_secs(1)) {
                    Ok(Some(it)) => println!("I heard: {:?}", it.value.map(|chat| chat.data)),
                    Ok(None) => {}
                    Err(error) => eprintln!("not a String: {error}"),
                }
            }
        }
        _ => Err("usage: chatter talk|listen".into()),
    }
}
