//! Rules as `iptables -S` writes them: a line each, as the options that would make it.

use super::tool::{self, Patience};
use super::{Action, Chain, Conditions, Direction, Rule, Rules, not_understood};

/// Tables whose rules may drop a datagram; that of address translation refuses such rules.
const TABLES: [&str; 4] = ["raw", "mangle", "filter", "security"];

/// Rules of the older form, which lie beside those of nftables; `None`: the kernel has no tables of it here, as far
/// as this process may see.
pub(super) fn legacy_rules(patience: Patience<'_>) -> Option<Result<Rules, String>> {
    let names = std::fs::read_to_string("/proc/thread-self/net/ip_tables_names").ok()?;
    let tables: Vec<&str> = names.lines().filter(|name| TABLES.contains(name)).collect();
    (!tables.is_empty()).then(|| rules(legacy_tool(patience)?, &tables, patience))
}

/// The tool for them. Before there were two forms it was called as both are now.
fn legacy_tool(patience: Patience<'_>) -> Result<&'static str, String> {
    let Err(why) = tool::answer("iptables-legacy", &["-V"], patience) else {
        return Ok("iptables-legacy");
    };
    match is_of_nftables(patience) {
        Ok(false) => Ok("iptables"),
        _ => Err(why),
    }
}

/// Whether the rules that `iptables` tells lie among those of nftables.
fn is_of_nftables(patience: Patience<'_>) -> Result<bool, String> {
    let version = tool::answer("iptables", &["-V"], patience)?;
    Ok(version.contains("nf_tables"))
}

/// Rules of nftables as far as `iptables` made them, where nftables' own tool cannot be asked.
pub(super) fn rules_among_nftables(patience: Patience<'_>) -> Result<Rules, String> {
    match is_of_nftables(patience)? {
        true => rules("iptables", &["filter"], patience),
        false => Err(String::from(
            "iptables is of the older form, and asking it would make a table",
        )),
    }
}

/// Asks a tool for the rules of some tables.
fn rules(tool: &'static str, tables: &[&str], patience: Patience<'_>) -> Result<Rules, String> {
    let mut rules = Rules {
        tool,
        chains: Vec::new(),
    };
    for table in tables {
        let told = tool::answer(tool, &["-w", "1", "-t", table, "-S"], patience)?;
        let chains = chains(&told, table).ok_or_else(|| not_understood(tool))?;
        rules.chains.extend(chains);
    }
    Ok(rules)
}

/// The chains of a table; `None`: this is no such list.
fn chains(text: &str, table: &str) -> Option<Vec<Chain>> {
    // Tables may have chains of the same name.
    let in_table = |name: &str| match table {
        "filter" => String::from(name),
        other => format!("{other} {name}"),
    };
    let mut chains = Vec::<Chain>::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["-P", name, policy] => chains.push(Chain {
                name: in_table(name),
                hook: match *name {
                    "INPUT" | "PREROUTING" => Some(Direction::In),
                    "OUTPUT" | "POSTROUTING" => Some(Direction::Out),
                    _ => None,
                },
                drops_rest: *policy == "DROP",
                rules: Vec::new(),
            }),
            ["-N", name] => chains.push(Chain {
                name: in_table(name),
                hook: None,
                drops_rest: false,
                rules: Vec::new(),
            }),
            ["-A", name, conditions @ ..] => {
                let mut rule = rule(conditions, line);
                if let Action::Enter(next, _) = &mut rule.action {
                    *next = in_table(next);
                }
                let name = in_table(name);
                let chain = chains.iter_mut().find(|chain| chain.name == name)?;
                chain.rules.push(rule);
            }
            [] => {}
            _ => return None,
        }
    }
    (!chains.is_empty()).then_some(chains)
}

fn rule(words: &[&str], line: &str) -> Rule {
    let mut rule = Rule {
        text: line.into(),
        ..Rule::default()
    };
    let mut words = words.iter().copied();
    let mut is_negated = false;
    while let Some(word) = words.next() {
        let of = &mut rule.conditions;
        match word {
            "!" => {
                // What is negated is a condition that is not followed.
                is_negated = true;
                of.has_more = true;
                continue;
            }
            "-p" => {
                let protocol = words.next().unwrap_or_default();
                of.is_other_protocol |= !is_negated && !matches!(protocol, "udp" | "17" | "all");
            }
            // The module's own options follow.
            "-m" => {
                let module = words.next().unwrap_or_default();
                of.has_more |= !matches!(module, "udp" | "multiport" | "comment");
            }
            "--comment" => skip_quoted(&mut words),
            "--dport" | "--dports" => {
                let ports = words.next().unwrap_or_default();
                match ranges(ports) {
                    Some(ranges) if !is_negated => of.ports = Some(ranges),
                    _ => of.has_more = true,
                }
            }
            "-j" | "-g" => {
                let target = words.next().unwrap_or_default();
                rule.action = action(target, word == "-j");
            }
            // How a packet is refused.
            "--reject-with" => drop(words.next()),
            _ => of.has_more = true,
        }
        is_negated = false;
    }
    rule
}

