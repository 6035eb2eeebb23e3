//! Published vectors, made by others. They lie beside the repository, and are read where they are: a set that is not
//! there has no cases.

mod akamai_edgegrid;
mod aws_sigv4;
mod cookies;
mod forms;
mod hawk;
mod hmac;
mod http_digest;
mod jwt;
mod set;
mod standard_webhooks;
mod url;
mod url_policy;
