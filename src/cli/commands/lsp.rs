//! Language server on standard input and output (`lsp`).
//!
//! Two threads connect the streams with the server. The length of a message is limited before
//! memory is reserved for it, because a client may announce any length.

use crate::pipeline::read_text;
use lsp_server::{Connection, Message};
use mu_base::{Diagnostic, Stage};
use mu_lsp::Files;
use std::io::{BufRead, Error, ErrorKind, Read, Result as IoResult};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Limit on the bytes of a message; a longer one ends the connection.
const MAX_MESSAGE: u64 = 256 << 20;
/// Limit on the bytes of the header of a message; a longer one ends the connection.
const MAX_HEADER: u64 = 16 << 10;

/// Files on disk.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> Option<String> {
        read_text(path).ok()
    }
    fn list(&self, folder: &Path) -> Vec<(PathBuf, bool)> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut found: Vec<(PathBuf, bool)> =
            entries.filter_map(|e| Some((e.path(), e.file_type().ok()?.is_dir()))).collect();
        found.sort();
        found
    }
}

/// Reads a message; `None` at the end of the input.
///
/// # Errors
/// The input cannot be read, is no message, or announces too many bytes.
fn read_message(input: &mut impl BufRead) -> IoResult<Option<Message>> {
    let invalid = |message: String| Error::new(ErrorKind::InvalidData, message);
    let mut header = Vec::new();
    loop {
        let begin = header.len();
        let left = MAX_HEADER.saturating_sub(begin as u64);
        input.take(left).read_until(b'\n', &mut header)?;
        let line = &header[begin..];
        if line.is_empty() && left > 0 || line == b"\r\n" {
            break;
        }
        if !line.ends_with(b"\n") {
            return Err(invalid(format!(
                "a header of more than {MAX_HEADER} bytes, or an incomplete one"
            )));
        }
        let text = String::from_utf8_lossy(line);
        let Some((name, value)) = text.split_once(':') else { continue };
        let digits = value.trim();
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if name.eq_ignore_ascii_case("Content-Length")
            && is_number
            && digits.parse().map_or(true, |length: u64| length > MAX_MESSAGE)
        {
            return Err(invalid(format!(
                "a message of {digits} bytes, expected at most {MAX_MESSAGE}"
            )));
        }
    }
    Message::read(&mut header.as_slice().chain(input))
}

/// Connects standard input and output with a server.
fn connect() -> (Connection, [JoinHandle<IoResult<()>>; 2]) {
    let (server, client) = Connection::memory();
    let Connection { sender, receiver } = client;
    let reader = std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        while let Some(message) = read_message(&mut input)? {
            let is_exit = matches!(&message, Message::Notification(n) if n.method == "exit");
            // The server may have ended before.
            if sender.send(message).is_err() || is_exit {
                break;
            }
        }
        Ok(())
    });
    let writer = std::thread::spawn(move || {
        let mut output = std::io::stdout().lock();
        receiver.into_iter().try_for_each(|message| message.write(&mut output))
    });
    (server, [reader, writer])
}

/// Serves one client.
pub(crate) fn run() -> Result<u8, Diagnostic> {
    let (connection, threads) = connect();
    let served = mu_lsp::serve(&connection, &Disk);
    // The writer thread ends with the connection.
    drop(connection);
    let ended = threads
        .into_iter()
        .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(ErrorKind::Other.into())))
        .map_err(|e| format!("the connection to the client broke: {e}"));
    let message = match (served, ended) {
        (Ok(true), _) => return Ok(0),
        (Ok(false), Ok(())) => "the client closed the connection without `exit`".to_string(),
        (Ok(false), Err(message)) | (Err(message), _) => message,
    };
    Err(Diagnostic::new(Stage::File, message)
        .note("this command uses the Language Server Protocol on standard input and output; see docs/editors.md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_message_is_limited() {
        let body = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        let of = |header: &str| read_message(&mut format!("{header}\r\n\r\n{body}").as_bytes());
        let found = of(&format!("Content-Length: {}", body.len())).unwrap();
        assert!(matches!(found, Some(Message::Notification(n)) if n.method == "exit"));
        for length in ["18446744073709551615", "99999999999999999999999", "9000000000"] {
            let refused = of(&format!("Content-Length: {length}")).unwrap_err().to_string();
            assert!(refused.contains(length), "{refused}");
        }
        assert!(of(&format!("X: {}", "a".repeat(1 << 20))).is_err());
        assert!(of("Content-Length: -1").is_err() && of("Content-Length: x").is_err());
        // Less than announced, and nothing.
        assert!(of("Content-Length: 100").is_err());
        assert!(read_message(&mut &b""[..]).unwrap().is_none());
    }
}
