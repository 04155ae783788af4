//! Access control: only requests of the page itself are answered.
//!
//! A page of another site in the same browser can send requests to this server, by its address or
//! by a name that resolves to it. Therefore each request must contain the token of the address (256
//! random bits), use one of the server's own names, and have no other origin. A request that
//! changes something must state its origin, as browsers always do.

use crate::http::{HttpError, Request, refusal};
use std::fmt::Write as _;

/// The access guard; see the module documentation.
pub(crate) struct Guard {
    token: String,
    port: u16,
}

impl Guard {
    /// Creates a guard with a new token.
    pub(crate) fn new(port: u16) -> std::io::Result<Self> {
        Ok(Self { token: random()?, port })
    }

    /// Returns the address of the page.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Returns the path after the token, if the request is allowed.
    pub(crate) fn admit<'r>(&self, request: &'r Request) -> Result<&'r str, HttpError> {
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let host = request.header("host").unwrap_or_default();
        if !hosts.iter().any(|h| h == host) {
            return refusal(403, format!("the name of this server is {}, not `{host}`", hosts[0]));
        }
        let own = format!("http://{host}");
        match request.header("origin") {
            Some(origin) if origin != own => {
                return refusal(
                    403,
                    format!("requests from the origin `{origin}` are not allowed"),
                );
            }
            None if request.method != "GET" => {
                return refusal(403, "the request does not state its origin");
            }
            _ => {}
        }
        let Some(rest) = request
            .path
            .strip_prefix('/')
            .and_then(|p| p.split_once('/'))
            .filter(|(t, _)| is_equal_token(t, &self.token))
        else {
            return refusal(
                404,
                "the address does not contain the token that `mu-check studio` printed",
            );
        };
        // The page itself may be opened from anywhere, because it cannot be embedded; its further
        // requests may not come from elsewhere.
        let site = request.header("sec-fetch-site").unwrap_or("same-origin");
        if !rest.1.is_empty() && !["same-origin", "none"].contains(&site) {
            return refusal(403, "the request comes from another site");
        }
        if !["GET", "POST"].contains(&request.method.as_str()) {
            return refusal(405, format!("there is no method `{}`", request.method));
        }
        Ok(rest.1)
    }
}

/// Compares two tokens in time that does not depend on their common prefix.
fn is_equal_token(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Returns 256 random bits, as hexadecimal digits.
pub(crate) fn random() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| std::io::Error::other(format!("the system gives no random numbers: {e}")))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        let (a, b) = (random().unwrap(), random().unwrap());
        assert!(
            a.len() == 64
                && a != b
                && is_equal_token(&a, &a)
                && !is_equal_token(&a, &b)
                && !is_equal_token("", &a)
                && !is_equal_token(&a[..63], &a)
        );
    }
}
