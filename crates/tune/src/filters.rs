//! What the packet filters of this network namespace do with a datagram to a port: rules of nftables and iptables,
//! as far as this process may read them.
//!
//! [`packet_filters`] asks the tools of the system for their rules, which takes the right CAP_NET_ADMIN and a few
//! seconds at most. Rules of `iptables` lie among those of nftables, or, of its older form, in tables of their own,
//! which a datagram passes as well: where the kernel has such tables, their tool is asked too. Where it has none that tool is
//! left alone, since asking it makes them.
//! [`PacketFilters::verdict`] follows the chains as the kernel does, for a UDP datagram of which nothing but
//! port and direction is known. So a rule with further conditions (an address, an interface, a state) does perhaps
//! what it says, and where that decides the answer it is [`Verdict::Perhaps`].

mod iptables;
mod nft;
mod tool;

use serde::Serialize;

use self::tool::Patience;
use crate::limits::MAX_CHAIN_DEPTH;

/// What could be read of packet filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketFilters {
    /// The rules.
    Read {
        /// By the tools that told them.
        rules: Vec<Rules>,
        /// Why others, which there are, could not be read.
        unread: Option<String>,
    },
    /// Why they could not be read.
    Unreadable(String),
}

/// The rules that a tool told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `nft`, `iptables` or `iptables-legacy`.
    pub tool: &'static str,
    /// The chains.
    pub chains: Vec<Chain>,
}

/// Rules in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its table and name, as people know it.
    pub(crate) name: String,
    /// Where packets enter it; `None`: from other chains only.
    pub(crate) hook: Option<Direction>,
    /// Whether what comes to its end is dropped.
    pub(crate) drops_rest: bool,
    pub(crate) rules: Vec<Rule>,
}

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To this host.
    In,
    /// From this host.
    Out,
}

/// A rule, as far as it is understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) conditions: Conditions,
    pub(crate) action: Action,
    /// As people know it.
    pub(crate) text: String,
}

/// Which datagrams a rule is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// Destination ports; `None`: all.
    pub(crate) ports: Option<Vec<(u16, u16)>>,
    /// It is about something else than UDP over IPv4.
    pub(crate) is_other_protocol: bool,
    /// There is a condition that is not understood, or of which nothing is known here.
    pub(crate) has_more: bool,
}

/// What a rule does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing that ends the way: it counts, or marks.
    #[default]
    Continue,
    /// Something that is not followed: it may let the datagram pass or drop it.
    Unknown,
    Accept,
    Drop,
    Return,
    /// Goes through another chain, and comes back; false: does not come back.
    Enter(String, bool),
}

/// What becomes of a datagram.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It passes.
    Passes,
    /// It is dropped, by this rule.
    Dropped(String),
    /// This rule drops it under conditions that are not known here.
    Perhaps(String),
}

/// How far a datagram came in a chain.
enum Way {
    Ended(Verdict),
    /// To the end; with the first rule that may have ended it.
    Through(Option<String>),
}

impl PacketFilters {
    /// What becomes of a UDP datagram over IPv4 to this port. A rule is named with its tool.
    pub fn verdict(&self, direction: Direction, port: u16) -> Verdict {
        let Self::Read { rules, .. } = self else {
            return Verdict::Passes;
        };
        let mut perhaps = None;
        for rules in rules {
            let of_tool = |rule: String| format!("{}: {rule}", rules.tool);
            match rules.verdict(direction, port) {
                Verdict::Dropped(rule) => return Verdict::Dropped(of_tool(rule)),
                Verdict::Perhaps(rule) => {
                    perhaps = perhaps.or_else(|| Some(Verdict::Perhaps(of_tool(rule))));
                }
                Verdict::Passes => {}
            }
        }
        perhaps.unwrap_or(Verdict::Passes)
    }
}

impl Rules {
    fn verdict(&self, direction: Direction, port: u16) -> Verdict {
        let chains = &self.chains;
        let mut perhaps = None;
        // Every chain of the hook is asked: one that drops is enough.
        for chain in chains.iter().filter(|chain| chain.hook == Some(direction)) {
            let verdict = match way(chains, chain, port, 0) {
                Way::Ended(verdict) => verdict,
                Way::Through(None) if chain.drops_rest => {
                    Verdict::Dropped(format!("policy drop of {}", chain.name))
                }
                Way::Through(Some(_)) if chain.drops_rest => {
                    Verdict::Perhaps(format!("policy drop of {}", chain.name))
                }
                Way::Through(_) => Verdict::Passes,
            };
            match verdict {
                Verdict::Dropped(_) => return verdict,
                Verdict::Perhaps(_) => perhaps = perhaps.or(Some(verdict)),
                Verdict::Passes => {}
            }
        }
        perhaps.unwrap_or(Verdict::Passes)
    }
}

