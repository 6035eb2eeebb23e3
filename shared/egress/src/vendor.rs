//! The client that vendors are called through: connections kept for one tenant (AL-178 to AL-222).
