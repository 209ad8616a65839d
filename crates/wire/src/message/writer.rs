//! Writer of a message, submessage by submessage.

use super::{
    AckNack, CoherentSetInfo, DataFragPrefix, DataPrefix, Gap, HEADER_BYTES, Header,
    HeaderExtension, Heartbeat, HeartbeatFrag, InfoDestination, InfoReply, InfoReplyIp4,
    InfoSource, InfoTimestamp, NackFrag, submessage::SubmessageBody,
};
use crate::{BufferTooSmall, guid::GuidPrefix, time::Timestamp};

/// Appends submessages to a message in a buffer. A submessage that does not fit is omitted as a whole, and the
/// message remains valid.
#[derive(Debug)]
pub struct MessageWriter<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

/// Maximum body of a submessage that is not the last, in bytes: the length field has two bytes, and the next
/// submessage is aligned to four.
const MAX_BODY_BYTES: usize = 0xfffc;

/// Defines methods that append a submessage without payload.
macro_rules! appends {
    ($($(#[$documentation:meta])+ $method:ident: $submessage:ty;)+) => {
        $($(#[$documentation])+
        ///
        /// # Errors
        /// [`BufferTooSmall`]; nothing was written.
        #[inline]
        pub fn $method(&mut self, submessage: &$submessage) -> Result<&mut Self, BufferTooSmall> {
            self.append(submessage)
        })+
    };
}

impl<'a> MessageWriter<'a> {
    /// Starts a message with its header.
    ///
    /// # Errors
    /// [`BufferTooSmall`] if the header does not fit.
    #[inline]
    pub fn new(buffer: &'a mut [u8], header: &Header) -> Result<Self, BufferTooSmall> {
        let mut message = Self { buffer, length: 0 };
        header.emit(message.reserve(HEADER_BYTES)?);
        Ok(message)
    }

    /// Bytes written so far.
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a header")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Bytes left in the buffer.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.buffer.len() - self.length
    }

    #[inline]
    fn reserve(&mut self, length: usize) -> Result<&mut [u8], BufferTooSmall> {
        let room = self
            .buffer
            .get_mut(self.length..)
            .and_then(|rest| rest.get_mut(..length))
            .ok_or(BufferTooSmall)?;
        self.length += length;
        Ok(room)
    }

    #[inline]
    fn append<S: SubmessageBody>(&mut self, submessage: &S) -> Result<&mut Self, BufferTooSmall> {
        submessage.write_whole(self.reserve(submessage.whole_len())?);
        Ok(self)
    }

    /// Appends a HEADER_EXTENSION, which must be the first submessage. [`HeaderExtension::seal`] completes it when the
    /// message is complete.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    pub fn header_extension(
        &mut self,
        extension: &HeaderExtension<'_>,
    ) -> Result<&mut Self, BufferTooSmall> {
        extension.emit(self.reserve(extension.buffer_len())?);
        Ok(self)
    }

    /// Appends an INFO_TS: source timestamp of the following submessages.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn info_timestamp(&mut self, timestamp: Timestamp) -> Result<&mut Self, BufferTooSmall> {
        self.append(&InfoTimestamp(Some(timestamp)))
    }

    /// Appends an INFO_DST: destination of the following submessages.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn info_destination(&mut self, prefix: GuidPrefix) -> Result<&mut Self, BufferTooSmall> {
        self.append(&InfoDestination(prefix))
    }

    appends! {
        /// Appends an INFO_SRC: source of the following submessages.
        info_source: InfoSource;
        /// Appends an INFO_REPLY: reply locators for the following submessages.
        info_reply: InfoReply<'_>;
        /// Appends an INFO_REPLY_IP4: UDPv4 reply locators for the following submessages.
        info_reply_ip4: InfoReplyIp4;
        /// Appends a HEARTBEAT: available changes of a writer.
        heartbeat: Heartbeat;
        /// Appends a HEARTBEAT_FRAG: available fragments of a change.
        heartbeat_frag: HeartbeatFrag;
        /// Appends an ACKNACK: acknowledgment and repair request of a reader.
        acknack: AckNack;
        /// Appends a NACK_FRAG: request for missing fragments.
        nack_frag: NackFrag;
        /// Appends a GAP: irrelevant changes.
        gap: Gap;
    }

    /// Appends a DATA. The payload, including its encapsulation header, is copied and padded with zeros to a multiple
    /// of four; it is empty if the prefix has no payload.
    ///
    /// # Errors
    /// [`BufferTooSmall`], also if the submessage exceeds its length field; nothing was written.
    #[inline]
    pub fn data(
        &mut self,
        prefix: &DataPrefix,
        payload: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(prefix.buffer_len(), payload, |room, length| {
            prefix.emit(room, length);
        })
    }

    /// Appends a DATA_FRAG; the fragments are copied as in [`data`](Self::data).
    ///
    /// # Errors
    /// [`BufferTooSmall`], also if the submessage exceeds its length field; nothing was written.
    #[inline]
    pub fn data_frag(
        &mut self,
        prefix: &DataFragPrefix,
        fragments: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(prefix.buffer_len(), fragments, |room, length| {
            prefix.emit(room, length);
        })
    }

    /// Appends a DATA with coherent set or group parameters, as [`data`](Self::data).
    ///
    /// # Errors
    /// Those of [`data`](Self::data).
    pub fn data_with_set(
        &mut self,
        prefix: &DataPrefix,
        set: &CoherentSetInfo,
        payload: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(prefix.len_with_set(set), payload, |room, length| {
            prefix.emit_with_set(set, room, length);
        })
    }

    /// Appends a DATA_FRAG with coherent set or group parameters, as [`data_frag`](Self::data_frag).
    ///
    /// # Errors
    /// Those of [`data_frag`](Self::data_frag).
    pub fn data_frag_with_set(
        &mut self,
        prefix: &DataFragPrefix,
        set: &CoherentSetInfo,
        fragments: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(prefix.len_with_set(set), fragments, |room, length| {
            prefix.emit_with_set(set, room, length);
        })
    }

    #[inline]
    fn with_payload(
        &mut self,
        prefix_len: usize,
        payload: &[u8],
        emit: impl FnOnce(&mut [u8], usize),
    ) -> Result<&mut Self, BufferTooSmall> {
        if prefix_len + payload.len() > MAX_BODY_BYTES {
            return Err(BufferTooSmall);
        }
        let padded = payload.len().next_multiple_of(4);
        let room = self.reserve(prefix_len + padded)?;
        let (prefix, rest) = room.split_at_mut(prefix_len);
        let (body, padding) = rest.split_at_mut(payload.len());
        emit(prefix, padded);
        body.copy_from_slice(payload);
        padding.fill(0);
        Ok(self)
    }
}
