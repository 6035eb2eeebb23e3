//! Fans the daily update event out to every install.
