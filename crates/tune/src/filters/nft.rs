//! Rules as `nft -j list ruleset` writes them (libnftables-json(5)): one list of chains and rules.

use serde_json::Value;

use super::{Action, Chain, Direction, Rule};

/// The chains; `None`: this is no such list.
pub(super) fn chains(text: &str) -> Option<Vec<Chain>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let entries = value["nftables"].as_array()?;
    let mut chains = Vec::<Chain>::new();
    for entry in entries {
        if let Some(chain) = entry.get("chain") {
            chains.extend(of_ipv4(chain).then(|| chain_of(chain)));
        } else if let Some(rule) = entry.get("rule").filter(|rule| of_ipv4(rule)) {
            let name = name(rule, &rule["chain"]);
            if let Some(chain) = chains.iter_mut().find(|chain| chain.name == name) {
                chain.rules.push(rule_of(rule));
            }
        }
    }
    Some(chains)
}

/// Whether it sees packets of IPv4.
fn of_ipv4(entry: &Value) -> bool {
    matches!(entry["family"].as_str(), Some("ip" | "inet"))
}

fn name(entry: &Value, chain: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (family, table) = (word(&entry["family"]), word(&entry["table"]));
    format!("{family} {table} {}", word(chain))
}

fn chain_of(chain: &Value) -> Chain {
    Chain {
        name: name(chain, &chain["name"]),
        hook: match chain["hook"].as_str() {
            Some("input" | "prerouting") => Some(Direction::In),
            Some("output" | "postrouting") => Some(Direction::Out),
            _ => None,
        },
        drops_rest: chain["policy"] == "drop",
        rules: Vec::new(),
    }
}

fn rule_of(entry: &Value) -> Rule {
    let mut rule = Rule::default();
    let mut words = Vec::new();
    for expression in entry["expr"].as_array().into_iter().flatten() {
        let Some((verb, what)) = expression
            .as_object()
            .and_then(|object| object.iter().next())
        else {
            rule.conditions.has_more = true;
            continue;
        };
        match verb.as_str() {
            "match" => condition(what, &mut rule, &mut words),
            "accept" => rule.action = Action::Accept,
            "drop" | "reject" => rule.action = Action::Drop,
            "return" => rule.action = Action::Return,
            "jump" | "goto" => {
                let next = name(entry, &what["target"]);
                rule.action = Action::Enter(next, verb == "jump");
            }
            "counter" | "log" | "mangle" | "meta" => continue,
            // Each of them decides for itself what passes.
            "vmap" | "queue" | "xt" | "synproxy" | "tproxy" | "fwd" | "dup" => {
                rule.action = Action::Unknown;
            }
            // A limit, a set: it may be for this datagram, or not.
            _ => rule.conditions.has_more = true,
        }
        if verb != "match" {
            words.push(verb.clone());
        }
    }
    let handle = entry["handle"].as_u64();
    rule.text = words.join(" ");
    if let Some(handle) = handle {
        rule.text.push_str(&format!(" (handle {handle})"));
    }
    rule
}

/// One `match`: of what is known of a datagram, or one condition more.
fn condition(of: &Value, rule: &mut Rule, words: &mut Vec<String>) {
    let conditions = &mut rule.conditions;
    let (left, right) = (&of["left"], &of["right"]);
    let is_equal = matches!(of["op"].as_str(), Some("==" | "in"));
    let field = &left["payload"];
    let protocol_key = left["meta"]["key"].as_str();
    let protocol = field["protocol"].as_str();
    match (protocol, field["field"].as_str()) {
        (Some("udp" | "th"), Some("dport")) if is_equal => match ports(right) {
            Some(ports) => {
                words.push(format!("udp dport {}", said(&ports)));
                conditions.ports = Some(ports);
                return;
            }
            None => conditions.has_more = true,
        },
        (Some("tcp" | "sctp" | "icmp" | "icmpv6" | "ip6" | "arp"), _) => {
            conditions.is_other_protocol = true;
        }
        (Some("ip"), Some("protocol")) if is_equal => l4_protocol(right, rule),
        (None, _) if is_equal && protocol_key == Some("l4proto") => l4_protocol(right, rule),
        (None, _) if is_equal && protocol_key == Some("nfproto") => {
            conditions.is_other_protocol |= right == "ipv6";
        }
        _ => conditions.has_more = true,
    }
    let name = protocol.or(protocol_key).unwrap_or("condition");
    words.push(format!("{name} …"));
}

fn l4_protocol(right: &Value, rule: &mut Rule) {
    let is_udp = |value: &Value| value == "udp" || value == 17;
    let all = right["set"].as_array();
    let meets = all.map_or_else(|| is_udp(right), |all| all.iter().any(is_udp));
    rule.conditions.is_other_protocol |= !meets;
}

