//! Delayed continuations and slow retries come back here.
