//! The hosts that an install approved, and the URLs that they allow (AL-142 to AL-151, AL-197 to AL-207).
