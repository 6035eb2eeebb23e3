//! Signing in, and who one is then.

use annex_core::auth::{self, CallerKind, SignIn, permission};
use annex_core::model::Org;
use annex_core::orgs::{self, OrgPage};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::SmallForm;
use crate::routes::{Routes, routes};
use crate::{ApiResult, App, Authed, Form, json};

/// Organizations of one page.
const PAGE_ORGS_MAX: usize = 1_000;

/// Organizations of one page, unless told.
const PAGE_ORGS: usize = 50;

pub(crate) fn routes() -> Routes {
    routes!(jwt, who, user_orgs)
}

/// A sign-in.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the fields that the handler reads")]
struct SignInForm {
    /// The root key, or an API key of an organization.
    secret: String,
    /// The organization. `-` or absent: none.
    oid: Option<String>,
    /// Who acts, for the root key only.
    uid: Option<String>,
    /// Until when, in seconds since the epoch, at most a day ahead.
    expiry: Option<i64>,
}

/// A token.
#[derive(Serialize, ToSchema)]
struct Token {
    /// To be sent as `Authorization: Bearer <jwt>`.
    jwt: String,
}

/// Sign in.
#[utoipa::path(post, path = "/jwt", tag = "tokens", security(()),
    request_body(content = SignInForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "A token", body = Token)))]
async fn jwt(State(app): State<App>, SmallForm(mut fields): SmallForm) -> ApiResult {
    let with = SignIn {
        secret: fields.require("secret")?.to_owned(),
        oid: fields.take("oid")?,
        uid: fields.take("uid")?,
        expiry: fields.take("expiry")?,
    };
    Ok(json(&Token { jwt: auth::sign_in(&app.ports, &with).await? }))
}

/// Who a token stands for.
#[derive(Serialize, ToSchema)]
struct Who {
    /// A stable name.
    ident: String,
    /// The organization of the token, if it is for one.
    orgs: Vec<String>,
    /// What it may do there: every permission by its name.
    perms: Vec<String>,
}

/// Who the caller is, and what it may do.
#[utoipa::path(get, path = "/v1/who", tag = "tokens",
    responses((status = 200, description = "The caller", body = Who)))]
async fn who(Authed(caller): Authed) -> ApiResult {
    // Clients look for single permissions and know no star.
    let perms = if caller.holds("*") {
        permission::ALL.iter().map(|&word| word.to_owned()).collect()
    } else {
        caller.permissions
    };
    let orgs = caller.oid.iter().map(ToString::to_string).collect();
    Ok(json(&Who { ident: caller.ident, orgs, perms }))
}

/// A page of organizations.
#[derive(Serialize, ToSchema)]
struct Orgs {
    orgs: Vec<OrgEntry>,
    /// How many there are over all pages.
    total: usize,
    offset: usize,
    limit: usize,
}

/// An organization in a list.
#[derive(Serialize, ToSchema)]
struct OrgEntry {
    oid: String,
    name: String,
    description: String,
}

/// The organizations that the caller can reach: every one for the operator, its own for everybody else.
#[utoipa::path(get, path = "/v1/user/orgs", tag = "tokens",
    params(
        ("offset" = Option<usize>, Query, description = "Organizations to skip"),
        ("limit" = Option<usize>, Query, description = "Organizations of the page"),
        ("filter" = Option<String>, Query, description = "Part of a name, in any case")),
    responses((status = 200, description = "A page of them", body = Orgs)))]
async fn user_orgs(
    State(app): State<App>,
    Authed(caller): Authed,
    Form(fields): Form,
) -> ApiResult {
    let offset = fields.number("offset", usize::MAX)?.unwrap_or(0);
    let limit = fields.number("limit", PAGE_ORGS_MAX)?.unwrap_or(PAGE_ORGS);
    let filter = fields.get("filter")?.unwrap_or("");
    let page = match (&caller.kind, caller.oid) {
        (CallerKind::Operator, _) => orgs::list(&app.ports, offset, limit, filter).await?,
        (_, Some(oid)) => {
            let org = orgs::get(&app.ports, oid).await?;
            let shown = orgs::matches(&org, &filter.to_lowercase()) && offset == 0 && 0 < limit;
            OrgPage { orgs: shown.then_some(org).into_iter().collect(), total: usize::from(shown) }
        }
        (_, None) => OrgPage::default(),
    };
    let entry = |org: Org| OrgEntry {
        oid: org.oid.to_string(),
        name: org.name,
        description: org.description,
    };
    let orgs = page.orgs.into_iter().map(entry).collect();
    Ok(json(&Orgs { orgs, total: page.total, offset, limit }))
}
