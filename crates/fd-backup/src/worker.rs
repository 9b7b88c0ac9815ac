//! A worker thread: takes a batch, turns it into records, takes the next one.

use std::sync::Arc;
use std::time::Instant;

use fd_crypto::{DigestKind, DigestValue};
use fd_messages::{MessageType, Stage};
use fd_metadata::{FileMetadata, MetadataReader, NameCache};
use fd_records::Stream;
use fd_walk::{Entry, HardLink, LinkDigest, LinkState};

use crate::accurate::Token;
use crate::batch::{Batch, Item};
use crate::digests_ahead::FileAhead;
use crate::emit::Emitter;
use crate::exchange::{Slot, Stopped};
use crate::halt::Halt;
use crate::job::Job;
use crate::long_digests::LongDigest;
use crate::pace::Pace;
use crate::piece::Event;
use crate::protect::{Encryption, Signing, Unprotected};
use crate::save::{Inherited, Saved};
use crate::texts;
use crate::tools::Tools;
use crate::verify::{Finding, Verdict, Verifier};

/// What a worker owns. Everything is used for file after file, so that a file costs no allocation here.
pub(crate) struct Worker<'j> {
    pub(crate) job: &'j Job<'j>,
    pub(crate) emitter: Emitter<'j, Batch>,
    pub(crate) tools: Tools,
    /// Digests of long files.
    pub(crate) long_digest: Option<LongDigest<'j>>,
    /// The present batch's file, if its digests are made ahead.
    pub(crate) ahead: Option<Arc<FileAhead>>,
    pub(crate) metadata: MetadataReader,
    pub(crate) found: FileMetadata,
    pub(crate) names: NameCache,
    /// A block as read.
    pub(crate) block: Vec<u8>,
    /// The same compressed.
    pub(crate) compressed: Vec<u8>,
    /// An attribute record.
    pub(crate) record: Vec<u8>,
    /// Encrypts, where the configuration asks for it.
    pub(crate) encryption: Option<Encryption<'j>>,
    pub(crate) pace: Pace,
}

impl<'j> Worker<'j> {
    /// Workers are counted from 0.
    pub(crate) fn new(job: &'j Job<'j>, seat: usize) -> Result<Self, Unprotected> {
        let protection = job.protection.as_ref();
        let signing = protection.map(Signing::new).transpose()?;
        let encryption = protection.map(Encryption::new).transpose()?.flatten();
        let long = job.long_digests.as_ref().map(|all| (all, seat));
        Ok(Self {
            job,
            emitter: Emitter::new(&job.exchange, job.piece_len, job.comm_compression, long, signing),
            tools: Tools::default(),
            long_digest: long.map(|(all, seat)| LongDigest::new(all, seat)),
            ahead: None,
            metadata: MetadataReader::new(),
            found: FileMetadata::default(),
            names: NameCache::new(),
            block: Vec::new(),
            compressed: Vec::new(),
            record: Vec::new(),
            encryption,
            pace: Pace::new(&job.host_share),
        })
    }

    /// Works until there is nothing more to do.
    pub(crate) fn run(&mut self) {
        let begun = Instant::now();
        self.run_to_end();
        self.job.times.add_since(Stage::Work, begun);
    }

    fn run_to_end(&mut self) {
        while let Some((slot, batch)) = self.job.exchange.take_batch() {
            if let Err(Stopped) = self.work(slot, batch) {
                // Somebody cancelled the job, or a fatal event is on its way to the sender, who knows what to do then.
                if self.job.cancel.is_cancelled() {
                    self.job.exchange.stop();
                }
                return;
            }
        }
    }

    fn work(&mut self, slot: Slot, batch: Batch) -> Result<(), Stopped> {
        let mut findings = self.examine(&batch)?.into_iter();
        let skipped = findings.as_slice().iter().filter(|finding| matches!(finding.verdict, Verdict::Skip)).count();
        let uncertain = u32::try_from(findings.len() - skipped).unwrap_or(u32::MAX);
        let mut file_index = self.job.exchange.number(slot, batch.files.saturating_add(uncertain))?;
        self.ahead = batch.ahead;
        self.emitter.open(slot)?;
        for item in batch.items {
            if self.job.is_stopped() {
                return Err(Stopped);
            }
            match item {
                Item::Entry(entry) => {
                    let verdict = match token_to_examine(&entry) {
                        Some(_) => findings.next().map_or(Verdict::Save, |finding| self.tell(finding, &entry)),
                        None => Verdict::Save,
                    };
                    if self.work_entry(entry, &verdict, file_index)? {
                        file_index = file_index.saturating_add(1);
                    }
                }
                Item::Message { kind, text, failed } => self.emitter.note(Event::Message { kind, text, failed }),
                Item::Plugin(command) => {
                    // What stands before it in the FileSet is saved.
                    self.emitter.publish()?;
                    self.emitter.note(Event::Fatal { text: texts::no_plugin(&command) });
                }
            }
            self.emitter.make_room()?;
            self.pace.step(&|| self.job.is_stopped());
        }
        self.emitter.close();
        Ok(())
    }

