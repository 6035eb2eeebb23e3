//! Delivers queued calls, events and error reports to extensions.
