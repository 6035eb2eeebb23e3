//! Bodies of `multipart/form-data` (RFC 7578).
