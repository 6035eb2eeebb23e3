//! Turns usage reports into usage counters.
