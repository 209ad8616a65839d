//! Tests of `isolane tune ports` and `tune answer`, between two network namespaces joined by a veth pair with four
//! queues and an unreadable hash key. They need root; without root they print a message, and fail in CI.

use std::process::Command;

use serde_json::Value;

const ISOLANE: &str = env!("CARGO_BIN_EXE_isolane");

/// Two hosts: the shell's own with 10.9.0.1, and that of `$OTHER` with 10.9.0.2; both have `eth0`.
const HOSTS: &str = r#"
    ip link set lo up
    unshare --net sleep 60 & OTHER=$!
    trap 'kill $OTHER' EXIT
    until [ "$(readlink /proc/$OTHER/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
    QUEUES="numtxqueues 4 numrxqueues 4"
    ip link add eth0 $QUEUES type veth peer name eth1 $QUEUES
    ip link set eth1 netns $OTHER
    there() { nsenter --target $OTHER --net "$@"; }
    ip address add 10.9.0.1/24 dev eth0; ip link set eth0 up
    there ip link set eth1 name eth0; there ip address add 10.9.0.2/24 dev eth0; there ip link set eth0 up
    # Waits until a process has the port.
    await() { until there grep -q ":$(printf %04X $1) " /proc/net/udp; do sleep 0.02; done; }
"#;

/// Returns whether namespaces can be created here.
fn is_allowed() -> bool {
    let made = Command::new("unshare").args(["--net", "true"]).status();
    let is_allowed = made.is_ok_and(|status| status.success());
    if !is_allowed {
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "CI must allow network namespaces");
        eprintln!("this takes root: nothing was tried");
    }
    is_allowed
}

/// Runs `script` with two hosts. Returns its exit code, standard output and standard error.
fn between(script: &str) -> (i32, String, String) {
    let output = Command::new("unshare")
        .args(["--net", "timeout", "60", "sh", "-ec"])
        .arg(format!("{HOSTS}\n{script}"))
        .current_dir(std::env::temp_dir())
        .env("ISOLANE", ISOLANE)
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .output()
        .expect("unshare, of util-linux");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("no signal");
    (code, text(&output.stdout), text(&output.stderr))
}

fn only_queue(landing: &Value) -> u64 {
    let by_queue = landing["by_queue"].as_object().expect("an object");
    assert_eq!(by_queue.len(), 1, "{landing}");
    assert_eq!(landing["unknown"], 0, "{landing}");
    let queue = by_queue.keys().next().expect("one");
    queue.parse().expect("a number")
}

#[test]
fn ports_are_found_whose_datagrams_land_on_the_critical_queue_both_ways() {
    if !is_allowed() {
        return;
    }
    let (code, out, said) = between(
        "nsenter --target $OTHER --net $ISOLANE tune answer -i eth0 --seconds 30 & ANSWER=$!; await 7007
         $ISOLANE tune ports 10.9.0.2 -i eth0 --ports 7007,7015,7023,7031 --queue 2 --peer-queue 2 --times 4 --json -
         kill -INT $ANSWER; code=0; wait $ANSWER || code=$?; [ $code = 130 ]",
    );
    assert_eq!(code, 0, "{said}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["schema"], "isolane/ports/2");
    // Both hosts are this machine, in one run of it.
    let boot_id = report["boot_id"].as_str().expect("the kernel tells");
    let peer_boot = isolane_tune::verify::BootMark::of(boot_id).expect("a mark");
    assert_eq!(report["peer_boot"], peer_boot.to_string());
    let pairs = report["pairs"].as_array().expect("pairs");
    assert_eq!(pairs.len(), 4 * 16);
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut used = [false; 4];
    for pair in pairs {
        assert_eq!(pair["lost"], 0, "{pair}");
        let (there, back) = (only_queue(&pair["at_peer"]), only_queue(&pair["at_host"]));
        used[there as usize] = true;
        if (there, back) == (2, 2) {
            let port = |name: &str| pair[name].as_u64().expect("a port");
            found.push((port("port"), port("peer_port")));
        }
    }
    // One in sixteen of 64 pairs has the requested queues; a hash that spreads well uses all queues.
    assert_eq!(used, [true; 4], "{report}");
    assert!(!found.is_empty(), "{report}");
    assert_eq!(report["matching_pairs"], serde_json::json!(found));
    // 4 questions for each of 64 pairs, after one to each of 16 ports that checks whether anybody answers.
    assert!(
        said.contains("272 questions answered; 0 ignored as other traffic"),
        "{said}"
    );
}

#[test]
fn a_host_that_does_not_answer_and_a_taken_port_are_reported_with_the_remedy() {
    if !is_allowed() {
        return;
    }
    let (code, _, said) = between("$ISOLANE tune ports 10.9.0.2 -i eth0 --ports 7007");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("10.9.0.2 does not answer"), "{said}");
    assert!(said.contains("isolane tune answer -i NAME"), "{said}");

    let (code, _, said) = between(
        "$ISOLANE tune answer -i eth0 --ports 7007 --seconds 30 & sleep 1
         setpriv --reuid 65534 --clear-groups $ISOLANE tune ports 10.9.0.2 -i eth0 --ports 7007 --level 6",
    );
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("port 7007 cannot be opened"), "{said}");
    assert!(said.contains("end the participant that uses it"), "{said}");
}

#[test]
fn a_missing_interface_address_or_right_is_reported() {
    if !is_allowed() {
        return;
    }
    let cases = [
        (
            "$ISOLANE tune ports 10.9.0.2",
            2,
            "name it: --interface NAME",
        ),
        (
            "$ISOLANE tune answer -i eth9",
            3,
            "there is no interface of that name, only lo, eth0",
        ),
        (
            "ip address flush dev eth0; $ISOLANE tune answer -i eth0",
            3,
            "it has no IPv4 address",
        ),
        (
            "setpriv --bounding-set -net_admin,-net_raw $ISOLANE tune answer -i eth0",
            3,
            "level 7 needs CAP_NET_ADMIN",
        ),
    ];
    for (script, expected, words) in cases {
        let (code, _, said) = between(script);
        assert_eq!(code, expected, "{script}: {said}");
        assert!(said.contains(words), "{script}: {said}");
    }
}

#[test]
fn without_an_answer_each_port_is_asked_once_and_that_is_reported() {
    if !is_allowed() {
        return;
    }
    let (code, out, said) = between(
        "sent() { grep '^Udp:' /proc/net/snmp | tail -1 | cut -d' ' -f5; }
         BEFORE=$(sent); code=0
         $ISOLANE tune ports 10.9.0.2 -i eth0 --ports 7007,7015,7023,7031 --peer-ports 7007,7015 || code=$?
         echo $(($(sent) - BEFORE)); exit $code",
    );
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("10.9.0.2 does not answer"), "{said}");
    assert!(said.contains("tune answer"), "{said}");
    // Two questions to each of two ports, not from each of four.
    assert_eq!(out.trim(), "4");
}
