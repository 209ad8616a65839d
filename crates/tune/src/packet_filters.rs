//! Packet filters of this network namespace: may a rule drop a UDP datagram to a port?
//!
//! [`packet_filters`] reads the rules with `nft`, which also prints those of iptables-nft. Where the kernel has tables
//! of iptables-legacy, it also runs `iptables-legacy-save`; elsewhere that tool might create them. Both need
//! CAP_NET_ADMIN.
//!
//! The answer is conservative. A drop is certain only if a base chain itself drops every UDP datagram to the port, by a
//! rule or its policy. No earlier rule of the chain may accept the datagram. A drop is possible if it has a further
//! condition, is in another chain, or is in a chain that sees only some datagrams. An unknown action may drop too.

mod tool;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::needs::Direction;

use self::tool::{Deadline, answer};

/// Packet filter rules that could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilters {
    /// The tools that printed rules: `nft`, `iptables-legacy`.
    pub read_by: Vec<&'static str>,
    /// Reason that rules, which exist or may exist, were not read.
    pub unreadable: Option<String>,
    chains: Chains,
}

/// Fate of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No rule drops it.
    Passes,
    /// Certain drop by this rule.
    Dropped(String),
    /// Possible drop by this rule.
    Perhaps(String),
}

/// Chains by tool, family, table and name.
type Chains = BTreeMap<String, Chain>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Chain {
    /// `None`: datagrams of this host enter the chain only from other chains.
    hook: Option<Direction>,
    /// The chain sees only some datagrams: those of one interface or of a bridge, or the first of a connection.
    is_partial: bool,
    /// The chain's policy is to drop.
    drops_rest: bool,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    /// Destination ports; `None`: all.
    ports: Option<Vec<(u16, u16)>>,
    /// The rule is about a protocol other than UDP over IPv4.
    is_other_protocol: bool,
    /// The rule has a further condition.
    has_more: bool,
    action: Action,
    text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Action {
    /// Counts, logs or marks the datagram.
    #[default]
    Nothing,
    Accept,
    Drop,
    Return,
    Jump(String),
    Unknown,
}

/// Effect of a chain on a datagram.
#[derive(Default)]
struct Effect {
    may_accept: bool,
    /// The first rule that may drop the datagram.
    dropped_by: Option<String>,
    /// The rule drops it in any case.
    is_certain: bool,
}

impl PacketFilters {
    /// No rules, for this reason.
    pub fn unreadable(why: String) -> Self {
        Self {
            unreadable: Some(why),
            ..Self::default()
        }
    }

    /// Fate of a UDP datagram over IPv4 to this port.
    pub fn verdict(&self, direction: Direction, port: u16) -> Verdict {
        let mut verdict = Verdict::Passes;
        // A datagram passes every base chain of the hook, so one chain that drops is enough.
        for (name, chain) in &self.chains {
            if chain.hook != Some(direction) {
                continue;
            }
            let effect = self.effect(name, port, &mut BTreeSet::new());
            match effect.dropped_by {
                Some(rule) if effect.is_certain => return Verdict::Dropped(rule),
                Some(rule) if verdict == Verdict::Passes => verdict = Verdict::Perhaps(rule),
                _ => {}
            }
        }
        verdict
    }

    /// Effect of a chain and of the chains that it enters. Each chain is visited once, so cycles end.
    fn effect<'a>(&'a self, name: &'a str, port: u16, seen: &mut BTreeSet<&'a str>) -> Effect {
        let unknown = |rule: String| (true, Some(rule));
        let mut effect = Effect::default();
        let Some(chain) = self.chains.get(name) else {
            (effect.may_accept, effect.dropped_by) = unknown(format!("{name}, which is not known"));
            return effect;
        };
        if !seen.insert(name) {
            return effect;
        }
        let policy = || chain.drops_rest.then(|| format!("{name}: policy drop"));
        for rule in chain.rules.iter().filter(|rule| rule.is_for(port)) {
            let text = format!("{name}: {}", rule.text);
            let (accepts, drops) = match &rule.action {
                Action::Nothing => continue,
                Action::Accept => (true, None),
                Action::Drop => (false, Some(text)),
                Action::Return => (true, policy()),
                Action::Unknown => unknown(text),
                Action::Jump(target) => {
                    let entered = self.effect(target, port, seen);
                    (entered.may_accept, entered.dropped_by)
                }
            };
            let ends = !rule.has_more && matches!(rule.action, Action::Accept | Action::Drop);
            if ends && !accepts && !effect.may_accept && !chain.is_partial {
                effect.dropped_by = drops;
                effect.is_certain = true;
                return effect;
            }
            effect.may_accept |= accepts;
            effect.dropped_by = effect.dropped_by.or(drops);
            if ends {
                return effect;
            }
        }
        effect.is_certain = chain.drops_rest && !effect.may_accept && !chain.is_partial;
        effect.dropped_by = effect.dropped_by.or_else(policy);
        effect
    }
}