    /// Compares the data of those entries of which only that can tell whether they are saved.
    fn examine(&mut self, batch: &Batch) -> Result<Vec<Finding>, Stopped> {
        let Some(list) = self.job.accurate.filter(|_| batch.uncertain) else { return Ok(Vec::new()) };
        let job = self.job;
        let mut verifier = Verifier {
            list,
            tools: &mut self.tools,
            block: &mut self.block,
            record_len: job.record_len,
            is_stopped: &|| job.is_stopped(),
        };
        let entries = batch.items.iter().filter_map(|item| match item {
            Item::Entry(entry) => token_to_examine(entry).map(|token| (entry, token)),
            _ => None,
        });
        entries.map(|(entry, token)| verifier.examine(entry, token)).collect()
    }

    fn tell(&mut self, finding: Finding, entry: &Entry) -> Verdict {
        for event in finding.events {
            self.emitter.note(event);
        }
        self.emitter.piece().tally.read_bytes += finding.read_bytes;
        if matches!(finding.verdict, Verdict::Skip) && self.job.wants_skipped {
            let text = texts::unchanged(&entry.path);
            self.emitter.note(Event::Message { kind: MessageType::Skipped, text, failed: false });
        }
        finding.verdict
    }

    /// Saves an entry, unless the verdict is against it. Says whether it took its FileIndex.
    fn work_entry(&mut self, mut entry: Entry, verdict: &Verdict, file_index: u32) -> Result<bool, Stopped> {
        let update = match verdict {
            Verdict::Skip => {
                self.resolve(&entry, LinkState::NotSaved);
                return Ok(false);
            }
            Verdict::Save => None,
            Verdict::Update(digest) => Some(digest.as_slice()),
        };
        self.emitter.set_current(&entry.path);
        let inherited = self.inherit(&mut entry)?;
        let saved = i32::try_from(file_index)
            .map_err(|_| Halt::FileIndex)
            .and_then(|index| Ok((index, self.save(&entry, inherited, update, index)?)));
        match saved {
            Ok((file_index, Saved::Complete { digest })) => {
                self.resolve(&entry, LinkState::Saved { file_index, digest: digest.as_ref().map(link_digest) });
                Ok(true)
            }
            Ok((_, Saved::NotOpened)) => {
                self.resolve(&entry, LinkState::NotSaved);
                Ok(true)
            }
            Err(halt) => Err(self.give_up(&halt, &entry.path)),
        }
    }

    /// What the entry has from the first name of its inode. If that was not saved, the entry stands for itself.
    fn inherit(&self, entry: &mut Entry) -> Result<Inherited, Stopped> {
        let Some(HardLink::Later { slot, own_type }) = &entry.hard_link else { return Ok(Inherited::default()) };
        let state = self.job.exchange.wait_for(|| match slot.get() {
            LinkState::Pending => None,
            state => Some(state),
        })?;
        if let LinkState::Saved { file_index, digest } = state {
            return Ok(Inherited { link_fi: file_index, digest: digest.and_then(|digest| digest_value(&digest)) });
        }
        entry.file_type = *own_type;
        entry.link.clear();
        Ok(Inherited::default())
    }

    /// Tells the later names of an inode what became of the first one.
    fn resolve(&self, entry: &Entry, state: LinkState) {
        if let Some(HardLink::First(slot)) = &entry.hard_link {
            slot.set(state);
            self.job.exchange.announce();
        }
    }

    /// Leaves the reason in the stream, if there is one to be told.
    fn give_up(&mut self, halt: &Halt, path: &[u8]) -> Stopped {
        if halt.note(path, self.emitter.piece()) {
            self.emitter.close();
        }
        Stopped
    }
}

/// The token of an entry of which only its data can tell whether it is saved.
fn token_to_examine(entry: &Entry) -> Option<Token> {
    entry.token.map(Token::decode).filter(|token| token.needs_data())
}

fn link_digest(digest: &DigestValue) -> LinkDigest {
    LinkDigest { stream: Stream(digest.kind().stream()), bytes: digest.as_bytes().into() }
}

fn digest_value(digest: &LinkDigest) -> Option<DigestValue> {
    DigestValue::from_bytes(DigestKind::from_stream(digest.stream.0)?, &digest.bytes)
}
