//! Rights that a process needs, and the errors that it gets without them.

use std::io;
use std::process::Command;
use std::time::Duration;

use isolane_datapath_xdp::classifier::{
    AttachMode, Classifier, ClassifierConfig, ClassifierError, Replenisher,
};

use crate::hosts::index_of;
use crate::namespace::{PAIR, enter};
use crate::{SLOT, flow, load, rate_limit};

/// Reduces the effective capabilities of this thread to these.
fn keep_only(capabilities: &[u32]) {
    #[repr(C)]
    struct Header {
        version: u32,
        thread: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Word {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header {
        version: 0x2008_0522,
        thread: 0,
    };
    let mut words = [Word {
        effective: 0,
        permitted: !0,
        inheritable: 0,
    }; 2];
    // SAFETY: a header and two words are what this version takes.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, &raw mut words) };
    assert_eq!(got, 0, "{}", io::Error::last_os_error());
    for (place, word) in words.iter_mut().enumerate() {
        let mut of_word = capabilities
            .iter()
            .filter(|number| **number as usize / 32 == place);
        word.effective = of_word
            .by_ref()
            .fold(0, |bits, number| bits | 1 << (number % 32));
    }
    // SAFETY: as above.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, &raw const words) };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());
}

#[test]
fn a_missing_capability_is_named_and_no_more_than_three_are_needed() {
    const ENOUGH: [(u32, &str); 3] = [(39, "CAP_BPF"), (38, "CAP_PERFMON"), (12, "CAP_NET_ADMIN")];
    if !enter(PAIR) {
        return;
    }
    let missing = || match Classifier::load(&ClassifierConfig::default()) {
        Err(ClassifierError::Denied { missing }) => missing.0,
        other => panic!("{other:?}"),
    };
    keep_only(&[]);
    assert_eq!(missing(), ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"]);
    for (capability, name) in ENOUGH {
        let others = ENOUGH.map(|(other, _)| other);
        let others: Vec<u32> = others
            .into_iter()
            .filter(|other| *other != capability)
            .collect();
        keep_only(&others);
        assert_eq!(missing(), [name]);
    }

    keep_only(&ENOUGH.map(|(capability, _)| capability));
    let mut classifier = load(&ClassifierConfig::default());
    classifier
        .attach(index_of("lane0"), AttachMode::Native)
        .unwrap();
    let budget = rate_limit(5, Duration::from_millis(1));
    classifier.set_flow(SLOT, &flow(Some(budget))).unwrap();
    assert_eq!(classifier.replenisher(), Replenisher::KernelTimer);
    // Only CAP_SYS_ADMIN may query the owner of the program.
    let mut second = load(&ClassifierConfig::default());
    let refused = second
        .attach(index_of("lane0"), AttachMode::Native)
        .unwrap_err();
    assert!(
        matches!(&refused, ClassifierError::Foreign { program, .. } if program.name_and_tag.is_none()),
        "{refused}"
    );
}

#[test]
fn capabilities_of_a_user_namespace_do_not_count() {
    const INSIDE: &str = "ISOLANE_TEST_INSIDE_NAMESPACE";
    const NAME: &str = "rights::capabilities_of_a_user_namespace_do_not_count";
    if std::env::var_os(INSIDE).is_some() {
        let refused = Classifier::load(&ClassifierConfig::default());
        assert!(
            matches!(refused, Err(ClassifierError::UserNamespace)),
            "{refused:?}"
        );
        return;
    }
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        let inside = command
            .arg("--map-root-user")
            .args(arguments)
            .env(INSIDE, "1");
        inside.status().is_ok_and(|status| status.success())
    };
    if !unshare(&["true"]) {
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "CI must allow user namespaces");
        eprintln!("no user namespace can be made here: nothing was tried");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    assert!(unshare(&[program, "--exact", NAME, "--nocapture"]));
}
