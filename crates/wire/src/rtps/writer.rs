//! Writing a message submessage by submessage.

use super::{
    AckNack, DataFragHead, DataHead, Gap, HEADER_BYTES, Header, HeaderExtension, Heartbeat,
    HeartbeatFrag, InfoDestination, InfoReply, InfoReplyIp4, InfoSource, InfoTimestamp, NackFrag,
    SetMark,
};
use crate::{BufferTooSmall, guid::GuidPrefix, time::Timestamp};

/// Appends submessages to a message in a buffer. One that does not fit is left out whole, and what
/// was written before stays valid.
#[derive(Debug)]
pub struct MessageWriter<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

/// Longest body that a submessage in the midst of others can have, in bytes: its length field has
/// two bytes, and the next submessage begins at a multiple of four.
const MAX_BODY_BYTES: usize = 0xfffc;

impl<'a> MessageWriter<'a> {
    /// Starts a message with its header.
    ///
    /// # Errors
    /// [`BufferTooSmall`] if not even the header fits.
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

    /// Bytes still free.
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

    /// HEADER_EXTENSION: what the message says of itself as a whole. It comes first. When the message is
    /// complete, [`HeaderExtension::seal`] makes it true.
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

    /// INFO_TS: when what follows was written.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn info_timestamp(&mut self, timestamp: Timestamp) -> Result<&mut Self, BufferTooSmall> {
        let submessage = InfoTimestamp(Some(timestamp));
        submessage.emit(self.reserve(submessage.buffer_len())?);
        Ok(self)
    }

    /// INFO_DST: whom what follows is for.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn info_destination(&mut self, prefix: GuidPrefix) -> Result<&mut Self, BufferTooSmall> {
        let submessage = InfoDestination(prefix);
        submessage.emit(self.reserve(submessage.buffer_len())?);
        Ok(self)
    }

    /// INFO_SRC: who wrote what follows.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn info_source(&mut self, source: &InfoSource) -> Result<&mut Self, BufferTooSmall> {
        source.emit(self.reserve(source.buffer_len())?);
        Ok(self)
    }

    /// INFO_REPLY: where replies to what follows go.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    pub fn info_reply(&mut self, reply: &InfoReply<'_>) -> Result<&mut Self, BufferTooSmall> {
        reply.emit(self.reserve(reply.buffer_len())?);
        Ok(self)
    }

    /// INFO_REPLY_IP4: the same, of IPv4 alone.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    pub fn info_reply_ip4(&mut self, reply: &InfoReplyIp4) -> Result<&mut Self, BufferTooSmall> {
        reply.emit(self.reserve(reply.buffer_len())?);
        Ok(self)
    }

    /// DATA: a change. The payload, with its encapsulation header, is copied and padded with zeros
    /// to a multiple of four; it is empty if the head says there is none.
    ///
    /// # Errors
    /// [`BufferTooSmall`], also if the submessage would be longer than its length field can say;
    /// nothing was written.
    #[inline]
    pub fn data(&mut self, head: &DataHead, payload: &[u8]) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(head.buffer_len(), payload, |room, length| {
            head.emit(room, length);
        })
    }

    /// DATA_FRAG: fragments of a change. As [`data`](Self::data).
    ///
    /// # Errors
    /// [`BufferTooSmall`], also if the submessage would be longer than its length field can say;
    /// nothing was written.
    #[inline]
    pub fn data_frag(
        &mut self,
        head: &DataFragHead,
        fragments: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(head.buffer_len(), fragments, |room, length| {
            head.emit(room, length);
        })
    }

    /// DATA of a coherent set, or of a group. As [`data`](Self::data).
    ///
    /// # Errors
    /// As [`data`](Self::data).
    pub fn marked_data(
        &mut self,
        head: &DataHead,
        mark: &SetMark,
        payload: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(head.marked_len(mark), payload, |room, length| {
            head.emit_marked(mark, room, length);
        })
    }

    /// DATA_FRAG of a coherent set, or of a group. As [`data_frag`](Self::data_frag).
    ///
    /// # Errors
    /// As [`data_frag`](Self::data_frag).
    pub fn marked_data_frag(
        &mut self,
        head: &DataFragHead,
        mark: &SetMark,
        fragments: &[u8],
    ) -> Result<&mut Self, BufferTooSmall> {
        self.with_payload(head.marked_len(mark), fragments, |room, length| {
            head.emit_marked(mark, room, length);
        })
    }

    #[inline]
    fn with_payload(
        &mut self,
        head_len: usize,
        payload: &[u8],
        emit: impl FnOnce(&mut [u8], usize),
    ) -> Result<&mut Self, BufferTooSmall> {
        if head_len + payload.len() > MAX_BODY_BYTES {
            return Err(BufferTooSmall);
        }
        let padded = payload.len().next_multiple_of(4);
        let room = self.reserve(head_len + padded)?;
        let (head, rest) = room.split_at_mut(head_len);
        let (body, padding) = rest.split_at_mut(payload.len());
        emit(head, padded);
        body.copy_from_slice(payload);
        padding.fill(0);
        Ok(self)
    }

    /// HEARTBEAT: what the writer has.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat) -> Result<&mut Self, BufferTooSmall> {
        heartbeat.emit(self.reserve(heartbeat.buffer_len())?);
        Ok(self)
    }

    /// HEARTBEAT_FRAG: what fragments the writer has.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn heartbeat_frag(
        &mut self,
        heartbeat: &HeartbeatFrag,
    ) -> Result<&mut Self, BufferTooSmall> {
        heartbeat.emit(self.reserve(heartbeat.buffer_len())?);
        Ok(self)
    }

    /// ACKNACK: what a reader has and lacks.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn acknack(&mut self, acknack: &AckNack) -> Result<&mut Self, BufferTooSmall> {
        acknack.emit(self.reserve(acknack.buffer_len())?);
        Ok(self)
    }

    /// NACK_FRAG: what fragments a reader lacks.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn nack_frag(&mut self, nack: &NackFrag) -> Result<&mut Self, BufferTooSmall> {
        nack.emit(self.reserve(nack.buffer_len())?);
        Ok(self)
    }

    /// GAP: what is not to be expected.
    ///
    /// # Errors
    /// [`BufferTooSmall`]; nothing was written.
    #[inline]
    pub fn gap(&mut self, gap: &Gap) -> Result<&mut Self, BufferTooSmall> {
        gap.emit(self.reserve(gap.buffer_len())?);
        Ok(self)
    }
}
