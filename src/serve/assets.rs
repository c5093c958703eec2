//! The page's files, which are part of the program.

use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::guard::error;

const SCRIPT: &str = "text/javascript; charset=utf-8";
const FILES: [(&str, &str, &str); 12] = [
    ("/", "text/html; charset=utf-8", include_str!("assets/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    ("/about.js", SCRIPT, include_str!("assets/about.js")),
    ("/api.js", SCRIPT, include_str!("assets/api.js")),
    ("/app.js", SCRIPT, include_str!("assets/app.js")),
    ("/diff.js", SCRIPT, include_str!("assets/diff.js")),
    ("/dom.js", SCRIPT, include_str!("assets/dom.js")),
    ("/new.js", SCRIPT, include_str!("assets/new.js")),
    ("/reply.js", SCRIPT, include_str!("assets/reply.js")),
    ("/session.js", SCRIPT, include_str!("assets/session.js")),
    ("/steps.js", SCRIPT, include_str!("assets/steps.js")),
    ("/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// The file at a path.
pub(super) async fn file(method: Method, uri: Uri) -> Response {
    match FILES.iter().find(|(path, ..)| *path == uri.path()) {
        None => error(StatusCode::NOT_FOUND, "not-found", "there is nothing at this address"),
        Some(_) if method != Method::GET && method != Method::HEAD => {
            error(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "this can only be read")
        }
        Some((_, kind, text)) => ([(CONTENT_TYPE, *kind)], *text).into_response(),
    }
}
