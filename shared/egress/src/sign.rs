//! Signatures over a final request (AL-385 to AL-402).
