//! Frames as a pcapng file, as Wireshark reads it.

use std::borrow::Cow;
use std::path::Path;

use isolane_wire::cooked::Version;
use pcap_parser::{
    EnhancedPacketBlock, InterfaceDescriptionBlock, Linktype, OptionCode, PcapNGOption,
    SectionHeaderBlock, ToVec,
};

use super::frame::{Frame, Link};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::CAPTURE_INTERFACES;
use crate::result_file::ResultFile;

/// Exponent of the time stamps' unit: 10^-9 s (option `if_tsresol`).
const NANOSECONDS: u8 = 9;

/// A capture that is being written. The frames of one link type on one device have an interface of the file.
pub(crate) struct CaptureWriter {
    file: ResultFile,
    path: Box<Path>,
    interfaces: Vec<(Link, Option<String>)>,
}

impl CaptureWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let file =
            ResultFile::create(path).map_err(|error| not_written(path, error.to_string()))?;
        let mut writer = Self {
            file,
            path: path.into(),
            interfaces: Vec::new(),
        };
        writer.put(&mut SectionHeaderBlock {
            block_type: 0,
            block_len1: 0,
            bom: 0,
            major_version: 1,
            minor_version: 0,
            // Unknown: more may follow.
            section_len: -1,
            options: Vec::new(),
            block_len2: 0,
        })?;
        Ok(writer)
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        let interface = self.interface(frame)?;
        let time = frame.time_ns.unwrap_or_default();
        let captured = frame.bytes.len() as u32;
        // The library takes the data with its padding.
        let mut data = frame.bytes.to_vec();
        data.resize(data.len().next_multiple_of(4), 0);
        self.put(&mut EnhancedPacketBlock {
            block_type: 0,
            block_len1: 0,
            if_id: interface,
            ts_high: (time >> 32) as u32,
            ts_low: time as u32,
            caplen: captured,
            origlen: frame.original_len as u32,
            data: &data,
            options: Vec::new(),
            block_len2: 0,
        })?;
        // The file has its name from its first frame on.
        self.finish()
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// It cannot be put there.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        let finished = self.file.finish();
        finished.map_err(|error| not_written(&self.path, error.to_string()))
    }

    /// The number of a frame's interface, which is described where it is new.
    fn interface(&mut self, frame: &Frame<'_>) -> Result<u32, Failure> {
        let is = |name: Option<&str>| {
            let mut interfaces = self.interfaces.iter();
            interfaces.position(|(link, known)| *link == frame.link && known.as_deref() == name)
        };
        // Beyond the bound new interfaces have no names.
        let is_full = self.interfaces.len() >= CAPTURE_INTERFACES;
        let name = frame.interface.filter(|_| !is_full);
        let place = is(frame.interface).or_else(|| is(name));
        let place = place.unwrap_or(self.interfaces.len());
        if place == self.interfaces.len() {
            let option = name.map(|name| PcapNGOption {
                code: OptionCode::IfName,
                len: name.len() as u16,
                value: Cow::Borrowed(name.as_bytes()),
            });
            self.put(&mut InterfaceDescriptionBlock {
                block_type: 0,
                block_len1: 0,
                linktype: link_type(frame.link),
                reserved: 0,
                // No limit.
                snaplen: 0,
                options: option.into_iter().collect(),
                block_len2: 0,
                if_tsresol: NANOSECONDS,
                if_tsoffset: 0,
            })?;
            self.interfaces.push((frame.link, name.map(String::from)));
        }
        Ok(place as u32)
    }

    /// Writes a block; the library fills in its type and lengths.
    fn put(&mut self, block: &mut impl ToVec) -> Result<(), Failure> {
        let bytes = block.to_vec().map_err(|error| error.to_string());
        let written = bytes.and_then(|bytes| {
            let written = self.file.write_bytes(&bytes);
            written.map_err(|error| error.to_string())
        });
        written.map_err(|why| not_written(&self.path, why))
    }
}

fn link_type(link: Link) -> Linktype {
    match link {
        Link::Ethernet => Linktype::ETHERNET,
        Link::Cooked(Version::One) => Linktype::LINUX_SLL,
        Link::Cooked(Version::Two) => Linktype::LINUX_SLL2,
        Link::Ip => Linktype::RAW,
        Link::Loopback => Linktype::NULL,
        Link::Unknown(number) => Linktype(number),
    }
}

fn not_written(path: &Path, why: String) -> Failure {
    let what = format!("the capture cannot be written to {}", path.display());
    Failure::new(ExitCode::MachineForbids, what, why)
        .with_remedy("name a file in a directory that exists and this user may write to")
}
