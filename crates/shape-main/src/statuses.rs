//! Listeners that print what tests wait for.

use isolane::{BuildError, DataReader, DataWriter};

use crate::printed::{policy, status};
use crate::shape::ShapeType;

/// Of a writer.
pub(crate) fn listen_to_writer(
    writer: &DataWriter<ShapeType>,
    topic: &str,
) -> Result<(), BuildError> {
    let name = status("on_publication_matched", topic);
    writer.on_publication_matched(move |status| {
        let (count, change) = (status.current_count, status.current_count_change);
        println!("{name} : matched readers {count} (change = {change})");
    })?;
    let name = status("on_offered_incompatible_qos", topic);
    writer.on_offered_incompatible_qos(move |status| {
        println!("{name} : {}", policy(status.last_policy_id));
    })?;
    let name = status("on_offered_deadline_missed", topic);
    writer.on_offered_deadline_missed(move |status| {
        let (total, change) = (status.total_count, status.total_count_change);
        println!("{name} : (total = {total}, change = {change})");
    })?;
    let name = status("on_liveliness_lost", topic);
    writer.on_liveliness_lost(move |status| {
        let (total, change) = (status.total_count, status.total_count_change);
        println!("{name} : (total = {total}, change = {change})");
    })
}

/// Of a reader.
pub(crate) fn listen_to_reader(
    reader: &DataReader<ShapeType>,
    topic: &str,
) -> Result<(), BuildError> {
    let name = status("on_subscription_matched", topic);
    reader.on_subscription_matched(move |status| {
        let (count, change) = (status.current_count, status.current_count_change);
        println!("{name} : matched writers {count} (change = {change})");
    })?;
    let name = status("on_requested_incompatible_qos", topic);
    reader.on_requested_incompatible_qos(move |status| {
        println!("{name} : {}", policy(status.last_policy_id));
    })?;
    let name = status("on_requested_deadline_missed", topic);
    reader.on_requested_deadline_missed(move |status| {
        let (total, change) = (status.total_count, status.total_count_change);
        println!("{name} : (total = {total}, change = {change})");
    })?;
    let name = status("on_liveliness_changed", topic);
    reader.on_liveliness_changed(move |status| {
        let (alive, not_alive) = (status.alive_count, status.not_alive_count);
        println!("{name} : (alive = {alive}, not_alive = {not_alive})");
    })
}
