//! Tests of output and exit code of `isolane` where lanes are not available: 3 if the machine does not allow them, 2 if
//! no machine could provide them. Each case has its own network namespace. They need root; without root they print a
//! message, and fail in CI.

use std::process::Command;

const ISOLANE: &str = env!("CARGO_BIN_EXE_isolane");
const ON_LANES: &str = "sub Square --interface eth0 --datapath xdp --seconds 1";
const AUTO: &str = "sub Square --interface eth0 --datapath auto --seconds 1";
const CLASSIFIER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../datapath-xdp/classifier/classifier.bpf.o"
);

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

/// Runs a script in a namespace with one interface besides loopback; returns exit code and output.
fn inside(script: &str) -> (i32, String) {
    let prepare = "ip link set lo up; ip link add eth0 type veth peer name eth1; \
        ip address add 10.9.0.1/24 dev eth0; ip link set eth0 up; ip link set eth1 up";
    let mut command = Command::new("unshare");
    command
        .args(["--net", "timeout", "60", "sh", "-ec"])
        .arg(format!("{prepare}; {script}"))
        .current_dir(std::env::temp_dir())
        .env("ISOLANE", ISOLANE)
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG");
    let output = command.output().expect("unshare, of util-linux");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.code().expect("no signal"), said)
}

/// Checks that the command ends with this code and prints all of these texts.
fn ends(before: &str, rights: &str, arguments: &str, code: i32, words: &[&str]) {
    let before = if before.is_empty() { "true" } else { before };
    let (ended, said) = inside(&format!("{before}; exec {rights} $ISOLANE {arguments}"));
    assert_eq!(ended, code, "{before}; {rights} {arguments}: {said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}

#[test]
fn each_missing_capability_is_named_exactly() {
    if !is_allowed() {
        return;
    }
    // By number, because some versions of setpriv do not know the newer capabilities by name. CAP_SYS_ADMIN includes
    // them.
    let cases = [
        ("-sys_admin,-cap_39", "lacks CAP_BPF."),
        ("-sys_admin,-cap_38", "lacks CAP_PERFMON."),
        ("-sys_admin,-net_admin", "lacks CAP_NET_ADMIN."),
        ("-net_raw", "which needs CAP_NET_RAW."),
    ];
    let remedy = "setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep";
    for (rights, named) in cases {
        let rights = format!("setpriv --bounding-set {rights}");
        ends("", &rights, ON_LANES, 3, &[named, remedy]);
    }
    // With only these capabilities, and lockable memory.
    let enough = "setpriv --bounding-set -all,+cap_39,+cap_38,+net_admin,+net_raw,+ipc_lock";
    ends("", enough, ON_LANES, 0, &[]);
}

#[test]
fn memory_that_may_not_be_locked_is_reported_with_its_size() {
    if !is_allowed() {
        return;
    }
    let rights = "prlimit --memlock=65536 setpriv --bounding-set -ipc_lock";
    ends(
        "",
        rights,
        ON_LANES,
        3,
        &["bytes", "ulimit -l", "CAP_IPC_LOCK"],
    );
    ends("", rights, AUTO, 0, &["xdp is not used", "may lock 64 KiB"]);
}

#[test]
fn an_interface_that_can_have_no_lanes_is_reported_with_the_remedy() {
    if !is_allowed() {
        return;
    }
    let upper = "ip link add link eth0 name upper0 type macvlan; \
        ip address add 10.9.1.1/24 dev upper0; ip link set upper0 up";
    let on_upper = ON_LANES.replace("eth0", "upper0");
    ends(
        upper,
        "",
        &on_upper,
        3,
        &["upper0", "no native XDP", "datapath udp"],
    );
    let foreign = format!("ip link set dev eth0 xdp object {CLASSIFIER} section xdp");
    ends(
        &foreign,
        "",
        ON_LANES,
        3,
        &["another XDP program is attached to eth0", "xdp off"],
    );
    ends(&foreign, "", AUTO, 0, &["xdp is not used", "xdp off"]);
    ends(
        "ip link set eth0 mtu 9000",
        "",
        ON_LANES,
        3,
        &["9000", "ip link set eth0 mtu"],
    );
    ends(
        "ip link set eth0 down",
        "",
        ON_LANES,
        3,
        &["ip link set eth0 up"],
    );
    let elsewhere = ON_LANES.replace("eth0", "eth7");
    ends("", "", &elsewhere, 3, &["eth7", "eth0"]);
    let fifth = ON_LANES.replace("xdp", "xdp:queue=5");
    ends("", "", &fifth, 3, &["no queue 5", "ethtool -L eth0"]);
}

#[test]
fn what_no_machine_could_is_wrong_usage() {
    if !is_allowed() {
        return;
    }
    let beyond = ON_LANES.replace("xdp", "xdp:queue=9");
    ends(
        "",
        "",
        &beyond,
        2,
        &["queue must be a whole number from 0 to 7"],
    );
    let file = std::env::temp_dir().join(format!("isolane-lane-{}.toml", std::process::id()));
    let description = "domain = 0\n[host.a]\ninterface = \"eth0\"\ndatapath = \"xdp\"\n\
        [host.a.xdp]\nreceive_frames = 64\n";
    std::fs::write(&file, description).expect("a temporary file");
    let arguments = format!(
        "sub Square --host a --seconds 1 --config {}",
        file.display()
    );
    ends(
        "",
        "",
        &arguments,
        2,
        &["has 64 receive frames", "receive_frames = 2272"],
    );
    std::fs::remove_file(&file).expect("it was written");
}

#[test]
fn a_taken_queue_is_reported_and_is_free_after_its_owner_is_killed() {
    if !is_allowed() {
        return;
    }
    let has_lanes = "until ip -d link show eth0 | grep -q xdp; do sleep 0.05; done";
    let script = format!(
        "$ISOLANE sub Square --interface eth0 --datapath xdp --seconds 50 & first=$!; {has_lanes}; \
         $ISOLANE {ON_LANES} || echo ended with $?; \
         kill -9 $first; wait $first || true; \
         $ISOLANE -vv {AUTO}; echo then with $?"
    );
    let (_, said) = inside(&script);
    for word in [
        "queue 0 of interface eth0 is used",
        "ended with 3",
        "then with 0",
    ] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    assert!(!said.contains("is not used"), "auto took sockets: {said}");
}