impl Rule {
    fn is_for(&self, port: u16) -> bool {
        let holds = |(first, last): &(u16, u16)| (*first..=*last).contains(&port);
        let ports = self.ports.as_ref();
        !self.is_other_protocol && ports.is_none_or(|ports| ports.iter().any(holds))
    }

    /// Records a further condition, which is not evaluated.
    fn with_more(&mut self) -> Action {
        self.has_more = true;
        Action::Nothing
    }

    /// Records a condition on the destination port. An unknown or a second one counts as a further condition.
    fn with_ports(&mut self, ports: Option<Vec<(u16, u16)>>) {
        match ports {
            Some(ports) if self.ports.is_none() => self.ports = Some(ports),
            _ => self.has_more = true,
        }
    }
}

impl Action {
    /// Action of a built-in iptables target; `None` for other names, such as chains.
    fn of_target(name: &str) -> Option<Self> {
        match name {
            "ACCEPT" => Some(Self::Accept),
            "DROP" | "REJECT" => Some(Self::Drop),
            "RETURN" => Some(Self::Return),
            // Targets of the table `nat` accept. They do not matter, because no rule of this table drops.
            "CHECKSUM" | "CLASSIFY" | "CONNMARK" | "CT" | "DSCP" | "LOG" | "MARK"
            | "MASQUERADE" | "NFLOG" | "SET" | "SNAT" | "TCPMSS" | "TOS" | "TRACE" => {
                Some(Self::Nothing)
            }
            _ => None,
        }
    }
}

/// Reads the rules of this network namespace. It waits at most a few seconds for the tools, and stops waiting when
/// `is_stopped` returns true.
pub fn packet_filters(is_stopped: &dyn Fn() -> bool) -> PacketFilters {
    let deadline = Deadline::begin(is_stopped);
    let mut filters = PacketFilters::default();
    let mut unreadable = Vec::new();
    let mut read = |tool, answered: Result<String, String>, parse: fn(&str) -> Option<Chains>| {
        let chains = answered.and_then(|text| {
            parse(&text).ok_or_else(|| format!("the output of {tool} is not understood"))
        });
        match chains {
            Ok(chains) => {
                filters.read_by.push(tool);
                filters.chains.extend(chains);
            }
            Err(why) => unreadable.push(why),
        }
    };
    let ruleset = answer("nft", &["--json", "list", "ruleset"], deadline);
    read("nft", ruleset, nftables);
    let tables = std::fs::read_to_string("/proc/thread-self/net/ip_tables_names");
    // The table `nat` admits no rules that drop.
    if tables.is_ok_and(|names| names.lines().any(|name| name != "nat")) {
        let saved = answer("iptables-legacy-save", &[], deadline);
        read("iptables-legacy", saved, iptables);
    }
    filters.unreadable = (!unreadable.is_empty()).then(|| unreadable.join("; "));
    filters
}

