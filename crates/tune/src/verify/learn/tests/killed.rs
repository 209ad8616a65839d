//! Tests of learning that is killed at each access to the machine and at each question. A rollback restores the
//! original values; until then learning is refused.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::*;

/// Machine, and the call (from 1) at which its process is killed.
struct Killing {
    device: Device,
    calls: Rc<Cell<usize>>,
    at: usize,
}

impl Killing {
    fn call(calls: &Cell<usize>, at: usize) {
        calls.set(calls.get() + 1);
        if calls.get() == at {
            // Unwinds the stack without calling the panic hook.
            resume_unwind(Box::new("killed"));
        }
    }
}

impl Machine for Killing {
    fn read(&mut self, setting: &Setting) -> Result<Value, SettingError> {
        Self::call(&self.calls, self.at);
        self.device.read(setting)
    }

    fn write(&mut self, setting: &Setting, value: &Value) -> Result<(), SettingError> {
        Self::call(&self.calls, self.at);
        self.device.write(setting, value)
    }
}

/// Learns until it is killed at one call. Returns the number of calls, and whether it completed.
fn killed(device: &Device, folder: &Folder, at: usize) -> (usize, bool) {
    let calls = Rc::new(Cell::new(0));
    let mut machine = Killing {
        device: device.clone(),
        calls: Rc::clone(&calls),
        at,
    };
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let landing = |datagram| {
            Killing::call(&calls, at);
            Ok(device.queue(datagram))
        };
        taught(&mut machine, folder, 2, landing).expect("nothing but a kill is in its way");
    }));
    (calls.get(), ended.is_ok())
}

fn learnt(device: &mut Device, folder: &Folder) -> Result<Learner, LearnError> {
    let network = device.clone();
    taught(device, folder, 2, |datagram| Ok(network.queue(datagram)))
}

/// Kills learning at each call in turn, each time on a new device and folder that `prepare` has set up.
fn kill_everywhere(prepare: impl Fn(&mut Device, &Folder)) {
    let prepared = || {
        let (folder, mut device) = (Folder::new(), Device::new());
        prepare(&mut device, &folder);
        (folder, device)
    };
    let before = Device::new().settings();
    let (folder, device) = prepared();
    let (calls, ended_by_reboot) = killed(&device, &folder, 0);
    // Seven tables, each with two settings that are read, set and read back; and 45 questions.
    assert!(ended_by_reboot && calls > 7 * 4 + 45, "{calls}");
    let mut has_differed = 0;
    for at in 1..=calls {
        let (folder, mut device) = prepared();
        let standing = device.settings();
        let (_, ended_by_reboot) = killed(&device, &folder, at);
        assert!(!ended_by_reboot, "call {at}");
        let left = device.settings();
        if left != standing {
            has_differed += 1;
            let again = learnt(&mut device, &folder);
            assert!(matches!(again, Err(LearnError::Unfinished)), "call {at}");
            assert_eq!(device.settings(), left, "call {at}: it changes nothing");
        }
        rollback(&mut device, &here(), &folder.0).expect("a journal, or none");
        assert_eq!(device.settings(), before, "killed at call {at}");
        let journal = folder.0.join("tune.journal");
        assert!(!journal.exists(), "killed at call {at}");
        learnt(&mut device, &folder).expect("it can be learnt now");
    }
    // Settings differ after a kill at any but the first and the last calls, which only read.
    assert!(has_differed * 10 > calls * 8, "{has_differed} of {calls}");
}

#[test]
fn killed_at_any_call_it_is_undone_by_a_rollback() {
    kill_everywhere(|_, _| {});
}

#[test]
fn killed_on_top_of_a_plan_both_are_undone_by_a_rollback() {
    kill_everywhere(|device, folder| {
        let ports_in = [(ports(), Value::Switch(false))];
        let earlier = Plan {
            profile: String::from("latency"),
            ..plan(&here(), &ports_in, |_| Value::Switch(true))
        };
        let applied = apply(device, &here(), &earlier, &folder.0, false, &|| false);
        applied.expect("it can be applied");
    });
}
