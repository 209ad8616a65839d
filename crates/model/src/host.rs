//! Host settings, `[host.NAME]`.

use core::num::NonZeroU32;

use isolane_datapath::{DatapathFactory, Kinds};
use isolane_wire::level::Level;

use crate::datapath::{DatapathChoice, DatapathSettings, Waiting};
use crate::limits::{DEFAULT_SAMPLE_MEMORY, MAX_INTERFACE_NAME_BYTES};
use crate::protect::HostProtection;
use crate::source::Sourced;
use crate::word::Word;

/// Host, `[host.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Host {
    /// Name by which topics refer to the host; unique in the system.
    pub name: Sourced<String>,
    /// Network interface over which the host sends and receives its topics.
    pub interface: Sourced<String>,
    /// Core on which the executor runs; `None` lets the scheduler choose.
    pub core: Sourced<Option<u16>>,
    /// SCHED_FIFO priority of the thread that runs the loop, 1 to 98; `None` for the ordinary scheduling class.
    pub priority: Sourced<Option<u8>>,
    /// True to lock the memory of the process, mlockall(2).
    pub lock_memory: Sourced<bool>,
    /// Reaction if the system refuses the core, the priority or the memory lock.
    pub scheduling: Sourced<Scheduling>,
    /// Maximum number of remote participants that each participant of this host knows, with ten endpoints each; `None`
    /// for the library's default.
    pub max_participants: Sourced<Option<NonZeroU32>>,
    /// True to allocate the memory for all `max_participants` at the start.
    pub fixed_memory: Sourced<bool>,
    /// Sample memory of each participant in bytes, 1 to [`MAX_SAMPLE_MEMORY`](crate::limits::MAX_SAMPLE_MEMORY).
    pub sample_memory: Sourced<NonZeroU32>,
    /// Datapath.
    pub datapath: Sourced<DatapathChoice>,
    /// Behaviour of the loop when no job is ready.
    pub waiting: Sourced<Waiting>,
    /// Level of discovery datagrams (SO_PRIORITY, DSCP). `None`: one less than the highest level in use, at least 1.
    pub discovery_level: Sourced<Option<Level>>,
    /// First of 256 fixed UDP ports for samples, for firewalls and switches. `None`: the kernel chooses.
    pub sample_ports: Sourced<Option<u16>>,
    /// Budgets that all receivers of the host share.
    pub protect: HostProtection,
    /// Options of every kind of datapath, the preferred kind first.
    pub datapaths: Vec<DatapathSettings>,
    /// Levels (bit *l* is level *l*) below the highest of this host, whose topics all have samples longer than a datagram.
    pub(crate) large_levels: u8,
}

/// Reaction if the system refuses the core, the priority or the memory lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// Continue without the refused setting, with a warning.
    #[default]
    Auto,
    /// Refuse to start.
    Required,
}

impl Word for Scheduling {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("required", Self::Required)];
}

impl Host {
    /// Creates a host without a description: name and interface are empty, and every other setting has its default.
    /// `kinds` are the datapaths that the host may choose.
    pub fn new(kinds: Kinds) -> Self {
        let sample_memory =
            NonZeroU32::new(DEFAULT_SAMPLE_MEMORY).expect("the default is a number");
        let datapaths = kinds.iter().map(|kind| DatapathSettings::new(*kind));
        Self {
            name: Sourced::default_value(String::new()),
            interface: Sourced::default_value(String::new()),
            core: Sourced::default_value(None),
            priority: Sourced::default_value(None),
            lock_memory: Sourced::default_value(false),
            scheduling: Sourced::default_value(Scheduling::default()),
            max_participants: Sourced::default_value(None),
            fixed_memory: Sourced::default_value(false),
            sample_memory: Sourced::default_value(sample_memory),
            datapath: Sourced::default_value(DatapathChoice::default()),
            waiting: Sourced::default_value(Waiting::default()),
            discovery_level: Sourced::default_value(None),
            sample_ports: Sourced::default_value(None),
            protect: HostProtection::default(),
            datapaths: datapaths.collect(),
            large_levels: 0,
        }
    }

    /// Returns the options of a kind of datapath, if there is such a kind.
    pub fn datapath_settings(&self, name: &str) -> Option<&DatapathSettings> {
        self.datapaths.iter().find(|it| it.kind().name() == name)
    }

    /// Chooses the datapath. With `auto`, levels of large samples are left to kernel sockets, unless the host has limits,
    /// which only lanes enforce.
    pub fn choose_datapath(&mut self, choice: Sourced<DatapathChoice>) {
        let is_limited = self.protect.topics.is_some() || self.protect.others.is_some();
        let left_out = match choice.value == DatapathChoice::Auto && !is_limited {
            true => self.large_levels,
            false => 0,
        };
        self.datapath = choice;
        let all = self.datapaths.iter_mut();
        all.for_each(|settings| settings.leave_out(left_out));
    }

    /// Iterates over the datapaths that the host may use. With `auto` these are all kinds, the preferred one first;
    /// otherwise it is the chosen kind.
    pub fn chosen_datapaths(&self) -> impl Iterator<Item = &DatapathSettings> {
        self.datapaths
            .iter()
            .filter(|it| match self.datapath.value {
                DatapathChoice::Auto => true,
                DatapathChoice::Named(name) => it.kind().name() == name,
            })
    }

    /// Configures the datapaths that the host may use, the preferred one first.
    ///
    /// # Panics
    /// If options that were changed after the description was read contradict each other.
    pub fn factories(&self) -> Vec<Box<dyn DatapathFactory>> {
        let configured = |it: &DatapathSettings| it.kind().configure(&it.options());
        let checked = |it| configured(it).expect("the options were checked");
        self.chosen_datapaths().map(checked).collect()
    }
}

/// Returns true for a valid Linux interface name: 1 to [`MAX_INTERFACE_NAME_BYTES`] visible characters without `/`
/// and `:`, but not `.` and `..` (`dev_valid_name` of the kernel, in ASCII).
pub fn is_interface_name(name: &str) -> bool {
    let letter = |c: u8| c.is_ascii_graphic() && c != b'/' && c != b':';
    let has_length = (1..=MAX_INTERFACE_NAME_BYTES).contains(&name.len());
    has_length && name != "." && name != ".." && name.bytes().all(letter)
}