/// Parses the output of `nft --json list ruleset` (libnftables-json(5)); `None` for any other text.
fn nftables(text: &str) -> Option<Chains> {
    let value: Value = serde_json::from_str(text).ok()?;
    let mut chains = Chains::new();
    let entries = value["nftables"].as_array()?;
    // Chains of a table with the flag `dormant` are not hooked.
    let has_flags = |family: &Value, name: &Value| {
        let mut tables = entries.iter().filter_map(|entry| entry.get("table"));
        tables.any(|it| it["family"] == *family && it["name"] == *name && !it["flags"].is_null())
    };
    for entry in entries {
        // Packets of IPv4 pass no chain of the families ip6 and arp.
        let sees_ipv4 = |it: &&Value| it["family"] != "ip6" && it["family"] != "arp";
        if let Some(chain) = entry.get("chain").filter(sees_ipv4) {
            let of = chains.entry(nft_name(chain, &chain["name"])).or_default();
            let hook = chain["hook"].as_str();
            of.hook = match hook {
                None | Some("forward") => None,
                Some("output" | "postrouting" | "egress") => Some(Direction::Transmit),
                Some(_) => Some(Direction::Receive),
            };
            of.is_partial = !matches!(chain["family"].as_str(), Some("ip" | "inet"))
                || matches!(hook, Some("ingress" | "egress"))
                || chain["type"] == "nat"
                || has_flags(&chain["family"], &chain["table"]);
            of.drops_rest = chain["policy"] == "drop";
        } else if let Some(rule) = entry.get("rule").filter(sees_ipv4) {
            let of = chains.entry(nft_name(rule, &rule["chain"])).or_default();
            of.rules.push(nft_rule(rule));
        }
    }
    Some(chains)
}

fn nft_name(entry: &Value, chain: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (family, table) = (word(&entry["family"]), word(&entry["table"]));
    format!("nft: {family} {table} {}", word(chain))
}

fn nft_rule(entry: &Value) -> Rule {
    let mut rule = Rule {
        text: format!("rule with handle {} (nft -a list ruleset)", entry["handle"]),
        ..Rule::default()
    };
    let statements = entry["expr"].as_array().into_iter().flatten();
    rule.has_more = statements.clone().any(|statement| !statement.is_object());
    for (verb, what) in statements.filter_map(Value::as_object).flatten() {
        let target = what["name"].as_str().unwrap_or_default();
        let action = match verb.as_str() {
            "accept" => Action::Accept,
            "drop" | "reject" => Action::Drop,
            "return" => Action::Return,
            "jump" => Action::Jump(nft_name(entry, &what["target"])),
            "match" => nft_match(what, &mut rule),
            "counter" | "log" | "masquerade" | "notrack" | "snat" => Action::Nothing,
            "mangle" if what["key"].get("payload").is_none() => Action::Nothing,
            // Matches and targets of iptables, by name.
            "xt" if what["type"] == "target" => {
                Action::of_target(target).unwrap_or(Action::Unknown)
            }
            "xt" if what["type"] == "match" && target == "comment" => Action::Nothing,
            "xt" if what["type"] == "match" => rule.with_more(),
            // These statements end the rule for some datagrams.
            "limit" | "quota" | "set" => rule.with_more(),
            _ => Action::Unknown,
        };
        if action != Action::Nothing && rule.action != Action::Unknown {
            rule.action = action;
        }
    }
    rule
}

/// Records a condition: on protocol or destination port, or a further one.
fn nft_match(of: &Value, rule: &mut Rule) -> Action {
    let (left, right) = (&of["left"], &of["right"]);
    let field = left["payload"]["field"].as_str();
    let of_meta = left["meta"]["key"].as_str();
    let key = left["payload"]["protocol"].as_str().or(of_meta);
    match (key, field) {
        (Some("tcp" | "sctp" | "dccp" | "icmp" | "igmp" | "icmpv6" | "ip6" | "arp"), Some(_)) => {
            rule.is_other_protocol = true;
        }
        _ if of["op"] != "==" => rule.has_more = true,
        (Some("udp" | "th"), Some("dport")) => rule.with_ports(nft_ports(right)),
        (Some("l4proto"), None) | (Some("ip"), Some("protocol")) => match right.as_str() {
            Some("udp") => {}
            Some(name) if !name.starts_with('@') => rule.is_other_protocol = true,
            _ => rule.has_more = true,
        },
        (Some("nfproto"), None) if right == "ipv6" => rule.is_other_protocol = true,
        (Some("nfproto"), None) if right == "ipv4" => {}
        _ => rule.has_more = true,
    }
    Action::Nothing
}

/// Parses a port, a range, or a set of both.
fn nft_ports(value: &Value) -> Option<Vec<(u16, u16)>> {
    let range = |value: &Value| {
        let port = |value: &Value| u16::try_from(value.as_u64()?).ok();
        match value["range"].as_array().map(Vec::as_slice) {
            Some([first, last]) => Some((port(first)?, port(last)?)),
            _ => port(value).map(|port| (port, port)),
        }
    };
    let all = value["set"].as_array().map(Vec::as_slice);
    all.unwrap_or(std::slice::from_ref(value))
        .iter()
        .map(range)
        .collect()
}

