//! Findings about receive buffers and queues of the network stack.

use super::Findings;
use crate::facts::Facts;
use crate::limits::{BUFFER_PERCENT, KERNEL_BYTES_PER_DATAGRAM, STALL_US};
use crate::needs::Needs;

pub(super) fn examine(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    receive_buffer(facts, needs, findings);
    lost(facts, findings);
    backlog(facts, findings);
    busy_read(facts, findings);
}

/// Checks that a receive buffer holds all datagrams that arrive during a stall.
fn receive_buffer(facts: &Facts, needs: &Needs, findings: &mut Findings) {
    let Some(has) = facts.network.rmem_default_bytes else {
        return;
    };
    let holds = has / KERNEL_BYTES_PER_DATAGRAM;
    let stall_ms = STALL_US / 1000;
    let id = "sockets.receive-buffer";
    match needs.waiting_datagrams {
        Some((level, datagrams)) if datagrams * 100 > holds * BUFFER_PERCENT => {
            let wanted = (datagrams * KERNEL_BYTES_PER_DATAGRAM * 100 / BUFFER_PERCENT)
                .next_multiple_of(4096);
            findings.warn(
                id,
                format!(
                    "a socket's buffer of {has} B holds {holds} datagrams; at level {level} up to \
                     {datagrams} come in {stall_ms} ms"
                ),
                "what comes beyond that while the executor is kept from reading is dropped by the \
                 kernel: lost, or repaired one round trip later",
                format!("sysctl -w net.core.rmem_default={wanted} net.core.rmem_max={wanted}"),
            );
        }
        Some((level, datagrams)) => findings.ok(
            id,
            format!(
                "a socket's buffer holds {holds} datagrams; at level {level}, the fullest, up to \
                 {datagrams} come in {stall_ms} ms"
            ),
        ),
        None => findings.ok(
            id,
            format!("a socket's buffer of {has} B holds about {holds} datagrams"),
        ),
    }
}

fn lost(facts: &Facts, findings: &mut Findings) {
    match facts.network.udp_receive_buffer_errors {
        Some(0) => findings.ok(
            "sockets.lost",
            "no datagram was lost to a full buffer so far",
        ),
        Some(lost) => findings.info(
            "sockets.lost",
            format!("{lost} datagrams were lost to full buffers since the start, of all programs"),
            "best-effort samples among them are gone, reliable ones came a round trip later",
            "isolane's own are in its ledgers (pub, sub: -v -v); raise net.core.rmem_default where \
             they are many",
        ),
        None => {}
    }
}

fn backlog(facts: &Facts, findings: &mut Findings) {
    const USUAL: u64 = 1000;
    match facts.network.netdev_max_backlog {
        Some(frames) if frames < USUAL => findings.warn(
            "sockets.backlog",
            format!("a core queues {frames} frames between interface and stack"),
            "a burst beyond that is dropped before any socket sees it",
            format!("sysctl -w net.core.netdev_max_backlog={USUAL}"),
        ),
        Some(frames) => findings.ok(
            "sockets.backlog",
            format!("a core queues {frames} frames between interface and stack"),
        ),
        None => {}
    }
}

fn busy_read(facts: &Facts, findings: &mut Findings) {
    if let Some(microseconds @ 1..) = facts.network.busy_read_us {
        findings.info(
            "sockets.busy-read",
            format!("every socket that reads polls its interface for {microseconds} us first"),
            "saves an interrupt on quiet links; on a shared core it takes time from other jobs",
            "sysctl -w net.core.busy_read=0, unless it is meant",
        );
    }
}
