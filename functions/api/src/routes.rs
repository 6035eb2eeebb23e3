//! How a handler becomes a route.
//!
//! Its `#[utoipa::path]` says under which method and path it is called, and that is all a program asks it: the description
//! of the API is put together by a test alone ([`super::document`]), since the code for it is large.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};
use utoipa::__dev::{SchemaReferences, Tags};
use utoipa::Path;
use utoipa::openapi::HttpMethod;

use crate::App;

/// The [`Routes`] of handlers that have a `#[utoipa::path]`.
macro_rules! routes {
    ($($handler:ident),+ $(,)?) => {
        pastey::paste! {
            $crate::routes::Routes::default()$(.add::<[<__path_ $handler>], _, _>($handler))+
        }
    };
}
pub(crate) use routes;

/// Routes, not yet bound to an [`App`].
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) router: Router<App>,
    #[cfg(test)]
    pub(crate) described: crate::document::generated::Described,
}

impl Routes {
    /// Adds a handler, where its path `P` says.
    pub(crate) fn add<P, H, T>(self, handler: H) -> Self
    where
        P: Path + Tags<'static> + SchemaReferences,
        H: Handler<T, App>,
        T: 'static,
    {
        let on = |router: MethodRouter<App>, method| router.on(filter(&method), handler.clone());
        let methods = P::methods().into_iter().fold(MethodRouter::new(), on);
        Self {
            router: self.router.route(&P::path(), methods),
            #[cfg(test)]
            described: self.described.add::<P>(),
        }
    }

    /// These routes and others.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            router: self.router.merge(other.router),
            #[cfg(test)]
            described: self.described.merge(other.described),
        }
    }
}

fn filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Trace => MethodFilter::TRACE,
    }
}
