//! Tests of plans that keep interrupts of other devices, and other programs, off the executor's core.

mod support;

use isolane_model::{ProfileName, Tuning};
use isolane_tune::{
    Facts, FlowQueues, Format, Interface, Interrupt, NotPlanned, Plan, Severity, Value, export,
    plan,
};

use support::{examine, golden, machine, needs, profile, simulate, text_of};

fn planned(facts: &Facts, queue: u32, tuning: &Tuning) -> Plan {
    plan(facts, &needs(facts, queue), tuning, &FlowQueues::default())
}

/// Where a step about another device's interrupt has it go.
fn cores_of(plan: &Plan, id: &str) -> Option<Value> {
    let step = plan.steps.iter().find(|step| step.id == id);
    step.map(|step| step.to.clone())
}

fn cores(list: &str) -> Option<Value> {
    Some(Value::Text(String::from(list)))
}

fn refusal<'a>(plan: &'a Plan, id: &str) -> Option<&'a NotPlanned> {
    plan.not_planned.iter().find(|refusal| refusal.id == id)
}

fn of_others(plan: &Plan) -> usize {
    let steps = plan.steps.iter();
    steps
        .filter(|step| step.id.starts_with("cores.interrupt-"))
        .count()
}

#[test]
fn interrupts_of_other_devices_stay_off_the_executors_core_and_are_left_alone_elsewhere() {
    let mut facts = machine("ice");
    let plan = planned(&facts, 7, &profile(ProfileName::Balanced));
    assert_eq!(cores_of(&plan, "cores.interrupt-nvme0q0.7"), cores("0-6"));
    // It was kept to two cores by somebody, one of them the executor's.
    let disk = cores_of(&plan, "cores.interrupt-ahci[0000:00:17.0].7");
    assert_eq!(disk, cores("5"));
    // Two of one name are distinguished by their numbers.
    assert_eq!(cores_of(&plan, "cores.interrupt-41.7"), cores("0-6"));
    assert_eq!(cores_of(&plan, "cores.interrupt-xhci_hcd.7"), None);
    // The device's own ones have their own steps.
    assert!(
        !plan
            .steps
            .iter()
            .any(|step| step.id.starts_with("cores.interrupt-ice-eth0"))
    );
    simulate(&mut facts, &plan);
    let again = planned(&facts, 7, &profile(ProfileName::Balanced));
    assert_eq!(of_others(&again), 0);
    let off = Tuning::from_toml("other_irq_affinity = false", "own.toml").expect("a profile");
    assert_eq!(of_others(&planned(&machine("ice"), 7, &off)), 0);
}

#[test]
fn an_interrupt_that_the_kernel_has_placed_is_reported_and_left() {
    let refused_with = |line: &str| {
        let mut facts = machine("ice");
        facts.kernel.command_line = Some(String::from(line));
        let plan = planned(&facts, 7, &profile(ProfileName::Balanced));
        assert_eq!(cores_of(&plan, "cores.interrupt-nvme0q8.7"), None);
        refusal(&plan, "cores.interrupts-managed").cloned()
    };
    let refused = refused_with("quiet").expect("a disk has a queue for each core");
    assert!(
        refused.why.contains("0 (timer), 54 (nvme0q8)"),
        "{refused:?}"
    );
    assert!(
        !refused.why.contains("nvme0q7"),
        "it comes to core 6 only: {refused:?}"
    );
    assert!(
        refused.remedy.contains("managed_irq,domain,7"),
        "{refused:?}"
    );
    // The kernel keeps those off that have another core.
    let refused = refused_with("isolcpus=managed_irq,domain,7").expect("this one has none");
    assert!(!refused.why.contains("timer"), "{refused:?}");
    assert!(!refused.remedy.contains("isolcpus"), "{refused:?}");
}

#[test]
fn what_irqbalance_moves_is_left_to_it() {
    let facts = machine("igc");
    let plan = planned(&facts, 3, &profile(ProfileName::Latency));
    assert_eq!(of_others(&plan), 0);
    let refused = refusal(&plan, "cores.interrupts").expect("irqbalance runs");
    assert!(refused.why.contains("122 (nvme0q0)"), "{refused:?}");
    assert!(
        refused.remedy.contains("IRQBALANCE_BANNED_CPULIST=7"),
        "{refused:?}"
    );
}

#[test]
fn doctor_names_them_and_the_step() {
    let mut facts = machine("ice");
    let needs = needs(&facts, 7);
    let found = |facts: &Facts| {
        let findings = examine(facts, &needs);
        let mut findings = findings.into_iter();
        findings
            .find(|it| it.id == "cores.other-interrupts")
            .expect("a finding")
    };
    let finding = found(&facts);
    assert!(finding.what.contains("46 (nvme0q0)"), "{finding:?}");
    assert!(!finding.what.contains("nvme0q8"), "{finding:?}");
    assert!(
        finding
            .remedy
            .ends_with("the step cores.interrupt of isolane tune plan"),
        "{finding:?}"
    );
    let plan = planned(&facts, 7, &profile(ProfileName::Balanced));
    simulate(&mut facts, &plan);
    assert_eq!(found(&facts).severity, Severity::Ok);
}

