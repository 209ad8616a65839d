//! Network settings of a command: the domain and interfaces of this machine.

use std::ffi::OsString;

use isolane_model::{Domain, Source, Sourced, System, is_interface_name};

use super::Environment;
use crate::arguments::CommonArguments;
use crate::failure::Failure;

#[derive(Clone, Debug)]
pub(crate) struct NetworkSettings {
    pub(crate) domain: Sourced<Domain>,
    pub(crate) interfaces: Sourced<Interfaces>,
    /// Verbosity. 0: results only; 1: settings too; 2: internals too.
    pub(crate) verbosity: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Interfaces {
    /// All interfaces that can multicast.
    All,
    /// Named interfaces, at least one, without duplicates.
    Named(Vec<String>),
}

pub(super) fn network(
    common: &CommonArguments,
    system: Option<&System>,
    environment: Environment<'_>,
) -> Result<NetworkSettings, Failure> {
    let from_environment = match environment("ISOLANE_DOMAIN").filter(|text| !text.is_empty()) {
        Some(text) => Some(domain_of_environment(&text)?),
        None => None,
    };
    let domain = match (common.domain, from_environment, system) {
        (Some(domain), _, _) => Sourced::new(domain, Source::CommandLine("--domain")),
        (None, Some(domain), _) => Sourced::new(domain, Source::Environment("ISOLANE_DOMAIN")),
        (None, None, Some(system)) => system.domain().clone(),
        (None, None, None) => Sourced::default_value(Domain::default()),
    };
    let interfaces = interfaces(&common.interface)?;
    Ok(NetworkSettings {
        domain,
        interfaces,
        verbosity: common.verbose,
    })
}

fn domain_of_environment(text: &OsString) -> Result<Domain, Failure> {
    let text = text.to_string_lossy();
    text.parse::<Domain>().map_err(|error| {
        Failure::wrong_usage(
            format!("ISOLANE_DOMAIN is \"{}\"", text.escape_debug()),
            error.to_string(),
        )
        .with_remedy("set it to such a number, unset it, or give --domain")
    })
}

fn interfaces(named: &[String]) -> Result<Sourced<Interfaces>, Failure> {
    if named.is_empty() {
        return Ok(Sourced::default_value(Interfaces::All));
    }
    if let Some(wrong) = named.iter().find(|name| !is_interface_name(name)) {
        return Err(Failure::wrong_usage(
            format!("--interface \"{}\"", wrong.escape_debug()),
            "no interface can be called so",
        )
        .with_remedy("`ip link` lists the interfaces of this machine"));
    }
    let mut once: Vec<String> = Vec::with_capacity(named.len());
    for name in named {
        if !once.contains(name) {
            once.push(name.clone());
        }
    }
    Ok(Sourced::new(
        Interfaces::Named(once),
        Source::CommandLine("--interface"),
    ))
}
