//! Tests of `[tune]`: the profile determines every switch that is not set.

use super::KINDS;
use isolane_model::{
    Isolation, ProfileName, Source, Sourced, Steering, System, Transmit, Tuning, switches,
};

fn tuning(text: &str) -> Tuning {
    let system = System::from_toml(text, "isolane.toml", KINDS).expect("a description");
    system.tuning().clone()
}

/// Headlines of the problems of a description.
fn wrong(text: &str) -> Vec<String> {
    let problems = System::from_toml(text, "isolane.toml", KINDS).expect_err("a wrong description");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn without_a_word_the_profile_is_balanced() {
    let tuning = tuning("");
    assert_eq!(tuning.profile.value, ProfileName::Balanced);
    assert_eq!(tuning.isolation.value, Isolation::None);
    assert_eq!(tuning.profile.source, Source::Default);
    assert_eq!(tuning.name(), "balanced");
}

#[test]
fn a_switch_of_ones_own_counts_before_the_profile() {
    let own = tuning("[tune]\nprofile = \"latency\"\ncoalescing_us = 5\ntransmit = \"pfifo\"\n");
    assert_eq!(own.coalescing_us.value, Some(5));
    assert_eq!(own.coalescing_us.source.to_string(), "isolane.toml:3");
    assert_eq!(own.transmit.value, Transmit::Pfifo);
    assert_eq!(own.isolation.value, Isolation::Boot, "the profile's");
    assert_eq!(own.isolation.source.to_string(), "default for profile");
    assert_eq!(own.name(), "latency with 2 changed switches");
    let over = own.over(Sourced::new(
        ProfileName::Balanced,
        Source::CommandLine("--profile"),
    ));
    assert_eq!(over.isolation.value, Isolation::None);
    assert_eq!(over.coalescing_us.value, Some(5));
}

#[test]
fn what_is_not_known_or_out_of_bounds_is_an_error() {
    let found = wrong("[tune]\nprofile = \"fast\"\nsteerin = \"rules\"\ncoalescing_us = \"no\"\n");
    assert_eq!(found.len(), 3, "{found:#?}");
    let said = "`profile` in [tune] must be \"latency\" or \"balanced\"";
    assert!(found[0].contains(said), "{found:#?}");
    assert!(found[1].contains("unknown key `steerin`"), "{found:#?}");
    assert!(found[2].contains("`coalescing_us`"), "{found:#?}");
    assert_eq!(wrong("tune = 3").len(), 1);
    assert_eq!(wrong("[tune]\ncritical_level = 8").len(), 1);
}

#[test]
fn a_former_key_is_refused_with_its_present_name() {
    let help = |key: &str| {
        let text = format!("[tune]\n{key} = true\n");
        let problems = System::from_toml(&text, "isolane.toml", KINDS).expect_err("a former key");
        assert!(problems[0].what().contains("unknown key"), "{problems:#?}");
        problems[0].help().map(String::from).unwrap_or_default()
    };
    let inverted =
        "it is `gro` now, with the opposite value: `merging_off = true` is `gro = false`";
    assert_eq!(help("merging_off"), inverted);
    assert_eq!(help("full_speed"), "it is `performance_governor` now");
    let of_file = Tuning::from_toml("full_speed = true\n", "fast.toml").expect_err("a former key");
    assert_eq!(of_file[0].help(), Some("it is `performance_governor` now"));
}

#[test]
fn numbers_and_levels_can_be_left_to_the_machine() {
    let own = tuning("[tune]\ncoalescing_us = \"keep\"\ncritical_level = 6\nsteering = \"none\"");
    assert_eq!(own.coalescing_us.value, None);
    assert_eq!(own.critical_level.value.map(|level| level.get()), Some(6));
    assert_eq!(own.steering.value, Steering::None);
}

#[test]
fn a_profile_may_be_a_file_of_its_own() {
    let own = Tuning::from_toml("profile = \"latency\"\nservices = false\n", "own.toml");
    let own = own.expect("a profile");
    assert!(!own.services.value);
    assert!(own.performance_governor.value);
    let wrong = Tuning::from_toml("domain = 0\n", "own.toml").expect_err("a key of descriptions");
    assert!(wrong[0].to_string().contains("unknown key `domain`"));
}

#[test]
fn every_switch_says_what_it_does_in_both_profiles() {
    let switches = switches();
    assert_eq!(switches.len() + 1, Tuning::default().entries().len());
    for switch in switches {
        assert!(switch.meaning.ends_with('.'), "{switch:?}");
        assert!(!switch.latency.is_empty() && !switch.balanced.is_empty());
    }
}