/// A datagram's way through a chain. What may have accepted it makes a later drop a perhaps.
fn way(chains: &[Chain], chain: &Chain, port: u16, depth: usize) -> Way {
    let mut maybe_accepted: Option<String> = None;
    let mut maybe_dropped: Option<String> = None;
    for rule in &chain.rules {
        let of = &rule.conditions;
        let is_for = |ranges: &Vec<(u16, u16)>| {
            ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&port))
        };
        if of.is_other_protocol || !of.ports.as_ref().is_none_or(is_for) {
            continue;
        }
        let text = || format!("{}: {}", chain.name, rule.text);
        match (&rule.action, of.has_more) {
            (Action::Continue, _) => {}
            (Action::Unknown, _) => {
                maybe_accepted = maybe_accepted.or_else(|| Some(text()));
                maybe_dropped = maybe_dropped.or_else(|| Some(text()));
            }
            (Action::Return, false) => break,
            (Action::Return, true) | (Action::Accept, true) => {
                maybe_accepted = maybe_accepted.or_else(|| Some(text()));
            }
            (Action::Drop, true) => maybe_dropped = maybe_dropped.or_else(|| Some(text())),
            (Action::Accept, false) => {
                return Way::Ended(maybe_dropped.map_or(Verdict::Passes, Verdict::Perhaps));
            }
            (Action::Drop, false) => {
                let is_sure = maybe_accepted.is_none();
                let verdict = if is_sure {
                    Verdict::Dropped
                } else {
                    Verdict::Perhaps
                };
                return Way::Ended(verdict(text()));
            }
            (Action::Enter(name, comes_back), has_more) => {
                let next = chains.iter().find(|chain| chain.name == *name);
                let Some(next) = next.filter(|_| depth < MAX_CHAIN_DEPTH) else {
                    continue;
                };
                match way(chains, next, port, depth + 1) {
                    Way::Ended(verdict) if !has_more && maybe_accepted.is_none() => {
                        return Way::Ended(match (verdict, maybe_dropped) {
                            (Verdict::Passes, Some(dropped)) => Verdict::Perhaps(dropped),
                            (verdict, _) => verdict,
                        });
                    }
                    Way::Ended(Verdict::Passes) => {
                        maybe_accepted = maybe_accepted.or_else(|| Some(text()));
                    }
                    Way::Ended(Verdict::Dropped(by) | Verdict::Perhaps(by)) => {
                        maybe_dropped = maybe_dropped.or(Some(by));
                    }
                    Way::Through(accepted) => maybe_accepted = maybe_accepted.or(accepted),
                }
                if !comes_back && !has_more {
                    break;
                }
            }
        }
    }
    match maybe_dropped {
        Some(by) => Way::Ended(Verdict::Perhaps(by)),
        None => Way::Through(maybe_accepted),
    }
}

/// Asks `nft`, and where there is none `iptables`, for the rules of this network namespace, and `iptables-legacy`
/// where the kernel has tables of it. What they say is waited for as long as `is_stopped` says that it is wanted, and
/// that is a few seconds at most.
pub fn packet_filters(is_stopped: &dyn Fn() -> bool) -> PacketFilters {
    let mut rules = Vec::new();
    let mut unread = Vec::new();
    let patience = Patience::begin(is_stopped);
    match rules_of_nft(patience) {
        Ok(told) => rules.push(told),
        Err(why) => match iptables::rules_among_nftables(patience) {
            Ok(told) => rules.push(told),
            Err(other) => unread.push(format!("{why}; {other}")),
        },
    }
    match iptables::legacy_rules(patience) {
        None => {}
        Some(Ok(told)) => rules.push(told),
        Some(Err(why)) => unread.push(format!("rules of iptables-legacy: {why}")),
    }
    let unread = (!unread.is_empty()).then(|| unread.join("; "));
    match (rules.is_empty(), unread) {
        (true, Some(why)) => PacketFilters::Unreadable(why),
        (_, unread) => PacketFilters::Read { rules, unread },
    }
}

