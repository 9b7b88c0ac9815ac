//! Writes records as the Storage Daemon expects them, frame by frame into pieces (reference 04 §2).
//!
//! A worker has one [`Emitter`]. It opens a slot, writes the records of a batch, and closes the
//! slot. Full pieces are published on the way.

use std::time::{Duration, Instant};

use fd_bsock::{CommCount, Encoder, FrameError, Signal};
use fd_crypto::{DigestBatch, DigestSet};
use fd_records::{DigestKind, DigestValue, Stream, stream_header};

use crate::digests::batched::{Places, settle};
use crate::digests::protect::Signing;
use crate::exchange::halt::Halt;
use crate::exchange::piece::{Event, Piece};
use crate::exchange::{Slot, Stopped};
use crate::shared::job::Job;

/// While there are many workers, each keeps about so many bytes of data for batched digests.
const KEPT_BY_MANY: usize = 256 << 10;
/// So long the sender may wait for a piece that is not full.
const LONGEST_STAY: Duration = Duration::from_secs(1);

/// Encodes records as frames, at the end of a buffer.
pub(crate) struct RecordWriter {
    encoder: Encoder,
    header: Vec<u8>,
}

impl RecordWriter {
    pub(crate) fn new(comm_compression: bool) -> Self {
        Self { encoder: Encoder::new(comm_compression), header: Vec::new() }
    }

    /// Data that did not compress in one slot must not affect the next one: the bytes of a slot
    /// depend on nothing else.
    fn begin_slot(&mut self) {
        self.encoder.spare_effort();
    }

    /// Begins a stream.
    fn header(&mut self, out: &mut Vec<u8>, file_index: i32, stream: Stream, size: i64) -> Result<(), FrameError> {
        self.header.clear();
        stream_header(&mut self.header, file_index, stream, size);
        self.encoder.record(out, &self.header)
    }

    /// Ends a stream.
    fn end_stream(&mut self, out: &mut Vec<u8>) {
        self.encoder.signal(out, Signal::Eod);
    }

    /// A stream of one message.
    pub(crate) fn record(
        &mut self,
        out: &mut Vec<u8>,
        file_index: i32,
        stream: Stream,
        payload: &[u8],
    ) -> Result<(), FrameError> {
        self.header(out, file_index, stream, 0)?;
        self.encoder.record(out, payload)?;
        self.end_stream(out);
        Ok(())
    }

    /// The same for a message that may be longer than a frame, if the line is compressed. What
    /// can't be sent leaves nothing behind.
    fn large_record(
        &mut self,
        out: &mut Vec<u8>,
        file_index: i32,
        stream: Stream,
        payload: &[u8],
    ) -> Result<(), FrameError> {
        let start = out.len();
        self.encoder.large(out, payload)?;
        let frame = out.split_off(start);
        self.header(out, file_index, stream, 0)?;
        out.extend_from_slice(&frame);
        self.end_stream(out);
        Ok(())
    }

    /// A stream of one message whose payload is filled in later. Returns its position.
    fn reserve(&mut self, out: &mut Vec<u8>, file_index: i32, stream: Stream, len: usize) -> Result<usize, FrameError> {
        self.header(out, file_index, stream, 0)?;
        let place = self.encoder.reserve(out, len)?;
        self.end_stream(out);
        Ok(place.start)
    }

    /// Payload bytes that were encoded since the last call.
    pub(crate) fn take_count(&mut self) -> CommCount {
        self.encoder.take_count()
    }
}

/// The stream of one worker.
pub(crate) struct Emitter<'j> {
    job: &'j Job,
    writer: RecordWriter,
    /// The open slot; `piece` belongs to it.
    open: Option<Slot>,
    piece: Piece,
    /// Since when the piece is filled, or when it was last asked whether the sender waits for it.
    since: Instant,
    /// The files of this piece whose digests are batched.
    batch: DigestBatch<Places>,
    /// Set if files are signed.
    signing: Option<Signing>,
    /// Most pieces of the open slot that wait for the sender; more where there is memory.
    most_ahead: Option<usize>,
}

impl<'j> Emitter<'j> {
    /// An emitter for one worker.
    pub(crate) fn new(job: &'j Job, signing: Option<Signing>) -> Self {
        Self {
            job,
            writer: RecordWriter::new(job.plan.comm_compression),
            open: None,
            piece: Piece::default(),
            since: Instant::now(),
            batch: DigestBatch::new(job.plan.processor),
            signing,
            most_ahead: None,
        }
    }

    /// Starts the output of a slot.
    pub(crate) fn open(&mut self, slot: Slot) -> Result<(), Stopped> {
        self.piece = self.job.exchange.obtain(slot)?;
        self.since = Instant::now();
        self.open = Some(slot);
        self.writer.begin_slot();
        Ok(())
    }

    /// Ends the output of the slot.
    pub(crate) fn close(&mut self) {
        if let Some(slot) = self.open.take() {
            let piece = self.complete_piece();
            self.job.exchange.close(slot, piece);
        }
    }

    /// The open slot.
    pub(crate) fn slot(&self) -> Option<Slot> {
        self.open
    }

    /// From now on no more than so many pieces wait for the sender.
    pub(crate) fn stay_near(&mut self, most_ahead: Option<usize>) {
        self.most_ahead = most_ahead;
    }

    /// The present piece, for its counters and notes.
    pub(crate) fn piece(&mut self) -> &mut Piece {
        &mut self.piece
    }

    /// The entry that the status display shows: the last one of a piece, whose data may go on in
    /// the next ones.
    pub(crate) fn set_current(&mut self, path: &[u8]) {
        self.piece.current.clear();
        self.piece.current.extend_from_slice(path);
    }

