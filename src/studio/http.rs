//! HTTP/1.1 over one connection: one request, one answer, then the connection is closed.
//!
//! The head is parsed by `httparse`. Rejected: heads and bodies beyond their limits, bodies without
//! a length, duplicate host or length headers, and requests that do not arrive in time.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Limit on the bytes of a head.
const MOST_HEAD: usize = 16 << 10;
/// Limit on the bytes of a body.
pub(crate) const MOST_BODY: usize = 6 << 20;
/// Limit on the number of headers.
const MOST_HEADERS: usize = 64;
/// Time limit for the arrival of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path, up to a question mark.
    pub(crate) path: String,
    /// The text after the question mark.
    query: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// An error answer: status and message.
#[derive(Debug, PartialEq)]
pub(crate) struct HttpError(pub(crate) u16, pub(crate) String);

/// Returns an error answer.
pub(crate) fn refusal<T>(status: u16, why: impl Into<String>) -> Result<T, HttpError> {
    Err(HttpError(status, why.into()))
}

impl Request {
    /// Returns a header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Returns a value of the query, decoded.
    pub(crate) fn query_value(&self, name: &str) -> Option<String> {
        let (_, value) = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(n, _)| *n == name)?;
        decode(value)
    }

    /// Parses the body as JSON.
    pub(crate) fn json(&self) -> Result<Value, HttpError> {
        if self
            .header("content-type")
            .is_none_or(|t| t.split(';').next().map(str::trim) != Some("application/json"))
        {
            return refusal(415, "expected a body of the type application/json");
        }
        serde_json::from_slice(&self.body)
            .map_err(|e| HttpError(400, format!("the body is not JSON: {e}")))
    }
}

/// Decodes `%20` and so on; `None` if the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = (*byte == b'%')
            .then(|| text.get(at + 1..at + 3).and_then(|d| u8::from_str_radix(d, 16).ok()))
            .flatten();
        out.push(code.unwrap_or(if *byte == b'+' { b' ' } else { *byte }));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).ok()
}

/// Reads a request. `None`: the client disconnected, or sent nothing in time.
pub(crate) fn read(stream: &mut TcpStream) -> Result<Option<Request>, HttpError> {
    let end = Instant::now() + PATIENCE;
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        if let Some((request, head, length)) = parse(&bytes)? {
            while bytes.len() < head + length {
                if !more(stream, &mut bytes, end) {
                    return Ok(None);
                }
            }
            let body = bytes[head..head + length].to_vec();
            return Ok(Some(Request { body, ..request }));
        }
        if bytes.len() > MOST_HEAD {
            return refusal(431, "the head of the request is too long");
        }
        if !more(stream, &mut bytes, end) {
            return Ok(None);
        }
    }
}

fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>, end: Instant) -> bool {
    let left = end.saturating_duration_since(Instant::now());
    let mut buffer = [0; 8 << 10];
    if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
        return false;
    }
    match stream.read(&mut buffer) {
        Ok(n) if n > 0 => {
            bytes.extend(&buffer[..n]);
            true
        }
        _ => false,
    }
}

/// Parses a head. Returns the request without its body, the length of the head and that of the
/// body; `None` if the head is incomplete.
fn parse(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(e) => return refusal(400, format!("not a request: {e}")),
    };
    if head > MOST_HEAD {
        return refusal(431, "the head of the request is too long");
    }
    let text = |h: &httparse::Header| {
        let value = String::from_utf8(h.value.to_vec())
            .map_err(|_| HttpError(400, format!("the header `{}` is not UTF-8", h.name)))?;
        Ok((h.name.to_ascii_lowercase(), value.trim().to_string()))
    };
    let headers = parsed.headers.iter().map(text).collect::<Result<Vec<_>, HttpError>>()?;
    for name in ["host", "origin", "content-length"] {
        if headers.iter().filter(|(n, _)| n == name).count() > 1 {
            return refusal(400, format!("the header `{name}` is given twice"));
        }
    }
    let (path, query) = parsed
        .path
        .unwrap_or_default()
        .split_once('?')
        .unwrap_or((parsed.path.unwrap_or_default(), ""));
    let (path, query, method) =
        (path.to_string(), query.to_string(), parsed.method.unwrap_or_default().to_string());
    let request = Request { method, path, query, headers, body: Vec::new() };
    if request.header("transfer-encoding").is_some() {
        return refusal(501, "expected a body with its length, not in chunks");
    }
    let length = match request.header("content-length").map(str::parse::<usize>) {
        None => 0,
        Some(Ok(n)) if n <= MOST_BODY => n,
        Some(Ok(_)) => return refusal(413, format!("the body has more than {MOST_BODY} bytes")),
        Some(Err(_)) => return refusal(400, "the length of the body is not a number"),
    };
    Ok(Some((request, head, length)))
}

