//! The encoding of `application/x-www-form-urlencoded` bodies (WHATWG URL standard).
