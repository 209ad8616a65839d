//! Text of the systemd unit, and quoting in it.
//!
//! Quoting has three layers (systemd.syntax(7), systemd.unit(5), systemd.service(5)): quoted words with C escapes; `%`
//! specifiers, in all names; and `$` variables, in arguments only. The first word of `ExecStart=` is the program:
//! variables are not expanded in it, so `$$` would stay two dollars, and quotes and backslashes are refused in it even
//! when escaped.

use std::path::Path;

use super::{BootPart, PathError};
use crate::limits::BOOT_UNIT_TIMEOUT;
use crate::systemd::device_of;

/// Path as text that a unit can hold.
pub(super) fn name(path: &Path) -> Result<&str, PathError> {
    let name = path.to_str().ok_or(PathError::NotText)?;
    match name.contains(|letter: char| letter.is_control()) {
        // They would end the line.
        true => Err(PathError::Characters("control characters")),
        false => Ok(name),
    }
}

/// Path as text that a unit can hold as a program.
pub(super) fn program_name(path: &Path) -> Result<&str, PathError> {
    let name = name(path)?;
    match has_quotes(name) {
        true => Err(PathError::Characters("quotes or backslashes")),
        false => Ok(name),
    }
}

fn has_quotes(name: &str) -> bool {
    name.contains(['"', '\'', '\\'])
}

/// Text of the unit that starts `program` with the plan in `folder`, ordered after `interfaces`.
pub(super) fn text(program: &str, folder: &str, interfaces: &[String]) -> String {
    let saved = BootPart::saved(Path::new(folder));
    let devices: Vec<String> = interfaces.iter().map(|name| device_of(name)).collect();
    let devices = match devices.join(" ") {
        none if none.is_empty() => none,
        // `After=` alone: other settings apply even if an interface is missing. `Wants=` would make systemd wait 90 s
        // for it; the program waits itself, for a shorter time.
        devices => format!("After={devices}\n"),
    };
    format!(
        "# Made by `isolane tune apply`; `isolane tune rollback` takes it away.\n\
         [Unit]\n\
         Description=Settings of this machine for critical topics\n\
         ConditionPathExists={saved}\n\
         RequiresMountsFor={mounts}\n\
         {devices}\
         After=network.target systemd-sysctl.service irqbalance.service tuned.service\n\
         Before=network-online.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         TimeoutSec={timeout}\n\
         ExecStart=\"{program}\" tune apply --boot --state {state}\n",
        saved = without_specifiers(&saved.display().to_string()),
        mounts = [program, folder].map(mount).join(" "),
        timeout = BOOT_UNIT_TIMEOUT.as_secs(),
        program = without_specifiers(program),
        state = argument(folder),
    )
}

/// Path for `RequiresMountsFor=`. Quotes cannot be escaped there, so a path with quotes is cut to its longest prefix
/// without them.
fn mount(path: &str) -> String {
    let mut above = Path::new(path).ancestors().filter_map(Path::to_str);
    let plain = above.find(|path| !has_quotes(path)).unwrap_or("/");
    format!("\"{}\"", without_specifiers(plain))
}

fn argument(text: &str) -> String {
    let text = without_specifiers(text).replace('$', "$$");
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

fn without_specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use isolane_hostnet::limits::NETLINK_PATIENCE;

    use crate::limits::BOOT_INTERFACE_TIMEOUT;

    fn assert_has(unit: &str, lines: &[&str]) {
        for line in lines {
            assert!(
                unit.lines().any(|known| known == *line),
                "no {line} in {unit}"
            );
        }
    }

    #[test]
    fn the_unit_waits_for_its_interfaces_and_is_waited_for() {
        let interfaces = ["eth0".into(), "en-p1".into()];
        let unit = text("/usr/bin/isolane", "/var/lib/isolane", &interfaces);
        assert_has(
            &unit,
            &[
                "After=sys-subsystem-net-devices-eth0.device sys-subsystem-net-devices-en\\x2dp1.device",
                "Before=network-online.target",
                "ConditionPathExists=/var/lib/isolane/tune.plan",
                "RequiresMountsFor=\"/usr/bin/isolane\" \"/var/lib/isolane\"",
                "ExecStart=\"/usr/bin/isolane\" tune apply --boot --state \"/var/lib/isolane\"",
            ],
        );
        let unit = text("/usr/bin/isolane", "/var/lib/isolane", &[]);
        assert!(!unit.contains(".device"), "{unit}");
        assert!(
            !unit.contains("\nAfter=\n") && !unit.contains("Wants="),
            "{unit}"
        );
    }

    #[test]
    fn a_boot_is_not_kept_waiting_for_ever_nor_tried_again_for_ever() {
        let unit = text("/usr/bin/isolane", "/var/lib/isolane", &[]);
        // systemd has no default timeout for this type.
        assert_has(&unit, &["Type=oneshot", "TimeoutSec=180"]);
        assert!(BOOT_UNIT_TIMEOUT > BOOT_INTERFACE_TIMEOUT + 2 * NETLINK_PATIENCE);
        assert!(!unit.contains("Restart="), "{unit}");
    }

    #[test]
    fn names_with_letters_of_systemd_are_told_as_it_reads_them() {
        let unit = text(
            "/opt/a $x 100% b/isolane",
            "/var/$HOME 5%h \"it's\" \\b",
            &[],
        );
        assert_has(
            &unit,
            &[
                "ConditionPathExists=/var/$HOME 5%%h \"it's\" \\b/tune.plan",
                "RequiresMountsFor=\"/opt/a $x 100%% b/isolane\" \"/var\"",
                "ExecStart=\"/opt/a $x 100%% b/isolane\" tune apply --boot --state \
                 \"/var/$$HOME 5%%h \\\"it's\\\" \\\\b\"",
            ],
        );
    }

    #[test]
    fn names_that_systemd_cannot_be_told_are_refused() {
        let odd = Path::new(OsStr::from_bytes(b"/opt/\xff"));
        assert_eq!(name(odd), Err(PathError::NotText));
        let lines = Path::new("/opt/a\nExecStart=/bin/other");
        assert!(matches!(name(lines), Err(PathError::Characters(_))));
        for path in ["/opt/it's/isolane", "/opt/\"a\"/isolane", "/opt/a\\b"] {
            let path = Path::new(path);
            assert!(name(path).is_ok());
            assert!(matches!(program_name(path), Err(PathError::Characters(_))));
        }
        assert_eq!(program_name(Path::new("/opt/$a %b")), Ok("/opt/$a %b"));
    }
}