/// An answer.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    /// The content security policy of a page; other answers allow nothing.
    pub(crate) policy: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    /// Creates a JSON answer.
    pub(crate) fn json(value: &Value) -> Self {
        Self {
            status: 200,
            kind: "application/json",
            policy: None,
            body: value.to_string().into_bytes(),
        }
    }
    /// Creates a text answer.
    pub(crate) fn text(kind: &'static str, text: impl Into<String>) -> Self {
        Self { status: 200, kind, policy: None, body: text.into().into_bytes() }
    }
}

impl From<HttpError> for HttpResponse {
    fn from(HttpError(status, why): HttpError) -> Self {
        Self { status, ..Self::json(&json!({ "error": why })) }
    }
}

/// Returns the head of every answer: no caching, no embedding, no referrer.
pub(crate) fn head(status: u16, kind: &str, policy: Option<&str>) -> String {
    let word = if status < 300 { "OK" } else { "Refused" };
    let policy = policy.unwrap_or("default-src 'none'; frame-ancestors 'none'");
    format!(
        "HTTP/1.1 {status} {word}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Security-Policy: {policy}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n"
    )
}

/// Writes an answer and closes the connection. Errors of a closed connection are ignored.
pub(crate) fn write(mut stream: TcpStream, answer: &HttpResponse) {
    let head = head(answer.status, answer.kind, answer.policy.as_deref());
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let head = format!("{head}Content-Length: {}\r\n\r\n", answer.body.len());
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&answer.body))
        .and_then(|()| stream.flush());
    // Unread data would reset the connection, and the answer would be lost.
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let mut rest = [0; 8 << 10];
    let mut left = MOST_BODY;
    while let Ok(n) = stream.read(&mut rest) {
        if n == 0 || left < n {
            break;
        }
        left -= n;
    }
}

/// Rejects a client because there are too many connections.
pub(crate) fn refuse(stream: TcpStream) {
    write(stream, &HttpError(503, "too many connections".into()).into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> u16 {
        parse(text.as_bytes()).map(|_| 0).unwrap_or_else(|r| r.0)
    }

    #[test]
    fn requests() {
        let text = "POST /t/api/run?a=1&path=b%20c%C3%A9 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{}x";
        let (request, head, length) = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(
            (request.method.as_str(), request.path.as_str(), &text[head..], length),
            ("POST", "/t/api/run", "{}x", 3)
        );
        assert_eq!(
            (
                request.query_value("path").as_deref(),
                request.query_value("b"),
                request.header("host")
            ),
            (Some("b cé"), None, Some("x"))
        );
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHo"), Ok(None));
        assert_eq!(decode("%ff"), None);
    }

    #[test]
    fn what_is_refused() {
        assert_eq!(status("GET /\r\n\r\nnonsense \u{1}"), 400);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
        assert_eq!(
            status("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            400
        );
        assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
        assert_eq!(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
        assert_eq!(
            status(&format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", MOST_BODY + 1)),
            413
        );
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(MOST_HEAD))), 431);
        assert_eq!(
            status(&format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MOST_HEADERS + 1))),
            400
        );
    }
}
