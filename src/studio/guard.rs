//! Who may ask: a request of the page itself, and of nobody else.
//!
//! A page of another site that the same browser shows can send requests to this server, by its
//! number or by a name that it lets lead here. Each request must therefore know the token of the
//! address (256 random bits), call the server by a name of its own, and come from no other origin;
//! one that changes something must say its origin, which browsers always do.

use crate::http::{Refusal, Request, refusal};
use std::fmt::Write as _;

/// See the module's head.
pub(crate) struct Guard {
    token: String,
    port: u16,
}

impl Guard {
    /// A guard with a new token.
    pub(crate) fn new(port: u16) -> std::io::Result<Self> {
        Ok(Self { token: random()?, port })
    }

    /// The address of the page.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// The path behind the token, if the request may be answered.
    pub(crate) fn admit<'r>(&self, request: &'r Request) -> Result<&'r str, Refusal> {
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let host = request.header("host").unwrap_or_default();
        if !hosts.iter().any(|h| h == host) {
            return refusal(403, format!("this server is {}, not `{host}`", hosts[0]));
        }
        let own = format!("http://{host}");
        match request.header("origin") {
            Some(origin) if origin != own => {
                return refusal(403, format!("`{origin}` is another origin"));
            }
            None if request.method != "GET" => {
                return refusal(403, "the request does not say its origin");
            }
            _ => {}
        }
        let Some(rest) = request
            .path
            .strip_prefix('/')
            .and_then(|p| p.split_once('/'))
            .filter(|(t, _)| same(t, &self.token))
        else {
            return refusal(404, "the address has not the token that `mu-check studio` printed");
        };
        // The page itself may be opened from anywhere, since nobody may embed it; what it asks for
        // may not.
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

/// Whether two tokens are the same, in a time that does not tell how much of them is.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// 256 random bits, as hexadecimal digits.
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
                && same(&a, &a)
                && !same(&a, &b)
                && !same("", &a)
                && !same(&a[..63], &a)
        );
    }
}