fn action(target: &str, comes_back: bool) -> Action {
    match target {
        "ACCEPT" => Action::Accept,
        "DROP" | "REJECT" => Action::Drop,
        "RETURN" => Action::Return,
        "LOG" | "MARK" | "CONNMARK" | "NFLOG" => Action::Continue,
        "QUEUE" | "NFQUEUE" | "SYNPROXY" | "TPROXY" => Action::Unknown,
        chain => Action::Enter(chain.into(), comes_back),
    }
}

/// Passes over a text in quotes, which may have spaces.
fn skip_quoted<'a>(words: &mut impl Iterator<Item = &'a str>) {
    let Some(first) = words.next() else {
        return;
    };
    let ends = |word: &str| word.ends_with('"') && !word.ends_with("\\\"");
    if first.starts_with('"') && !(first.len() > 1 && ends(first)) {
        for word in words {
            if ends(word) {
                return;
            }
        }
    }
}

/// `7400`, `7400:7500`, `7400,7410:7420`.
fn ranges(text: &str) -> Option<Vec<(u16, u16)>> {
    let range = |part: &str| {
        let (first, last) = part.split_once(':').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    text.split(',').map(range).collect::<Option<Vec<_>>>()
}

impl Conditions {
    #[cfg(test)]
    fn of_ports(ports: &[(u16, u16)]) -> Self {
        Self {
            ports: Some(ports.to_vec()),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::{PacketFilters, Verdict};

    fn verdict(text: &str, port: u16) -> Verdict {
        let of = PacketFilters::Read {
            rules: vec![Rules {
                tool: "iptables",
                chains: chains(text, "filter").expect("a list"),
            }],
            unread: None,
        };
        of.verdict(Direction::In, port)
    }

    const POLICIES: &str = "-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT\n";

    #[test]
    fn a_rule_is_read_with_its_ports() {
        let line = "-A INPUT -p udp -m multiport --dports 7400,7410:7420 -j DROP";
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        let read = rule(&words, line);
        assert_eq!(
            read.conditions,
            Conditions::of_ports(&[(7_400, 7_400), (7_410, 7_420)])
        );
        assert_eq!(read.action, Action::Drop);
    }

    #[test]
    fn what_drops_udp_drops_and_what_is_for_others_does_not() {
        let drops = format!("{POLICIES}-A INPUT -p udp -m udp --dport 7400:7500 -j DROP\n");
        assert!(matches!(verdict(&drops, 7_401), Verdict::Dropped(_)));
        assert_eq!(verdict(&drops, 7_399), Verdict::Passes);
        let of_tcp = format!("{POLICIES}-A INPUT -p tcp -j REJECT --reject-with tcp-reset\n");
        assert_eq!(verdict(&of_tcp, 7_400), Verdict::Passes);
        let by_address = format!("{POLICIES}-A INPUT -s 10.0.0.0/8 -j DROP\n");
        assert!(matches!(verdict(&by_address, 7_400), Verdict::Perhaps(_)));
        let negated = format!("{POLICIES}-A INPUT ! -p tcp -j DROP\n");
        assert!(matches!(verdict(&negated, 7_400), Verdict::Perhaps(_)));
        let commented =
            format!("{POLICIES}-A INPUT -p udp -m comment --comment \"no RTPS here\" -j DROP\n");
        assert!(matches!(verdict(&commented, 7_400), Verdict::Dropped(_)));
    }

    #[test]
    fn chains_of_the_users_own_are_entered() {
        let text = format!("{POLICIES}-N mine\n-A INPUT -j mine\n-A mine -p udp -j DROP\n");
        let Verdict::Dropped(by) = verdict(&text, 7_400) else {
            panic!("it passes")
        };
        assert!(by.starts_with("iptables: mine: -A mine"), "{by}");
    }

    #[test]
    fn what_is_no_list_of_rules_is_not_understood() {
        assert_eq!(chains("", "filter"), None);
        assert_eq!(chains("*filter\n", "filter"), None);
        assert_eq!(chains("-A INPUT -j DROP\n", "filter"), None, "of no chain");
    }

    #[test]
    fn chains_of_the_same_name_in_several_tables_are_told_apart() {
        let drops =
            "-P PREROUTING ACCEPT\n-N mine\n-A PREROUTING -j mine\n-A mine -p udp -j DROP\n";
        let passes = format!("{POLICIES}-N mine\n-A INPUT -j mine\n");
        let tables = [chains(&passes, "filter"), chains(drops, "raw")];
        let rules = Rules {
            tool: "iptables-legacy",
            chains: tables.into_iter().flatten().flatten().collect(),
        };
        let of = PacketFilters::Read {
            rules: vec![rules],
            unread: None,
        };
        let Verdict::Dropped(by) = of.verdict(Direction::In, 7_400) else {
            panic!("it passes")
        };
        assert!(by.contains("raw mine: -A mine"), "{by}");
    }
}
