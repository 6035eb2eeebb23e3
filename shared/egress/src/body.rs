//! Response bodies, counted while they are read.

use annex_core::limits::LARGE_BODY_BYTES;
use annex_core::ports::SendFault;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::Semaphore;

use crate::failure;

/// Room made before anything has arrived, in bytes. A declared length is only a claim.
const FIRST_CAPACITY: usize = 64 << 10;

/// Reads the whole body of an answer with this status, of at most `bytes_max` bytes (LC-047, LC-048).
///
/// What is declared larger is refused unread. A body holds a permit of `large` from [`LARGE_BODY_BYTES`] on: not
/// earlier, so that a declared length alone keeps nobody else waiting. Without `large`, the limit alone bounds it.
pub(crate) async fn read(
    status: u16,
    mut body: Incoming,
    bytes_max: usize,
    large: Option<&Semaphore>,
) -> Result<Bytes, SendFault> {
    let declared = body.size_hint().exact().unwrap_or(0);
    if declared > bytes_max as u64 {
        return Err(SendFault::TooLarge { status, size: declared });
    }
    let expected = usize::try_from(declared).unwrap_or(bytes_max);
    let mut bytes = Vec::with_capacity(expected.min(FIRST_CAPACITY));
    let mut permit = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failure::of_exchange(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        let size = bytes.len().saturating_add(data.len());
        if size > bytes_max {
            return Err(SendFault::TooLarge { status, size: size as u64 });
        }
        if let (Some(large), None) = (large, &permit)
            && size > LARGE_BODY_BYTES
        {
            let acquired = large.acquire().await;
            permit = Some(acquired.map_err(|_closed| broken("client is shutting down"))?);
        }
        make_room(&mut bytes, size, bytes_max);
        bytes.extend_from_slice(&data);
    }
    Ok(Bytes::from(bytes))
}

/// Grows by doubling, but never past the limit, so that a body of the limit's size takes no more than that.
fn make_room(bytes: &mut Vec<u8>, size: usize, bytes_max: usize) {
    if size > bytes.capacity() {
        let capacity = bytes.capacity().saturating_mul(2).min(bytes_max).max(size);
        bytes.reserve_exact(capacity - bytes.len());
    }
}

fn broken(why: &str) -> SendFault {
    SendFault::Broken(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_doubles_up_to_the_limit() {
        let mut bytes = vec![0; 60];
        make_room(&mut bytes, 61, 200);
        assert_eq!(bytes.capacity(), 120);
        make_room(&mut bytes, 150, 200);
        assert_eq!(bytes.capacity(), 200);
        make_room(&mut bytes, 199, 200);
        assert_eq!(bytes.capacity(), 200);
    }
}
