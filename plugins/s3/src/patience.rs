//! How long a server is waited for: as long as it takes or sends something. A body may be long, a
//! line slow, and either host busy.

use std::convert::Infallible;
use std::error::Error;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::timeout;

use crate::error::S3Error;

/// Bytes that are taken at a time.
const PIECE: usize = 64 << 10;

/// What is sent with a request, in pieces.
#[derive(Debug)]
pub(crate) struct Outgoing {
    left: Bytes,
    taken: Arc<AtomicUsize>,
}

impl Outgoing {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { left: bytes, taken: Arc::default() }
    }

    /// How many pieces of it have been taken; goes on counting.
    pub(crate) fn taken(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.taken)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        let length = self.left.len().min(PIECE);
        let piece = self.left.split_to(length);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

/// The server has taken and sent nothing for so long.
pub(crate) const fn late(patience: Duration) -> S3Error {
    S3Error::Late(patience.as_secs())
}

/// What a request is answered; an error if for so long there is no answer, and no more of it was
/// taken.
pub(crate) async fn answered<F: Future>(
    request: F,
    patience: Duration,
    taken: &AtomicUsize,
) -> Result<F::Output, S3Error> {
    let mut request = pin!(request);
    loop {
        let before = taken.load(Ordering::Relaxed);
        match timeout(patience, request.as_mut()).await {
            Ok(answer) => return Ok(answer),
            Err(_) if taken.load(Ordering::Relaxed) == before => return Err(late(patience)),
            Err(_) => {}
        }
    }
}

/// All that a body brings; an error if it is longer than `most`, or if nothing comes for so long.
pub(crate) async fn whole<B>(body: B, most: usize, patience: Duration) -> Result<Bytes, S3Error>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    let mut body = Limited::new(body, most);
    let mut bytes = Vec::new();
    while let Some(frame) = timeout(patience, body.frame()).await.map_err(|_| late(patience))? {
        let frame = frame.map_err(|error| S3Error::connection(&error))?;
        // A server chooses how many pieces they come in.
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |piece| piece));
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use std::task::ready;

    use tokio::runtime::{Builder, Runtime};
    use tokio::time::{Sleep, sleep};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Its clock goes on when all that runs waits for it.
    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
    }

    /// A body whose pieces of one byte come with pauses between them.
    struct Slow {
        left: u8,
        pause: Duration,
        next: Pin<Box<Sleep>>,
    }

    impl Body for Slow {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            ready!(self.next.as_mut().poll(context));
            self.left -= 1;
            self.next = Box::pin(sleep(self.pause));
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b" ")))))
        }
    }

    #[test]
    fn an_answer_may_take_long_and_its_pieces_may_not() {
        let slow = |left, pause| {
            runtime().block_on(async { whole(Slow { left, pause, next: Box::pin(sleep(pause)) }, 100, PATIENCE).await })
        };
        assert_eq!(slow(100, PATIENCE * 9 / 10).unwrap().len(), 100);
        let late = slow(1, PATIENCE * 11 / 10);
        assert!(matches!(late, Err(S3Error::Late(60))), "{late:?}");
    }

    #[test]
    fn a_long_body_may_be_taken_slowly_and_not_stand_still() {
        let sent = |pause: Duration| {
            runtime().block_on(async {
                let mut body = Outgoing::new(vec![0; 10 * PIECE].into());
                let taken = body.taken();
                let request = async {
                    let mut length = 0;
                    while let Some(Ok(frame)) = body.frame().await {
                        length += frame.data_ref().map_or(0, Bytes::len);
                        sleep(pause).await;
                    }
                    length
                };
                answered(request, PATIENCE, &taken).await
            })
        };
        assert_eq!(sent(PATIENCE * 9 / 10).unwrap(), 10 * PIECE);
        let late = sent(PATIENCE * 21 / 10);
        assert!(matches!(late, Err(S3Error::Late(60))), "{late:?}");
    }
}