fn rules_of_nft(patience: Patience<'_>) -> Result<Rules, String> {
    let told = tool::answer("nft", &["-j", "list", "ruleset"], patience)?;
    let chains = nft::chains(&told).ok_or_else(|| not_understood("nft"))?;
    Ok(Rules {
        tool: "nft",
        chains,
    })
}

fn not_understood(tool: &str) -> String {
    format!("what {tool} says is not understood")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(chains: Vec<Chain>) -> PacketFilters {
        let tool = "nft";
        PacketFilters::Read {
            rules: vec![Rules { tool, chains }],
            unread: None,
        }
    }

    fn rule(ports: Option<(u16, u16)>, has_more: bool, action: Action) -> Rule {
        Rule {
            conditions: Conditions {
                ports: ports.map(|range| vec![range]),
                is_other_protocol: false,
                has_more,
            },
            action,
            text: String::from("rule"),
        }
    }

    fn input(drops_rest: bool, rules: Vec<Rule>) -> Chain {
        Chain {
            name: String::from("filter input"),
            hook: Some(Direction::In),
            drops_rest,
            rules,
        }
    }

    #[test]
    fn the_first_rule_for_a_port_decides() {
        let accepts = rule(Some((7_400, 7_500)), false, Action::Accept);
        let drops = rule(None, false, Action::Drop);
        let of = filters(vec![input(false, vec![accepts, drops])]);
        assert_eq!(of.verdict(Direction::In, 7_400), Verdict::Passes);
        assert!(matches!(
            of.verdict(Direction::In, 7_600),
            Verdict::Dropped(_)
        ));
        assert_eq!(of.verdict(Direction::Out, 7_600), Verdict::Passes);
    }

    #[test]
    fn what_no_rule_is_for_meets_the_policy() {
        let dropping = filters(vec![input(true, vec![])]);
        let Verdict::Dropped(by) = dropping.verdict(Direction::In, 7_400) else {
            panic!("it passes")
        };
        assert_eq!(by, "nft: policy drop of filter input");
        let accepting = filters(vec![input(false, vec![])]);
        assert_eq!(accepting.verdict(Direction::In, 7_400), Verdict::Passes);
    }

    #[test]
    fn a_rule_with_conditions_that_are_not_known_makes_a_perhaps() {
        let from_somebody = rule(None, true, Action::Accept);
        let of = filters(vec![input(true, vec![from_somebody])]);
        assert!(matches!(
            of.verdict(Direction::In, 7_400),
            Verdict::Perhaps(_)
        ));
        let not_from_somebody = rule(None, true, Action::Drop);
        let of = filters(vec![input(false, vec![not_from_somebody])]);
        assert!(matches!(
            of.verdict(Direction::In, 7_400),
            Verdict::Perhaps(_)
        ));
    }

    #[test]
    fn one_of_several_tools_that_tells_of_a_drop_is_enough() {
        let of = |tool, chain| Rules {
            tool,
            chains: vec![chain],
        };
        let perhaps = rule(None, true, Action::Drop);
        let drops = rule(None, false, Action::Drop);
        let both = PacketFilters::Read {
            rules: vec![
                of("nft", input(false, vec![perhaps])),
                of("iptables-legacy", input(false, vec![drops])),
            ],
            unread: None,
        };
        assert_eq!(
            both.verdict(Direction::In, 7_400),
            Verdict::Dropped("iptables-legacy: filter input: rule".into())
        );
    }

    #[test]
    fn chains_that_enter_one_another_end() {
        let chain = |name: &str, hook, next: &str| Chain {
            name: name.into(),
            hook,
            drops_rest: false,
            rules: vec![rule(None, false, Action::Enter(next.into(), true))],
        };
        let of = filters(vec![
            chain("a", Some(Direction::In), "b"),
            chain("b", None, "a"),
        ]);
        assert_eq!(of.verdict(Direction::In, 7_400), Verdict::Passes);
        let drops = Chain {
            rules: vec![rule(Some((7_400, 7_400)), false, Action::Drop)],
            ..chain("b", None, "a")
        };
        let of = filters(vec![chain("a", Some(Direction::In), "b"), drops]);
        assert_eq!(
            of.verdict(Direction::In, 7_400),
            Verdict::Dropped("nft: b: rule".into())
        );
    }
}
