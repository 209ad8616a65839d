//! Tests of plans and journals that another user has written, or could have written: `tune` applies nothing of them.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use isolane_tune::{Plan, Setting, Step, Value};

use crate::command::run;
use crate::test_host::{Place, inside};

/// User id of an unprivileged user.
const UNPRIVILEGED: u32 = 65_534;

fn apply(place: &Place) -> Command {
    let mut command = place.tune(&["apply", &place.plan_file(), "--no-boot"]);
    command.env_remove("SUDO_UID");
    command
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
}

fn mode_of(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn steps_that_planning_cannot_make_are_refused() {
    inside(
        "hostile::steps_that_planning_cannot_make_are_refused",
        || {
            let place = Place::new("tune-steps");
            let before = place.look();
            let victim = place.file("authorized_keys");
            let document = |path: &str| Setting::Document { path: path.into() };
            let attribute = |path: &str| Setting::Attribute { path: path.into() };
            let text = |text: &str| Value::Text(text.into());
            fs::write(&victim, "theirs\n").expect("ours");
            for (setting, from, to) in [
                (document(&victim), text("theirs\n"), text("evil\n")),
                (document(&victim), text("theirs\n"), Value::Absent),
                (
                    document("/etc/security/limits.d/90-isolane.conf"),
                    Value::Absent,
                    text("* - rtprio 99\n"),
                ),
                (
                    attribute("/proc/sys/net/ipv4/ip_forward"),
                    text("0"),
                    text("1"),
                ),
                (
                    attribute("/sys/class/net/eth0/gro_flush_timeout"),
                    text("20000"),
                    text("30000"),
                ),
                (
                    Setting::Folder {
                        path: place.file("folder"),
                    },
                    Value::Absent,
                    Value::Present,
                ),
                (
                    Setting::Thread {
                        name: "kthreadd".into(),
                    },
                    Value::Absent,
                    Value::Absent,
                ),
            ] {
                let mut plan = place.plan();
                plan.steps.push(Step {
                    id: "evil\u{1b}[2J".into(),
                    setting: setting.clone(),
                    from,
                    to,
                    ..plan.steps[0].clone()
                });
                place.write_plan(&plan);
                let (code, out, err) = run(&mut apply(&place));
                assert_eq!((code, out.as_str()), (2, ""), "{err}");
                for said in [
                    "isolane tune plan cannot have made 1 step",
                    "evil\\u001b[2J: ",
                    "plan again",
                ] {
                    assert!(err.contains(said), "no {said} in {err}");
                }
                assert!(!err.contains('\u{1b}'), "{err:?}");
                place.assert_is(&before, &setting.to_string());
                let kept = fs::read_to_string(&victim).expect("ours");
                assert_eq!(kept, "theirs\n");
            }
        },
    );
}

#[test]
fn a_plan_that_others_own_or_can_write_to_is_refused() {
    inside(
        "hostile::a_plan_that_others_own_or_can_write_to_is_refused",
        || {
            let place = Place::new("tune-owner");
            let before = place.look();
            place.write_plan(&place.plan());
            let path = place.plan_file();
            for mode in [0o666, 0o664, 0o646] {
                set_mode(&path, mode);
                let (code, _, err) = run(&mut apply(&place));
                assert_eq!(code, 2, "{err}");
                let said = format!("others can write to it (its mode is {mode:04o})");
                assert!(err.contains(&said), "{err}");
            }
            set_mode(&path, 0o644);
            chown(&path, Some(UNPRIVILEGED), None).expect("root");
            let (code, _, err) = run(&mut apply(&place));
            assert!(code == 2 && err.contains("belongs to user 65534"), "{err}");
            place.assert_is(&before, "before it was trusted");
            // The user who called sudo owns the plan.
            let (code, _, err) = run(apply(&place).env("SUDO_UID", UNPRIVILEGED.to_string()));
            assert_eq!((code, err.as_str()), (0, ""));
            let (code, _, err) = run(&mut place.tune(&["rollback"]));
            assert_eq!((code, err.as_str()), (0, ""));
            place.assert_is(&before, "after the rollback");
        },
    );
}

/// The file that `plan` writes can be applied, whatever the umask.
#[test]
fn a_plan_says_where_it_is_and_what_comes_next() {
    inside(
        "hostile::a_plan_says_where_it_is_and_what_comes_next",
        || {
            let place = Place::new("tune-next");
            let path = place.file("written.json");
            let plan = place.tune(&["plan", &path, "--profile", "latency"]);
            let script = "umask 0; exec \"$0\" \"$@\"";
            let mut plan = place.under("sh", &["-c", script], &plan);
            let (code, out, err) = run(plan.current_dir(place.state()));
            assert_eq!(code, 0, "{err}");
            assert!(
                out.contains(&format!("The plan is written to {path}; ")),
                "{out}"
            );
            assert_eq!(mode_of(&path), 0o644);
            let steps = serde_json::from_str::<Plan>(&fs::read_to_string(&path).expect("a plan"));
            let next = match steps.expect("JSON").steps.is_empty() {
                true => String::from("there is nothing to apply"),
                false => format!("to apply it: sudo isolane tune apply {path}"),
            };
            assert!(out.trim_end().ends_with(&next), "{out}");
        },
    );
}

#[test]
fn what_is_no_file_or_too_long_is_refused_at_once_wherever_it_stands() {
    let name = "hostile::what_is_no_file_or_too_long_is_refused_at_once_wherever_it_stands";
    inside(name, || {
        let place = Place::new("tune-fifo");
        let state = PathBuf::from(place.state());
        let fifo = |path: &Path| {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo").success());
        };
        let at_once = |call: &Command| {
            let (code, _, err) = run(&mut place.under("timeout", &["20"], call));
            (code, err)
        };
        fifo(Path::new(&place.plan_file()));
        let (code, err) = at_once(&apply(&place));
        assert!(code == 2 && err.contains("a FIFO"), "{err}");
        fs::remove_file(place.plan_file()).expect("ours");

        let mut long = File::create(place.plan_file()).expect("ours");
        long.write_all(b"{\"schema\":\"").expect("ours");
        long.set_len(70 << 20).expect("a sparse file");
        let (code, err) = at_once(&apply(&place));
        assert!(code == 2 && err.contains("longer than"), "{err}");
        let schema = format!("{{\"schema\":\"{}\"}}", "x".repeat(1 << 20));
        fs::write(place.plan_file(), schema).expect("ours");
        let (code, err) = at_once(&apply(&place));
        assert!(code == 2 && err.len() < 1_000, "{} bytes", err.len());

        place.write_plan(&place.plan());
        for name in ["tune.journal", "tune.lock"] {
            let path = state.join(name);
            fifo(&path);
            let calls = [
                apply(&place),
                place.tune(&["status"]),
                place.tune(&["rollback"]),
            ];
            for call in &calls {
                let (code, err) = at_once(call);
                // Without a journal, only `apply` takes the lock.
                let is_asked = name == "tune.journal" || call.get_args().any(|it| it == "apply");
                let is_refused = code == 3 && err.contains("not a regular file");
                assert_eq!(is_refused, is_asked, "{call:?}: {err}");
            }
            fs::remove_file(&path).expect("ours");
        }
    });
}

#[test]
fn links_and_journals_of_others_are_refused() {
    inside("hostile::links_and_journals_of_others_are_refused", || {
        let place = Place::new("tune-links");
        let before = place.look();
        place.write_plan(&place.plan());
        let state = PathBuf::from(place.state());
        let (lock, journal) = (state.join("tune.lock"), state.join("tune.journal"));
        let victim = PathBuf::from(place.file("victim"));
        fs::write(&victim, "theirs").expect("ours");
        for path in [&lock, &journal] {
            symlink(&victim, path).expect("ours");
            let (code, _, err) = run(&mut apply(&place));
            assert!(code == 3 && err.contains("symbolic link"), "{err}");
            assert_eq!(fs::read_to_string(&victim).expect("ours"), "theirs");
            fs::remove_file(path).expect("ours");
        }
        // Modes do not depend on the umask.
        fs::remove_dir_all(&state).expect("ours");
        let script = "umask 0; exec \"$0\" \"$@\"";
        let (code, _, err) = run(&mut place.under("sh", &["-c", script], &apply(&place)));
        assert_eq!((code, err.as_str()), (0, ""));
        let document = "/etc/security/limits.d/90-isolane.conf";
        for (path, mode) in [
            (state.as_path(), 0o700),
            (&lock, 0o600),
            (&journal, 0o600),
            (Path::new(document), 0o644),
            (Path::new("/etc/security/limits.d"), 0o755),
        ] {
            assert_eq!(mode_of(path), mode, "{}", path.display());
        }
        let applied = place.look();
        let refused = |why: &str| {
            for arguments in [&["rollback"][..], &["status"]] {
                let (code, out, err) = run(&mut place.tune(arguments));
                assert_eq!((code, out.as_str()), (3, ""), "{why}: {err}");
                assert!(err.contains(why), "no {why} in {err}");
            }
            assert_eq!(place.look(), applied, "{why}");
        };
        set_mode(&state, 0o777);
        refused("its mode is 0777");
        set_mode(&state, 0o700);
        set_mode(&journal, 0o620);
        refused("its mode is 0620");
        set_mode(&journal, 0o600);
        chown(&journal, Some(UNPRIVILEGED), None).expect("root");
        refused("belongs to user 65534");
        chown(&journal, Some(0), None).expect("root");
        chown(&state, Some(UNPRIVILEGED), None).expect("root");
        refused("belongs to user 65534");
        chown(&state, Some(0), None).expect("root");
        let (code, _, err) = run(&mut place.tune(&["rollback"]));
        assert_eq!((code, err.as_str()), (0, ""));
        place.assert_is(&before, "after the rollback");
    });
}

#[test]
fn a_journal_that_cannot_be_read_or_was_cut_is_never_nothing_to_undo() {
    let name = "hostile::a_journal_that_cannot_be_read_or_was_cut_is_never_nothing_to_undo";
    inside(name, || {
        let place = Place::new("tune-unread");
        let state = place.state();
        set_mode(&state, 0o700);
        place.write_plan(&place.plan());
        let (code, _, err) = run(&mut apply(&place));
        assert_eq!(code, 0, "{err}");
        let rollback = || place.tune(&["rollback"]);
        let mut other = place.under(
            "setpriv",
            &["--reuid", "65534", "--clear-groups"],
            &rollback(),
        );
        let (code, out, err) = run(&mut other);
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        assert!(err.contains("Permission denied"), "{err}");
        // A misspelt folder, and a file.
        for wrong in [place.file("stats"), place.plan_file()] {
            for command in ["rollback", "status"] {
                let arguments = ["tune", command, "--state", &wrong];
                let (code, out, err) = run(&mut crate::command::isolane(&arguments));
                assert_eq!((code, out.as_str()), (3, ""), "{wrong}: {err}");
                assert!(err.contains(&wrong), "{err}");
            }
        }
        let journal = Path::new(&state).join("tune.journal");
        let whole = fs::read(&journal).expect("it is kept");
        fs::write(&journal, &whole[..whole.len() / 2]).expect("ours");
        let (code, out, err) = run(&mut rollback());
        assert!(code == 1 && out.contains("restored"), "{out}{err}");
        assert!(err.contains("lines at its end"), "{err}");
        let kept = Path::new(&state).join("tune.journal.broken");
        assert_eq!(fs::read(kept).expect("for people").len(), whole.len() / 2);
    });
}

/// The kernel's default queueing discipline, and the same one set explicitly, have one name.
#[test]
fn an_explicit_value_is_distinguished_from_a_default_of_the_same_name() {
    let name = "hostile::an_explicit_value_is_distinguished_from_a_default_of_the_same_name";
    inside(name, || {
        let place = Place::new("tune-noqueue");
        place.write_plan(&place.plan());
        let set = Command::new("tc")
            .args(["qdisc", "replace", "dev", "eth0", "root", "noqueue"])
            .status();
        assert!(set.expect("tc, of iproute2").success());
        let (code, _, err) = run(&mut apply(&place));
        let said = "planned from noqueue, found noqueue (set explicitly)";
        assert!(code == 1 && err.contains(said), "{err}");
    });
}

#[test]
fn settings_lost_from_a_damaged_journal_are_not_forgotten() {
    inside(
        "hostile::settings_lost_from_a_damaged_journal_are_not_forgotten",
        || {
            let place = Place::new("tune-damaged");
            let before = place.look();
            place.write_plan(&place.plan());
            assert_eq!(run(&mut apply(&place)).0, 0);
            let state = PathBuf::from(place.state());
            let journal = fs::read_to_string(state.join("tune.journal")).expect("ours");
            let whole: Vec<&str> = journal.split_inclusive('\n').collect();
            fs::write(state.join("tune.journal"), whole[..3].concat()).expect("ours");
            let (code, _, err) = run(&mut place.tune(&["rollback"]));
            let cut = "lines at its end";
            assert!(code == 1 && err.contains(cut), "{code} {err}");

            let kept = state.join("tune.journal.broken");
            let is_reported = |err: &str| err.contains("may still have the values of the plan");
            for command in ["status", "rollback"] {
                let (code, _, err) = run(&mut place.tune(&[command]));
                assert!(code == 1 && is_reported(&err), "{command}: {code} {err}");
                assert!(err.contains("tune.journal.broken"), "{err}");
            }
            let (code, out, _) = run(&mut place.tune(&["status", "--json", "-"]));
            let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
            let reported = &report["damaged_journals"][0];
            assert_eq!((code, reported.as_str()), (1, kept.to_str()));

            let (code, _, err) = run(&mut apply(&place));
            assert!(code == 0 && is_reported(&err), "{code} {err}");
            let (code, out, err) = run(&mut place.tune(&["rollback"]));
            assert!(code == 1 && out.contains("restored"), "{code} {out}");
            assert!(is_reported(&err), "{err}");

            // The original journal restores the rest.
            fs::rename(&kept, state.join("aside")).expect("ours");
            fs::write(state.join("tune.journal"), journal).expect("ours");
            let (code, out, err) = run(&mut place.tune(&["rollback"]));
            assert_eq!((code, err.as_str()), (0, ""), "{out}");
            place.assert_is(&before, "after both rollbacks");
            let (code, out, _) = run(&mut place.tune(&["status"]));
            assert!(code == 0 && out.contains("no plan is applied"), "{out}");
        },
    );
}
