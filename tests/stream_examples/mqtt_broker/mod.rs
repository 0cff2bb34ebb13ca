//! The MQTT broker: its packets, its topics, and what its clients receive.

#[path = "../../../examples/mqtt_broker/answer.rs"]
mod answer;
#[path = "../../../examples/mqtt_broker/broker.rs"]
mod broker;
#[path = "../../../examples/mqtt_broker/limits.rs"]
mod limits;
#[path = "../../../examples/mqtt_broker/machine.rs"]
mod machine;
#[path = "../../../examples/mqtt_broker/packet.rs"]
mod packet;
#[path = "../../../examples/mqtt_broker/reader.rs"]
mod reader;
#[path = "../../../examples/mqtt_broker/retained.rs"]
mod retained;
#[path = "../../../examples/mqtt_broker/session.rs"]
mod session;
#[path = "../../../examples/mqtt_broker/topic.rs"]
mod topic;
#[path = "../../../examples/mqtt_broker/tree.rs"]
mod tree;

mod bounds;
mod clients;
mod packets;
mod sessions;
mod talk;
mod topics;
