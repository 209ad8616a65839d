//! Encapsulated parameter lists (RTPS 2.5 §10, DDS-XTypes 1.3 §7.4.3.4).

use crate::{
    BufferTooSmall, ByteOrder, Error,
    parameter::{ParameterList, ParameterWriter},
};

const PL_CDR_BE: u16 = 0x0002;
const PL_CDR_LE: u16 = 0x0003;

/// Encapsulation identifier and options.
const HEADER_BYTES: usize = 4;

pub(super) fn parse(payload: &[u8]) -> Result<ParameterList<'_>, Error> {
    let (&[a, b, _, _], rest) = payload
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or(Error::Truncated)?;
    let order = match u16::from_be_bytes([a, b]) {
        PL_CDR_BE => ByteOrder::Big,
        PL_CDR_LE => ByteOrder::Little,
        other => return Err(Error::UnknownEncapsulation(other)),
    };
    Ok(ParameterList::parse(rest, order)?.0)
}

/// Writes a payload with the parameters that `put` adds and returns its length.
pub(super) fn emit(
    buffer: &mut [u8],
    put: impl FnOnce(&mut ParameterWriter<'_>),
) -> Result<usize, BufferTooSmall> {
    let (head, rest) = buffer
        .split_first_chunk_mut::<HEADER_BYTES>()
        .ok_or(BufferTooSmall)?;
    let [a, b] = PL_CDR_LE.to_be_bytes();
    *head = [a, b, 0, 0];
    let mut list = ParameterWriter::new(rest);
    put(&mut list);
    Ok(HEADER_BYTES + list.finish()?)
}
