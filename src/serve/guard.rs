//! Checks of every request, and headers of every response.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Site, rest};

/// Only the page's own files are loaded, inline scripts and styles are forbidden, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS: [(HeaderName, &str); 6] = [
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// Refuses requests that do not come from the page: other host names (DNS rebinding), other origins, and requests without
/// the token.
pub(super) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let refused = refusal(&site, request.uri(), request.headers());
    let is_rest = request.uri().path().starts_with("/v1");
    let mut response = match refused {
        Some((status, code, message)) if is_rest => {
            rest::refused(request.headers(), status, code, message)
        }
        Some((status, code, message)) => error(status, code, message),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refusal(
    site: &Site,
    uri: &Uri,
    headers: &HeaderMap,
) -> Option<(StatusCode, &'static str, &'static str)> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let (host, path) = (text(HOST).unwrap_or_default(), uri.path());
    let is_for_programs = path.starts_with("/v1") || path.starts_with("/health");
    let is_right = match &site.host {
        Some(name) if !is_for_programs => host == name,
        _ => is_address(host, site.address.port()),
    };
    let is_alone = headers.get_all(HOST).iter().count() == 1
        && uri.authority().is_none_or(|authority| authority == host);
    if !is_right || !is_alone {
        let message = "open the page at the address that `deaddrop serve` printed last; other names are refused, because other sites can use them";
        return Some((StatusCode::MISDIRECTED_REQUEST, "wrong-host", message));
    }
    if text(ORIGIN).is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
        return Some((
            StatusCode::FORBIDDEN,
            "other-origin",
            "only the page itself may send requests",
        ));
    }
    if path.starts_with("/api/") {
        let given = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        // Digests are compared in constant time.
        let digest = |token: &str| blake3::hash(token.as_bytes());
        if given.is_none_or(|given| digest(given) != digest(&site.token)) {
            let message = "the token is missing or from another start: open the address that `deaddrop serve` printed last";
            return Some((StatusCode::UNAUTHORIZED, "unauthorized", message));
        }
    }
    None
}

/// Whether a Host header is an IP address or `localhost` with this port. Other names can be made to resolve to this
/// machine.
fn is_address(host: &str, port: u16) -> bool {
    let (name, named) = host
        .rsplit_once(':')
        .filter(|(name, _)| !name.ends_with(':'))
        .map_or((host, Some(80)), |(name, port)| (name, port.parse().ok()));
    let name = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
    named == Some(port) && (name == "localhost" || name.parse::<IpAddr>().is_ok())
}

/// An error in the form of the command line.
pub(super) fn error(status: StatusCode, code: &str, message: &str) -> Response {
    answer(status, &json!({ "error": { "code": code, "message": message } }))
}

/// An answer in JSON.
pub(super) fn answer(status: StatusCode, value: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