    /// Adds an event at this position of the stream.
    pub(crate) fn note(&mut self, event: Event) {
        self.piece.note(event);
    }

    /// Begins a stream of several messages.
    pub(crate) fn header(&mut self, file_index: i32, stream: Stream, size: i64) -> Result<(), FrameError> {
        self.writer.header(&mut self.piece.frames, file_index, stream, size)
    }

    /// One message of a stream. An empty one would end the stream, so it is not sent.
    pub(crate) fn payload(&mut self, parts: &[&[u8]]) -> Result<(), FrameError> {
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(());
        }
        self.writer.encoder.data_parts(&mut self.piece.frames, parts)
    }

    /// Ends a stream of several messages.
    pub(crate) fn close_stream(&mut self) {
        self.writer.end_stream(&mut self.piece.frames);
    }

    /// A stream of one message.
    pub(crate) fn record(&mut self, file_index: i32, stream: Stream, payload: &[u8]) -> Result<(), FrameError> {
        self.writer.record(&mut self.piece.frames, file_index, stream, payload)
    }

    /// A stream of one message that may be longer than a frame, if the line is compressed.
    pub(crate) fn large_record(&mut self, file_index: i32, stream: Stream, payload: &[u8]) -> Result<(), FrameError> {
        self.writer.large_record(&mut self.piece.frames, file_index, stream, payload)
    }

    /// Signs a digest and writes the signature record.
    pub(crate) fn signature(&mut self, file_index: i32, digest: &DigestValue) -> Result<(), Halt> {
        if let Some(signing) = &mut self.signing {
            let record = signing.sign(digest)?;
            self.writer.record(&mut self.piece.frames, file_index, Stream::SIGNED_DIGEST, record)?;
        }
        Ok(())
    }

    /// Begins a file whose digests of these kinds are batched.
    pub(crate) fn begin_batched(&mut self, kinds: DigestSet) {
        self.batch.begin(kinds);
    }

    /// Keeps a block of that file's data.
    pub(crate) fn keep_for_batch(&mut self, block: &[u8]) {
        self.batch.push(block);
    }

    /// Begins one message of a stream. Its payload is read to the end of [`Self::block_room`], from
    /// the returned position on: among the data kept for batched digests, or directly in its frame.
    pub(crate) fn begin_block(&mut self, batched: bool) -> usize {
        if batched { self.batch.room().len() } else { Encoder::begin(&mut self.piece.frames) }
    }

    /// See [`Self::begin_block`].
    pub(crate) fn block_room(&mut self, batched: bool) -> &mut Vec<u8> {
        if batched { self.batch.room() } else { &mut self.piece.frames }
    }

    /// Ends the message. Its payload has been read, and is not empty.
    pub(crate) fn end_block(&mut self, batched: bool, start: usize) -> Result<(), Halt> {
        if !batched {
            return Ok(self.writer.encoder.finish(&mut self.piece.frames, start)?);
        }
        let block = self.batch.room().get(start..).unwrap_or_default();
        self.writer.encoder.data(&mut self.piece.frames, block)?;
        self.batch.pushed();
        Ok(())
    }

    /// Writes a signature record that is filled in later. Returns the position of the signature.
    pub(crate) fn reserve_signature(&mut self, file_index: i32) -> Result<usize, FrameError> {
        let len = self.signing.as_ref().map(Signing::record_len).unwrap_or_default();
        self.writer.reserve(&mut self.piece.frames, file_index, Stream::SIGNED_DIGEST, len)
    }

    /// Writes a digest record that is filled in later. Returns the position of the digest.
    pub(crate) fn reserve_digest(&mut self, file_index: i32, kind: DigestKind) -> Result<usize, FrameError> {
        self.writer.reserve(&mut self.piece.frames, file_index, kind.stream(), kind.len())
    }

    /// Ends a file with batched digests. Until the piece is published, these places may hold zeros.
    pub(crate) fn end_batched(&mut self, kinds: DigestSet, places: Places) -> Result<(), Halt> {
        self.batch.end(kinds, places);
        let is_enough = self.job.workers.depth.is_deep() && self.batch.room().len() >= KEPT_BY_MANY;
        if is_enough || self.batch.is_full() { self.settle() } else { Ok(()) }
    }

    /// Computes the batched digests and signatures and fills them in.
    fn settle(&mut self) -> Result<(), Halt> {
        settle(&mut self.batch, &mut self.piece.frames, self.signing.as_mut())
    }

    /// Publishes the piece if it is full, or if the sender has waited long for it: a file that
    /// takes hours must not keep back those before it.
    pub(crate) fn make_room(&mut self) -> Result<(), Stopped> {
        if self.piece.frames.len() >= self.job.piece_len || self.is_waited_for() {
            self.publish()?;
        }
        Ok(())
    }

    fn is_waited_for(&mut self) -> bool {
        if self.since.elapsed() < LONGEST_STAY {
            return false;
        }
        // Asked anew after as long.
        self.since = Instant::now();
        self.open.is_some_and(|slot| self.job.exchange.is_waited_for(slot))
    }

    /// Publishes the piece as it is.
    pub(crate) fn publish(&mut self) -> Result<(), Stopped> {
        if let Some(slot) = self.open {
            let piece = self.complete_piece();
            self.piece = self.job.exchange.publish(slot, piece, self.most_ahead)?;
            self.since = Instant::now();
        }
        Ok(())
    }

    fn complete_piece(&mut self) -> Piece {
        let settled = self.settle();
        let mut piece = std::mem::take(&mut self.piece);
        if let Err(halt) = settled {
            // OpenSSL fails in the middle of the job. No backup is better than one with wrong
            // digests.
            piece.frames.clear();
            piece.notes.clear();
            halt.note(b"", &mut piece);
        }
        piece.count = self.writer.take_count();
        piece
    }
}
