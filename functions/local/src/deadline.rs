//! A body that ends with an error when its sender takes too long, or when there is no place for a large one.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// The place of a request among those with a large body: taken when that much of it was read, and not because its head
/// says so, since whoever is refused before must keep nobody out.
pub(crate) struct Place {
    places: Arc<Semaphore>,
    patience: Duration,
    taken: Mutex<Option<OwnedSemaphorePermit>>,
    is_refused: AtomicBool,
}

impl Place {
    /// None yet; one of `places` is waited for at most for `patience`.
    pub(crate) fn new(places: Arc<Semaphore>, patience: Duration) -> Arc<Self> {
        let (taken, is_refused) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { places, patience, taken, is_refused })
    }

    /// Whether the body ended because there was no place for it.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    async fn take(self: Arc<Self>) -> bool {
        let place = self.places.clone().acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(self.patience, place).await else {
            self.is_refused.store(true, Ordering::Relaxed);
            return false;
        };
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        true
    }
}

/// A body with a deadline over all of it, that takes a place once more than `small` bytes of it were read. The timer is
/// made only when the body has to be waited for.
pub(crate) struct Deadline<B> {
    body: B,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// Bytes that may still be read without a place; `None` once a place was asked for.
    small: Option<usize>,
    place: Arc<Place>,
    taking: Option<BoxFuture<'static, bool>>,
}

impl<B> Deadline<B> {
    pub(crate) fn new(body: B, timeout: Duration, small: usize, place: Arc<Place>) -> Self {
        Self { body, timeout, timer: None, small: Some(small), place, taking: None }
    }

    /// Counts what was read, and asks for a place when it is too much to go on without one.
    fn count(&mut self, frame: &Frame<Bytes>) {
        let Some(left) = self.small else { return };
        let size = frame.data_ref().map_or(0, Bytes::len);
        self.small = left.checked_sub(size);
        if self.small.is_none() {
            self.taking = Some(Box::pin(Arc::clone(&self.place).take()));
        }
    }
}

impl<B> Body for Deadline<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(taking) = &mut self.taking {
            if !ready!(taking.as_mut().poll(context)) {
                return Poll::Ready(Some(Err("there is no place for a large body".into())));
            }
            self.taking = None;
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some(Ok(frame)) = &frame {
                self.count(frame);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => {
                Poll::Ready(Some(Err("the request body did not arrive in time".into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    /// Reads a body of `size` bytes with 10 of them small; how many were read, and whether a place was refused.
    async fn read(places: &Arc<Semaphore>, size: usize) -> (Option<usize>, bool, usize) {
        let place = Place::new(Arc::clone(places), Duration::from_millis(10));
        let parts = Full::new(Bytes::from(vec![0; size.min(11)]));
        // The rest comes as a trailer frame would: after the first frame.
        let body = parts.with_trailers(async { Some(Ok(http::HeaderMap::new())) });
        let body = Deadline::new(Box::pin(body), Duration::from_secs(60), 10, Arc::clone(&place));
        let read = body.collect().await.ok().map(|read| read.to_bytes().len());
        (read, place.is_refused(), places.available_permits())
    }

    #[tokio::test]
    async fn only_a_body_of_which_much_was_read_takes_a_place() {
        let places = Arc::new(Semaphore::new(1));
        assert_eq!(read(&places, 10).await, (Some(10), false, 1));
        assert_eq!(read(&places, 11).await, (Some(11), false, 0));
        assert_eq!(places.available_permits(), 1, "given back with the request");
        let _taken = places.acquire().await.unwrap();
        assert_eq!(read(&places, 10).await, (Some(10), false, 0));
        assert_eq!(read(&places, 11).await, (None, true, 0));
    }
}