/// A port, a range, or a set of both.
fn ports(value: &Value) -> Option<Vec<(u16, u16)>> {
    if let Some(all) = value["set"].as_array() {
        let all: Option<Vec<_>> = all.iter().map(ports).collect();
        return Some(all?.concat());
    }
    let port = |value: &Value| u16::try_from(value.as_u64()?).ok();
    match value["range"].as_array().map(Vec::as_slice) {
        Some([first, last]) => Some(vec![(port(first)?, port(last)?)]),
        Some(_) => None,
        None => port(value).map(|port| vec![(port, port)]),
    }
}

fn said(ports: &[(u16, u16)]) -> String {
    let one = |(first, last): &(u16, u16)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ports.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::filters::{PacketFilters, Rules, Verdict};

    fn filters(policy: &str, rules: &[Value]) -> PacketFilters {
        let head = |name: &str| json!({"family": "inet", "table": "filter", "chain": name});
        let mut entries = vec![
            json!({"metainfo": {"json_schema_version": 1}}),
            json!({"table": {"family": "inet", "name": "filter", "handle": 1}}),
            json!({"chain": {"family": "inet", "table": "filter", "name": "input", "handle": 1,
                "type": "filter", "hook": "input", "prio": 0, "policy": policy}}),
        ];
        for (handle, expressions) in (4..).zip(rules) {
            let mut rule = head("input");
            rule["handle"] = json!(handle);
            rule["expr"] = expressions.clone();
            entries.push(json!({"rule": rule}));
        }
        let text = json!({"nftables": entries}).to_string();
        PacketFilters::Read {
            rules: vec![Rules {
                tool: "nft",
                chains: chains(&text).expect("a list"),
            }],
            unread: None,
        }
    }

    fn dport(right: Value) -> Value {
        let left = json!({"payload": {"protocol": "udp", "field": "dport"}});
        json!({"match": {"op": "==", "left": left, "right": right}})
    }

    #[test]
    fn a_rule_that_drops_ports_is_found_with_its_words() {
        let right = json!({"set": [7_400, {"range": [7_410, 7_420]}]});
        let of = filters("accept", &[json!([dport(right), {"drop": null}])]);
        let Verdict::Dropped(by) = of.verdict(Direction::In, 7_411) else {
            panic!("it passes")
        };
        assert_eq!(
            by,
            "nft: inet filter input: udp dport 7400,7410-7420 drop (handle 4)"
        );
        assert_eq!(of.verdict(Direction::In, 7_401), Verdict::Passes);
    }

    #[test]
    fn a_policy_drops_what_no_rule_lets_in() {
        let accepts = json!([dport(json!({"range": [7_400, 7_500]})), {"accept": null}]);
        let of = filters("drop", &[accepts]);
        assert_eq!(of.verdict(Direction::In, 7_400), Verdict::Passes);
        assert!(matches!(
            of.verdict(Direction::In, 17_400),
            Verdict::Dropped(_)
        ));
    }

    #[test]
    fn conditions_beside_the_port_make_a_perhaps_and_other_protocols_nothing() {
        let state = json!({"match": {"op": "in", "left": {"ct": {"key": "state"}},
            "right": ["established", "related"]}});
        let of = filters("drop", &[json!([state, {"accept": null}])]);
        assert!(matches!(
            of.verdict(Direction::In, 7_400),
            Verdict::Perhaps(_)
        ));
        let left = json!({"meta": {"key": "l4proto"}});
        let of_tcp = json!({"match": {"op": "==", "left": left, "right": "tcp"}});
        let of = filters("accept", &[json!([of_tcp, {"drop": null}])]);
        assert_eq!(of.verdict(Direction::In, 7_400), Verdict::Passes);
    }

    #[test]
    fn a_map_of_verdicts_makes_a_perhaps_whatever_the_policy_is() {
        let map = json!({"vmap": {"key": {"meta": {"key": "iifname"}},
            "data": {"set": [["lo", {"accept": null}], ["eth0", {"drop": null}]]}}});
        for policy in ["accept", "drop"] {
            let of = filters(policy, &[json!([map])]);
            let verdict = of.verdict(Direction::In, 7_400);
            assert!(
                matches!(verdict, Verdict::Perhaps(_)),
                "{policy}: {verdict:?}"
            );
        }
    }

    #[test]
    fn an_empty_ruleset_drops_nothing_and_nonsense_is_not_understood() {
        let none = r#"{"nftables": [{"metainfo": {}}]}"#;
        assert_eq!(chains(none), Some(vec![]));
        assert_eq!(chains("table inet filter {"), None);
        assert_eq!(chains("[]"), None);
    }
}
