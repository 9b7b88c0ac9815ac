//! Messages of plugins that can't go out at once.

use fd_messages::MessageType;

use crate::texts;

/// Most of them.
const MOST: usize = 100;
/// And most bytes of their texts.
const MOST_BYTES: usize = 64 << 10;

/// What plugins say meanwhile: anything, and as often as they like.
#[derive(Default, Debug)]
pub(crate) struct Held {
    messages: Vec<(MessageType, Vec<u8>)>,
    bytes: usize,
    is_full: bool,
}

impl Held {
    /// Keeps a message. If there is no room for it, it is left out with all that follow, and a last
    /// one says so.
    pub(crate) fn push(&mut self, kind: MessageType, text: &[u8]) {
        if self.is_full {
            return;
        }
        self.bytes += text.len();
        self.is_full = self.messages.len() >= MOST || self.bytes > MOST_BYTES;
        let (kind, text) =
            if self.is_full { (MessageType::Warning, texts::PLUGINS_SAY_TOO_MUCH) } else { (kind, text) };
        self.messages.push((kind, text.to_vec()));
    }

    /// The messages in their order.
    pub(crate) fn into_messages(self) -> Vec<(MessageType, Vec<u8>)> {
        self.messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(text: &[u8], times: usize) -> Vec<(MessageType, Vec<u8>)> {
        let mut held = Held::default();
        (0..times).for_each(|_| held.push(MessageType::Info, text));
        held.into_messages()
    }

    #[test]
    fn what_plugins_say_is_held_up_to_a_number_and_bytes() {
        assert_eq!(held(b"text\n", MOST), vec![(MessageType::Info, b"text\n".to_vec()); MOST]);
        for (text, most) in [(vec![], MOST), (vec![b'x'; 2000], 32), (vec![b'x'; 1 << 20], 0)] {
            let mut expected = vec![(MessageType::Info, text.clone()); most];
            expected.push((MessageType::Warning, texts::PLUGINS_SAY_TOO_MUCH.to_vec()));
            assert_eq!(held(&text, 1_000_000), expected);
        }
    }
}