#[test]
fn a_script_finds_them_by_their_names_and_goes_on_where_the_kernel_refuses() {
    let plan = planned(&machine("ice"), 7, &profile(ProfileName::Balanced));
    let script = &export(&plan, Format::Shell).files[0].text;
    let line = |name: &str| {
        let found = script.lines().find(|line| line.contains(name));
        found.unwrap_or_default().to_owned()
    };
    let disk = line("$(interrupt nvme0q0)");
    assert!(disk.contains("echo 0-6 > \"/proc/irq/"), "{disk}");
    assert!(
        disk.contains("|| left_out cores.interrupt-nvme0q0.7"),
        "{disk}"
    );
    assert!(
        script.contains("interrupt i801_smbus,ehci_hcd:usb1"),
        "{script}"
    );
    // On a machine with two cores there is one other: it is no steering that is missing.
    let mut facts = machine("igb");
    let name = String::from("nvme0q0");
    facts.interrupts.push(Interrupt {
        number: 40,
        name,
        cores: vec![0, 1],
        ..Interrupt::default()
    });
    let plan = planned(&facts, 1, &profile(ProfileName::Balanced));
    assert_eq!(cores_of(&plan, "cores.interrupt-nvme0q0.1"), cores("0"));
    let missing = export(&plan, Format::Shell).missing;
    assert!(
        !missing.iter().any(|(id, _)| id.starts_with("cores.")),
        "{missing:?}"
    );
}

/// The plan of a machine where systemd is to keep programs off the core.
fn by_systemd(name: &str, queue: u32, change: impl Fn(&mut Facts)) -> Plan {
    let mut facts = machine(name);
    change(&mut facts);
    let tuning = Tuning::from_toml("isolation = \"cpuset\"", "own.toml").expect("a profile");
    planned(&facts, queue, &tuning)
}

fn boot_steps(plan: &Plan) -> Vec<&str> {
    let ids = plan.steps.iter().map(|step| step.id.as_str());
    ids.filter(|id| id.starts_with("boot.")).collect()
}

const CONTROLLERS: &str = "/sys/fs/cgroup/cgroup.controllers";

#[test]
fn slices_leave_the_core_free_and_say_what_becomes_of_pinned_programs() {
    let with_controllers = |facts: &mut Facts| {
        let controllers = String::from("cpuset cpu io memory pids");
        facts
            .attributes
            .insert(String::from(CONTROLLERS), controllers);
    };
    let plan = by_systemd("stmmac", 4, with_controllers);
    golden("plans/stmmac.cpuset.diff", &plan.to_diff());
    let steps = [
        "boot.cpuset.system.slice",
        "boot.cpuset.user.slice",
        "boot.cpuset.machine.slice",
        "boot.cpuset.init.scope",
        "boot.cpuset.isolane.slice",
    ];
    assert_eq!(boot_steps(&plan), steps);
    let user = plan.steps.iter().find(|step| step.id == steps[1]);
    let costs = &user.expect("a step").costs;
    assert!(
        costs.contains("core 3 get EINVAL, unless they run in isolane.slice"),
        "{costs}"
    );
    let guests = refusal(&plan, "boot.cpuset.guests").expect("not all are in those");
    assert!(!guests.why.contains("machine.slice"), "{guests:?}");
}

#[test]
fn without_cpusets_programs_inherit_the_other_cores() {
    let first_version = |facts: &mut Facts| {
        let cores = String::from("0-7");
        let path = String::from("/sys/fs/cgroup/cpuset/cpuset.cpus");
        facts.attributes.insert(path, cores);
    };
    let by_argument = |facts: &mut Facts| {
        let line = "systemd.unified_cgroup_hierarchy=0";
        facts.kernel.command_line = Some(String::from(line));
    };
    let without = |facts: &mut Facts| {
        let controllers = String::from("cpu io memory pids");
        facts
            .attributes
            .insert(String::from(CONTROLLERS), controllers);
    };
    let plans = [
        by_systemd("igc", 3, first_version),
        by_systemd("igc", 3, by_argument),
        by_systemd("igc", 3, without),
    ];
    for plan in &plans {
        assert_eq!(boot_steps(plan), ["boot.affinity"]);
        let mut steps = plan.steps.iter();
        let step = steps.find(|step| step.id == "boot.affinity");
        let step = step.expect("a step");
        let text = "[Manager]\nCPUAffinity=\nCPUAffinity=0-6\n";
        assert_eq!(text_of(&step.to), text);
        assert!(step.costs.contains("inherit an affinity"), "{step:?}");
    }
    let without_systemd = by_systemd("igb", 1, |_| {});
    assert_eq!(boot_steps(&without_systemd), [""; 0]);
    assert!(
        refusal(&without_systemd, "boot.cpusets").is_some(),
        "systemd does not run"
    );
}

/// Where somebody else has said which cores a slice has.
fn bound(unit: &str, cores: &str) -> impl Fn(&mut Facts) {
    let path = format!("/sys/fs/cgroup/{unit}/cpuset.cpus");
    let cores = String::from(cores);
    move |facts| {
        facts.attributes.insert(path.clone(), cores.clone());
    }
}