/// Parses the output of `iptables-legacy-save`; `None` for any other text.
fn iptables(text: &str) -> Option<Chains> {
    let mut chains = Chains::new();
    let mut table = "";
    for line in text.lines() {
        let name = |name: &str| format!("iptables-legacy: {table} {name}");
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] | ["COMMIT"] | ["#", ..] => {}
            [word] if word.starts_with('*') => table = &word[1..],
            [word, policy, ..] if word.starts_with(':') => {
                let of = chains.entry(name(&word[1..])).or_default();
                of.hook = match &word[1..] {
                    "INPUT" | "PREROUTING" => Some(Direction::Receive),
                    "OUTPUT" | "POSTROUTING" => Some(Direction::Transmit),
                    _ => None,
                };
                of.is_partial = table == "nat";
                of.drops_rest = *policy == "DROP";
            }
            ["-A", chain, options @ ..] => {
                let rule = iptables_rule(line, options, name);
                chains.get_mut(&name(chain))?.rules.push(rule);
            }
            _ => return None,
        }
    }
    (!chains.is_empty()).then_some(chains)
}

/// Parses a rule. All but the simplest conditions count as a further condition.
fn iptables_rule(line: &str, options: &[&str], name: impl Fn(&str) -> String) -> Rule {
    let mut rule = Rule {
        text: line.to_owned(),
        action: Action::Unknown,
        ..Rule::default()
    };
    // The last `-j` counts: a quoted comment before it may contain any text.
    let target = options.iter().rposition(|option| *option == "-j");
    if target.is_none() && !options.contains(&"-g") {
        rule.action = Action::Nothing;
        return rule;
    }
    let Some((conditions, [_, target, ..])) = target.map(|at| options.split_at(at)) else {
        return rule;
    };
    rule.action = Action::of_target(target).unwrap_or_else(|| Action::Jump(name(target)));
    match conditions {
        [] | ["-p", "udp"] => {}
        ["-p", "udp", "-m", "udp", "--dport", ports] => {
            let (first, last) = ports.split_once(':').unwrap_or((ports, ports));
            let range = first.parse().ok().zip(last.parse().ok());
            rule.with_ports(range.map(|range| vec![range]));
        }
        _ => {
            let is_other = |pair: &[&str]| pair[0] == "-p" && pair[1] != "udp";
            let is_plain = !line.contains(['"', '!']);
            rule.is_other_protocol = is_plain && conditions.windows(2).any(is_other);
            rule.has_more = true;
        }
    }
    rule
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Filters with a base chain of this family, hook and policy, and with a chain that it may enter.
    fn of_chain(head: &[&str; 3], rules: &[Value], entered: &[Value]) -> PacketFilters {
        let [family, hook, policy] = *head;
        let chain = |name: &str| json!({"family": family, "table": "filter", "name": name});
        let mut base = chain("base");
        base["hook"] = json!(hook);
        base["policy"] = json!(policy);
        let mut entries = vec![json!({"chain": base}), json!({"chain": chain("entered")})];
        for (name, rules) in [("base", rules), ("entered", entered)] {
            entries.extend(rules.iter().map(|statements| {
                json!({"rule": {"family": family, "table": "filter", "chain": name, "handle": 9,
                    "expr": statements}})
            }));
        }
        let text = json!({"nftables": entries}).to_string();
        PacketFilters {
            chains: nftables(&text).expect("a list"),
            ..PacketFilters::default()
        }
    }

    /// Fate of a datagram to port 7400 of this host.
    fn fate(head: &[&str; 3], rules: &[Value]) -> &'static str {
        word(&of_chain(head, rules, &[]).verdict(Direction::Receive, 7_400))
    }

    fn word(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Passes => "passes",
            Verdict::Dropped(_) => "dropped",
            Verdict::Perhaps(_) => "perhaps",
        }
    }

    const ACCEPTING: [&str; 3] = ["inet", "input", "accept"];
    const DROPPING: [&str; 3] = ["inet", "input", "drop"];

    fn dport(right: Value) -> Value {
        let left = json!({"payload": {"protocol": "udp", "field": "dport"}});
        json!({"match": {"op": "==", "left": left, "right": right}})
    }

    fn meta(key: &str, right: &str) -> Value {
        json!({"match": {"op": "==", "left": {"meta": {"key": key}}, "right": right}})
    }

    #[test]
    fn a_rule_for_the_port_decides_in_its_direction() {
        let ports = dport(json!({"set": [7_400, {"range": [7_410, 7_420]}]}));
        let drops = of_chain(&ACCEPTING, &[json!([ports, {"drop": null}])], &[]);
        for (direction, port, expected) in [
            (Direction::Receive, 7_411, "dropped"),
            (Direction::Receive, 7_401, "passes"),
            (Direction::Transmit, 7_411, "passes"),
        ] {
            assert_eq!(word(&drops.verdict(direction, port)), expected, "{port}");
        }
        let Verdict::Dropped(rule) = drops.verdict(Direction::Receive, 7_400) else {
            panic!("it passes")
        };
        assert_eq!(
            rule,
            "nft: inet filter base: rule with handle 9 (nft -a list ruleset)"
        );
        let accepts = json!([dport(json!(7_400)), {"accept": null}]);
        let drops = json!([meta("l4proto", "udp"), {"reject": null}]);
        assert_eq!(
            fate(&ACCEPTING, &[accepts.clone(), drops.clone()]),
            "passes"
        );
        assert_eq!(fate(&ACCEPTING, &[drops, accepts]), "dropped");
    }

    #[test]
    fn a_policy_drops_what_nothing_may_accept() {
        assert_eq!(fate(&DROPPING, &[]), "dropped");
        assert_eq!(fate(&ACCEPTING, &[]), "passes");
        let accepts = json!([dport(json!(7_400)), {"accept": null}]);
        assert_eq!(fate(&DROPPING, &[accepts]), "passes");
        let of_loopback = json!([meta("iifname", "lo"), {"accept": null}]);
        assert_eq!(fate(&DROPPING, &[of_loopback]), "perhaps");
        let of_tcp = json!([meta("l4proto", "tcp"), {"accept": null}]);
        assert_eq!(fate(&DROPPING, &[of_tcp]), "dropped");
    }

    #[test]
    fn what_is_not_understood_may_drop() {
        let drop = json!({"drop": null});
        for statements in [
            json!([meta("iifname", "eth0"), drop]),
            json!([dport(json!("@ports")), drop]),
            json!([dport(json!(7_400)), dport(json!(7_401)), drop]),
            json!([{"limit": {"rate": 1}}, drop]),
            json!([{"xt": {"type": "match", "name": "u32"}}, drop]),
            json!([{"xt": null}, drop]),
            json!(["a statement of tomorrow", drop]),
            json!([{"xt": null}]),
            json!([{"xt": {"type": "target", "name": "TARPIT"}}]),
            json!([{"vmap": {"key": {"meta": {"key": "iifname"}}}}]),
            json!([{"a statement of tomorrow": null}]),
            json!([{"jump": {"target": "nowhere"}}]),
        ] {
            assert_eq!(
                fate(&ACCEPTING, std::slice::from_ref(&statements)),
                "perhaps",
                "{statements}"
            );
        }
        let harmless = json!([{"counter": null}, {"xt": {"type": "target", "name": "MARK"}}]);
        assert_eq!(fate(&ACCEPTING, &[harmless]), "passes");
    }

    #[test]
    fn a_chain_that_sees_only_some_datagrams_may_drop() {
        for (family, hook) in [
            ("netdev", "ingress"),
            ("inet", "ingress"),
            ("bridge", "input"),
        ] {
            let drops = json!([{"drop": null}]);
            assert_eq!(fate(&[family, hook, "accept"], &[drops]), "perhaps");
            assert_eq!(fate(&[family, hook, "drop"], &[]), "perhaps");
        }
        assert_eq!(fate(&["ip6", "input", "drop"], &[]), "passes");
    }

    #[test]
    fn a_chain_that_is_entered_may_do_what_any_of_its_rules_does() {
        let enters = [json!([{"jump": {"target": "entered"}}])];
        let of = |head, entered: Value| {
            let filters = of_chain(head, &enters, &[entered]);
            word(&filters.verdict(Direction::Receive, 7_400))
        };
        let drops = json!([dport(json!(7_400)), {"drop": null}]);
        assert_eq!(of(&ACCEPTING, drops), "perhaps");
        let other = json!([dport(json!(53)), {"drop": null}]);
        assert_eq!(of(&ACCEPTING, other.clone()), "passes");
        assert_eq!(of(&DROPPING, other), "dropped");
        assert_eq!(of(&DROPPING, json!([{"accept": null}])), "perhaps");
        // A cycle of chains is followed once.
        assert_eq!(of(&ACCEPTING, enters[0].clone()), "passes");
        // Rules behind a goto, or a return, may never be reached.
        for leaves in [
            json!([{"goto": {"target": "entered"}}]),
            json!([{"return": null}]),
        ] {
            let rules = [leaves, json!([{"drop": null}])];
            assert_eq!(fate(&ACCEPTING, &rules), "perhaps");
        }
    }

    #[test]
    fn rules_of_iptables_legacy_are_read_as_its_save_command_prints_them() {
        let of = |rule: &str, policy: &str| {
            let text = format!(
                "# Generated by iptables-save v1.8.9\n*filter\n:INPUT {policy} [0:0]\n\
                 :OUTPUT ACCEPT [0:0]\n:mine - [0:0]\n{rule}\nCOMMIT\n# Completed\n"
            );
            let chains = iptables(&text).expect("a list");
            let filters = PacketFilters {
                chains,
                ..PacketFilters::default()
            };
            word(&filters.verdict(Direction::Receive, 7_400))
        };
        for (rule, expected) in [
            ("", "passes"),
            (
                "-A INPUT -p udp -m udp --dport 7400:7410 -j DROP",
                "dropped",
            ),
            ("-A INPUT -p udp -m udp --dport 53 -j DROP", "passes"),
            ("-A INPUT -p udp -j REJECT --reject-with x", "dropped"),
            ("-A INPUT -i eth0 -p udp -j DROP", "perhaps"),
            ("-A INPUT -i eth0 -p tcp -j DROP", "passes"),
            ("-A INPUT ! -p tcp -j DROP", "perhaps"),
            (
                "-A INPUT -m comment --comment \"-p tcp -j LOG\" -j DROP",
                "perhaps",
            ),
            ("-A INPUT -p udp -j LOG --log-prefix x", "passes"),
            ("-A INPUT -p udp -j A_TARGET_OF_TOMORROW", "perhaps"),
            ("-A INPUT -g mine", "perhaps"),
            ("-A INPUT -p udp", "passes"),
            ("-A INPUT -j mine", "passes"),
            ("-A INPUT -j mine\n-A mine -p udp -j DROP", "perhaps"),
        ] {
            assert_eq!(of(rule, "ACCEPT"), expected, "{rule}");
        }
        assert_eq!(of("-A INPUT -i lo -j ACCEPT", "DROP"), "perhaps");
        assert_eq!(of("", "DROP"), "dropped");
    }

    #[test]
    fn an_empty_ruleset_drops_nothing_and_nonsense_is_not_understood() {
        let none = r#"{"nftables": [{"metainfo": {}}]}"#;
        assert_eq!(nftables(none), Some(Chains::new()));
        assert_eq!(nftables("table inet filter {"), None);
        assert_eq!(nftables("[]"), None);
        assert_eq!(iptables("no tables"), None);
    }

    #[test]
    fn a_dormant_table_drops_nothing_for_certain() {
        let name = json!({"family": "inet", "name": "filter", "flags": "dormant"});
        let chain = json!({"family": "inet", "table": "filter", "name": "input", "hook": "input", "policy": "drop"});
        let text = |entries: &[Value]| json!({"nftables": entries}).to_string();
        let verdict = |entries: &[Value]| {
            let chains = nftables(&text(entries)).expect("a list");
            let filters = PacketFilters {
                chains,
                ..PacketFilters::default()
            };
            word(&filters.verdict(Direction::Receive, 7_400))
        };
        let chain = json!({"chain": chain});
        assert_eq!(verdict(std::slice::from_ref(&chain)), "dropped");
        assert_eq!(verdict(&[json!({"table": name}), chain]), "perhaps");
    }
}
