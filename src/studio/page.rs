//! Frame of the page, and its bundle from `studio/` (`npm run build` there), committed so that a
//! build of this crate needs no node.
//!
//! The content security policy allows the script and the style of this server, styles with the
//! frame's nonce (from the editor), and connections to this server; no pictures from elsewhere, no
//! fonts, no frames, no other scripts.

use crate::http::HttpResponse;

/// The bundle of the script.
pub const SCRIPT: &str = include_str!("page/studio.js");
/// The style.
pub const STYLE: &str = include_str!("page/studio.css");
/// The hash of the sources of both.
pub const HASHES: &str = include_str!("page/hashes.txt");

/// Returns the frame of the page.
pub(crate) fn frame(nonce: &str) -> HttpResponse {
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>mu-check studio</title>\n<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"studio.css\">\n</head>\n\
         <body data-nonce=\"{nonce}\" data-version=\"{}\">\n<noscript><p>This page needs JavaScript.</p></noscript>\n<div id=\"app\"></div>\n\
         <script src=\"studio.js\"></script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    HttpResponse { policy: Some(policy), ..HttpResponse::text("text/html", text) }
}
