//! mu-check as a module for a page: the command line, walks and the language server over plain
//! numbers and bytes.
//!
//! In: bytes that the page writes to [`room`], then a call. Out: bytes that the module hands to
//! `write` by their place in its memory: stream 1 is standard output, 2 standard error, 3 messages
//! of the language server. The page gives the functions of `host`. An instance of the module is a
//! process: it runs one command, or serves one walk or one language client; a page that wants to
//! stop it says so when it is asked (`stopped`), or ends its worker. Files that it writes go to
//! `keep`; the rows of a sweep are instances that it asks for (`start`).
//!
//! This is the only place with unsafe code: a page knows no other names and calls than those of C.
//! What is unsafe is that these names are the module's own.
#![warn(missing_docs)]

use mu_base::host::{self, Ended, Host};
use mu_cli::browser::{Language, Walk};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Milliseconds since some moment.
    safe fn now() -> f64;
    /// Takes so many bytes of a stream, from a place in the module's memory on; it reads them
    /// before it returns.
    safe fn write(stream: u32, from: *const u8, length: usize);
    /// Whether the run is asked to end: not 0 if it is.
    safe fn stopped() -> u32;
    /// Takes a file that the program wrote, as [`file`] gives one: its name, a zero, its bytes.
    safe fn keep(from: *const u8, length: usize);
    /// Runs an instance of its own with all files of this one, to its end. In: the words with zeros
    /// between them. Out: its exit code, negative if it was lost; before that, what it wrote,
    /// by [`room`] and [`output`].
    safe fn start(from: *const u8, length: usize) -> i32;
}

/// What the page has to say, and whom it talks to.
#[derive(Default)]
struct State {
    input: Vec<u8>,
    walk: Option<Walk>,
    language: Option<Language>,
    /// What another instance wrote: its standard output and its standard error.
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

/// To be called first.
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

/// Where the page is to write so many bytes before the next call.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    STATE.with_borrow_mut(|s| {
        s.input.clear();
        s.input.resize(length, 0);
        s.input.as_mut_ptr()
    })
}

/// A word of the command line, the program's name first.
#[unsafe(no_mangle)]
pub extern "C" fn word() {
    let mut words = host::arguments();
    words.push(text());
    host::begin(words);
}

/// A file: its name, a zero, its bytes. Nothing after the name: it is gone.
#[unsafe(no_mangle)]
pub extern "C" fn file() {
    let bytes = input();
    let end = bytes.iter().position(|b| *b == 0);
    let name =
        PathBuf::from(String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned());
    host::put(name, end.map(|end| bytes[end + 1..].to_vec()));
}

/// What another instance, which this one waits for, wrote to its stream 1 or 2.
#[unsafe(no_mangle)]
pub extern "C" fn output(stream: u32) {
    let bytes = input();
    STATE.with_borrow_mut(|s| {
        if let Some(place) = s.others.get_mut(stream.wrapping_sub(1) as usize) {
            *place = bytes;
        }
    });
}

/// Runs the command of the words: its exit code.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> i32 {
    i32::from(mu_cli::run_words(host::arguments()))
}

/// Begins a walk by the words: 0, and a line on stream 1; else what is wrong on stream 2.
#[unsafe(no_mangle)]
pub extern "C" fn walk() -> i32 {
    told(Walk::begin().map(|(walk, hello)| {
        STATE.with_borrow_mut(|s| s.walk = Some(walk));
        hello
    }))
}

/// Asks the walk: a request in, an answer on stream 1.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> i32 {
    let request = text();
    let walk = STATE.with_borrow_mut(|s| s.walk.take());
    let Some(mut walk) = walk else { return told(Err("the walk has not begun".into())) };
    let answer = walk.answer(&request);
    STATE.with_borrow_mut(|s| s.walk = Some(walk));
    told(answer)
}

fn told(answer: Result<String, String>) -> i32 {
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

/// Hands a message to the language server, whose own go to stream 3. `more`: not 0 if another one
/// waits.
#[unsafe(no_mangle)]
pub extern "C" fn language(more: u32) {
    let message = text();
    let server = STATE.with_borrow_mut(|s| s.language.take());
    let mut server = server.unwrap_or_else(|| Language::new(|message| put(3, message.as_bytes())));
    if let Err(error) = server.take(&message, more != 0) {
        put(2, error.message.as_bytes());
    }
    STATE.with_borrow_mut(|s| s.language = Some(server));
}
