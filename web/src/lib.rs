//! mu-check as a module for a page: the command line, walks and the language server over plain
//! numbers and bytes.
//!
//! In: bytes that the page writes to [`room`], then a call. Out: bytes that the module hands to
//! `write` by their place in its memory: stream 1 is standard output, 2 standard error, 3 messages
//! of the language server. The page provides the functions of `host`. An instance of the module is
//! a process: it runs one command, or serves one walk or one language client. The page stops it by
//! the result of `stopped`, or by ending its worker. Written files go to `keep`; the rows of a
//! sweep are instances that it starts (`start`).
//!
//! Unsafe code: a page can call only C names, and the module must own these names.
#![warn(missing_docs)]

use mu_base::host::{self, Ended, Host};
use mu_cli::browser::{BrowserLanguageServer, SimulatorSession};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Milliseconds since some moment.
    safe fn now() -> f64;
    /// Writes `length` bytes to a stream, from an address in the module's memory; reads them before
    /// it returns.
    safe fn write(stream: u32, from: *const u8, length: usize);
    /// Returns a number other than 0 if the run should end.
    safe fn stopped() -> u32;
    /// Stores a file that the program wrote, in the form of [`file`]: its name, a zero, its bytes.
    safe fn keep(from: *const u8, length: usize);
    /// Runs another instance with all files of this one, to its end. In: the words with zeros
    /// between them. Out: its exit code, negative if it was lost; before that, its streams, by
    /// [`room`] and [`output`].
    safe fn start(from: *const u8, length: usize) -> i32;
}

/// Input of the page, and the running walk or language server.
#[derive(Default)]
struct State {
    input: Vec<u8>,
    walk: Option<SimulatorSession>,
    language: Option<BrowserLanguageServer>,
    /// Standard output and standard error of another instance.
    others: [Vec<u8>; 2],
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn put(stream: u32, bytes: &[u8]) {
    write(stream, bytes.as_ptr(), bytes.len());
}

fn keep_file(path: &Path, bytes: &[u8]) {
    let name = path.to_string_lossy();
    let whole = [name.as_bytes(), &[0], bytes].concat();
    keep(whole.as_ptr(), whole.len());
}

fn started(words: &[String]) -> Ended {
    let line = words.join("\0");
    let code = start(line.as_ptr(), line.len());
    let [out, err] = STATE.with_borrow_mut(|s| std::mem::take(&mut s.others));
    Ended { code: u8::try_from(code).ok(), out, err }
}

fn input() -> Vec<u8> {
    STATE.with_borrow_mut(|s| std::mem::take(&mut s.input))
}

fn text() -> String {
    String::from_utf8_lossy(&input()).into_owned()
}

/// Initialises the module; call first.
#[unsafe(no_mangle)]
pub extern "C" fn begin() {
    let now = || Duration::from_secs_f64(now().max(0.0) / 1000.0);
    host::install(Host {
        now,
        write: put,
        stopped: || stopped() != 0,
        keep: keep_file,
        start: started,
    });
    std::panic::set_hook(Box::new(|panic| put(2, format!("internal error: {panic}\n").as_bytes())));
}

/// Returns the address to which the page writes `length` bytes before the next call.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    STATE.with_borrow_mut(|s| {
        s.input.clear();
        s.input.resize(length, 0);
        s.input.as_mut_ptr()
    })
}

/// Adds a word to the command line, the program's name first.
#[unsafe(no_mangle)]
pub extern "C" fn word() {
    let mut words = host::arguments();
    words.push(text());
    host::begin(words);
}

/// Adds a file: its name, a zero, its bytes. Without a zero, the file is removed.
#[unsafe(no_mangle)]
pub extern "C" fn file() {
    let bytes = input();
    let end = bytes.iter().position(|b| *b == 0);
    let name =
        PathBuf::from(String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned());
    host::put(name, end.map(|end| bytes[end + 1..].to_vec()));
}

/// Receives the stream 1 or 2 of another instance, for which this one waits.
#[unsafe(no_mangle)]
pub extern "C" fn output(stream: u32) {
    let bytes = input();
    STATE.with_borrow_mut(|s| {
        if let Some(place) = s.others.get_mut(stream.wrapping_sub(1) as usize) {
            *place = bytes;
        }
    });
}

/// Runs the command of the words. Returns its exit code.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> i32 {
    i32::from(mu_cli::run_words(host::exact_arguments()))
}

/// Begins a walk by the words. Returns 0, with a line on stream 1; otherwise the error is on stream
/// 2.
#[unsafe(no_mangle)]
pub extern "C" fn walk() -> i32 {
    write_answer(SimulatorSession::begin().map(|(walk, hello)| {
        STATE.with_borrow_mut(|s| s.walk = Some(walk));
        hello
    }))
}

/// Sends a request to the walk; the answer is on stream 1.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> i32 {
    let request = text();
    let walk = STATE.with_borrow_mut(|s| s.walk.take());
    let Some(mut walk) = walk else { return write_answer(Err("the walk has not begun".into())) };
    let answer = walk.answer(&request);
    STATE.with_borrow_mut(|s| s.walk = Some(walk));
    write_answer(answer)
}

fn write_answer(answer: Result<String, String>) -> i32 {
    match answer {
        Ok(line) => {
            put(1, line.as_bytes());
            0
        }
        Err(why) => {
            put(2, why.as_bytes());
            2
        }
    }
}

/// Sends a message to the language server; its messages go to stream 3. `more` is not 0 if another
/// message waits.
#[unsafe(no_mangle)]
pub extern "C" fn language(more: u32) {
    let message = text();
    let server = STATE.with_borrow_mut(|s| s.language.take());
    let mut server = server.unwrap_or_else(|| BrowserLanguageServer::new(|message| put(3, message.as_bytes())));
    if let Err(error) = server.handle(&message, more != 0) {
        put(2, error.message.as_bytes());
    }
    STATE.with_borrow_mut(|s| s.language = Some(server));
}