#[test]
fn what_others_have_bound_a_slice_to_is_neither_widened_nor_taken_away() {
    let id = "boot.cpuset.user.slice";
    let free = by_systemd("stmmac", 4, bound("user.slice", ""));
    let step = free.steps.iter().find(|step| step.id == id);
    let text = "[Slice]\nAllowedCPUs=\nAllowedCPUs=0-2\n";
    assert_eq!(
        text_of(&step.expect("a step").to),
        text,
        "lists of several files are added to each other"
    );
    let narrow = by_systemd("stmmac", 4, bound("user.slice", "0-1"));
    assert!(!boot_steps(&narrow).contains(&id));
    assert_eq!(
        refusal(&narrow, id),
        None,
        "it leaves the core free already"
    );
    let wide = by_systemd("stmmac", 4, bound("user.slice", "0-3"));
    assert!(!boot_steps(&wide).contains(&id));
    let refused = refusal(&wide, id).expect("the executor's core is among them");
    assert!(
        refused.why.contains("cores 0-3, which include core 3"),
        "{refused:?}"
    );
    assert!(refused.remedy.contains("systemctl cat user.slice"));
    // After the step, the bound is the plan's own, and is undone with it.
    let own = |facts: &mut Facts| {
        let step = step.expect("a step");
        facts.simulate(&step.setting, &step.to);
        bound("user.slice", "0-2")(facts);
    };
    assert!(!boot_steps(&by_systemd("stmmac", 4, own)).contains(&id));
    let gone = |facts: &mut Facts| {
        own(facts);
        let step = step.expect("a step");
        facts.simulate(&step.setting, &step.from);
    };
    assert!(boot_steps(&by_systemd("stmmac", 4, gone)).contains(&id));
}

#[test]
fn cores_that_others_keep_systemd_to_are_not_widened() {
    let planned = |cores: &[u16]| {
        by_systemd("igc", 3, |facts| {
            facts.kernel.command_line = Some(String::from("systemd.unified_cgroup_hierarchy=0"));
            facts.boot.systemd_cores = Some(cores.to_vec());
        })
    };
    let all: Vec<u16> = (0..8).collect();
    assert_eq!(boot_steps(&planned(&all)), ["boot.affinity"]);
    let narrow = planned(&[0, 1]);
    assert_eq!(boot_steps(&narrow), [""; 0]);
    assert_eq!(refusal(&narrow, "boot.affinity"), None);
    let with_it = planned(&[0, 7]);
    assert_eq!(boot_steps(&with_it), [""; 0]);
    let refused = refusal(&with_it, "boot.affinity").expect("the executor's core is one");
    assert!(
        refused.why.contains("cores 0,7, which include core 7"),
        "{refused:?}"
    );
}

#[test]
fn an_interrupt_of_a_thread_that_is_switched_off_does_not_come_to_the_executors_core() {
    // Cores 7 and 15 are two threads of one.
    let mut facts = machine("ixgbe");
    facts.programs.retain(|program| program != "irqbalance");
    facts.interrupts.push(Interrupt {
        number: 900,
        name: String::from("disk"),
        cores: vec![7],
        ..Interrupt::default()
    });
    let plan = planned(&facts, 7, &profile(ProfileName::Latency));
    let place = |id: &str| plan.steps.iter().position(|step| step.id == id);
    let moved = place("cores.interrupt-disk.15").expect("it would be sent anywhere");
    let off = place("cores.sibling.7").expect("a step");
    assert!(moved < off, "else it could not go back there");
    simulate(&mut facts, &plan);
    let disk = facts.interrupts.iter().find(|it| it.number == 900);
    assert!(!disk.expect("a disk").cores.contains(&15), "{disk:?}");
}

#[test]
fn doctor_tells_of_the_same_interrupts_as_plans_do() {
    let finding = |facts: &Facts, interface: &str| {
        let mut needs = needs(facts, 7);
        needs.interface = Some(String::from(interface));
        let mut findings = examine(facts, &needs).into_iter();
        findings
            .find(|it| it.id == "cores.other-interrupts")
            .expect("a finding")
    };
    // Those of the device below a VLAN are its own.
    let mut facts = machine("ice");
    facts.interfaces.push(Interface {
        name: String::from("eth0.5"),
        kind: Some(String::from("vlan")),
        parent: Some(String::from("eth0")),
        ..Interface::default()
    });
    let own = "ice-eth0-TxRx";
    assert!(facts.interrupts.iter().any(|it| it.name.contains(own)));
    assert_eq!(finding(&facts, "eth0.5"), finding(&facts, "eth0"));
    assert!(!finding(&facts, "eth0.5").what.contains(own));
    // SMT siblings of the executor's core are not proposed.
    let mut facts = machine("ixgbe");
    facts.interrupts.push(Interrupt {
        number: 900,
        name: String::from("disk"),
        cores: vec![7],
        ..Interrupt::default()
    });
    let found = finding(&facts, "eth0");
    assert!(found.what.contains("900 (disk)"), "{found:?}");
    assert!(found.remedy.contains("irqaffinity=0-6,8-14"), "{found:?}");
}
