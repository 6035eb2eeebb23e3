//! Keyed hashes that a module asks for: `hmac` and `hmac_verify` (AL-403 to AL-420).
