//! Authenticated connection between two processes: frames in order, that no third party can write.
//!
//! A frame is its length, a code (HMAC-SHA-256, truncated to 16 bytes) over its number, its length
//! and its payload, and the payload. Each direction has its own key, derived from the secret and
//! both sides' random numbers. So foreign, damaged, replayed, omitted and truncated frames are
//! detected before any byte is used. An empty frame is sent each second, so that a hanging peer is
//! detected too.
//!
//! In: a socket with its keys ([`super::handshake`]). Out: a stream for timely, which would panic
//! on errors. Here a failure is recorded in [`Health`], reading stops, and writing has no effect
//! any more. Cost: 20 bytes and two rounds of SHA-256 a frame, and the hash of the payload.

use hmac::{Hmac, KeyInit, Mac};
use mu_base::narrow;
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use timely::communication::allocator::zero_copy::stream::Stream;

/// Time of silence after which a peer is lost.
pub const SILENCE: Duration = Duration::from_secs(10);
/// Time between heartbeats.
const BEAT: Duration = Duration::from_secs(1);
/// Maximum length of a payload.
const MAX_PAYLOAD: usize = 1 << 18;
/// Bytes of a code.
const CODE: usize = 16;
/// Flags in the two highest bits of a length: the last frame; the text of a failure.
const CLOSE: u32 = 1 << 31;
const FAILED: u32 = 1 << 30;

/// A keyed code.
pub(super) type Code = Hmac<Sha256>;

/// Creates a code with this key.
pub(super) fn new_code(key: &[u8]) -> Code {
    // HMAC accepts keys of any length.
    Code::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of every length"))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Common state of all connections of a process.
#[derive(Debug, Default)]
pub struct Health {
    lost: Mutex<Option<String>>,
    finished: AtomicBool,
}

impl Health {
    /// Returns the first lost process, and the cause; `None` if none is lost.
    pub fn lost_process(&self) -> Option<String> {
        lock(&self.lost).clone()
    }
    fn lose(&self, text: String) {
        lock(&self.lost).get_or_insert(text);
    }
    /// Ends the detection of lost processes.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }
}

struct FrameReader {
    socket: TcpStream,
    code: Code,
    number: u64,
    payload: Vec<u8>,
    at: usize,
    closed: bool,
}

struct FrameWriter {
    socket: TcpStream,
    code: Code,
    number: u64,
    last: Instant,
    broken: bool,
}

struct Ends {
    peer: usize,
    health: Arc<Health>,
    reader: Mutex<FrameReader>,
    writer: Mutex<FrameWriter>,
}

/// A connection; see the module header.
#[derive(Clone)]
pub struct Wire(Arc<Ends>);

impl Wire {
    /// Creates a connection to a process. Its frames have codes with the first key, ours with the
    /// second.
    pub(super) fn new(
        socket: TcpStream,
        peer: usize,
        health: &Arc<Health>,
        theirs: &[u8],
        ours: &[u8],
    ) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        let reader = FrameReader {
            socket: socket.try_clone()?,
            code: new_code(theirs),
            number: 0,
            payload: Vec::new(),
            at: 0,
            closed: false,
        };
        let writer = FrameWriter {
            socket,
            code: new_code(ours),
            number: 0,
            last: Instant::now(),
            broken: false,
        };
        Ok(Self(Arc::new(Ends {
            peer,
            health: health.clone(),
            reader: Mutex::new(reader),
            writer: Mutex::new(writer),
        })))
    }

    /// Sends the reason of a failure to the peer.
    pub fn fail(&self, text: &str) {
        let bytes = &text.as_bytes()[..text.len().min(1000)];
        // Skip a writer that waits for a peer that does not read.
        if let Ok(mut writer) = self.0.writer.try_lock() {
            let _ = writer.socket.set_write_timeout(Some(BEAT));
            let _ = writer.frame(FAILED, bytes);
        }
    }

    /// Sends a heartbeat if no frame was sent recently.
    fn beat(&self) {
        if let Ok(mut writer) = self.0.writer.try_lock()
            && writer.last.elapsed() >= BEAT / 2
            && !writer.broken
            && let Err(e) = writer.frame(0, &[])
        {
            writer.broken = true;
            self.lose(&e);
        }
    }

    fn lose(&self, error: &io::Error) {
        let how = match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted => {
                "it ended, or its connection was closed".to_string()
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("no sign of life for {} s", SILENCE.as_secs())
            }
            _ => error.to_string(),
        };
        self.0.health.lose(format!("process {}: {how}", self.0.peer));
    }
}

/// Sends heartbeats on all connections until the search is finished.
pub(super) fn beat(wires: Vec<Wire>, health: Arc<Health>) {
    let life = move || {
        while !health.finished.load(Ordering::Relaxed) {
            wires.iter().for_each(Wire::beat);
            std::thread::sleep(BEAT / 4);
        }
    };
    // Without this thread the others consider this process lost, and report this.
    let _ = std::thread::Builder::new().name("heartbeats".into()).spawn(life);
}

impl FrameWriter {
    fn frame(&mut self, flags: u32, payload: &[u8]) -> io::Result<()> {
        let length = (narrow::index(payload.len()) | flags).to_le_bytes();
        let mut code = self.code.clone();
        code.update(&self.number.to_le_bytes());
        code.update(&length);
        code.update(payload);
        let mut head = [0; 4 + CODE];
        head[..4].copy_from_slice(&length);
        head[4..].copy_from_slice(&code.finalize().into_bytes()[..CODE]);
        self.number += 1;
        self.last = Instant::now();
        // A short frame is one packet.
        if payload.len() <= 1024 {
            let all: Vec<u8> = head.iter().chain(payload).copied().collect();
            return self.socket.write_all(&all);
        }
        self.socket.write_all(&head)?;
        self.socket.write_all(payload)
    }
}

impl FrameReader {
    /// Reads the next frame into `payload`; returns its flags.
    fn frame(&mut self) -> io::Result<u32> {
        let mut head = [0; 4 + CODE];
        self.socket.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let flags = length & (CLOSE | FAILED);
        let bytes = (length & !(CLOSE | FAILED)) as usize;
        let foreign = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "its connection carries bytes that are not its own",
            )
        };
        if bytes > MAX_PAYLOAD {
            return Err(foreign());
        }
        self.payload.resize(bytes, 0);
        self.at = 0;
        self.socket.read_exact(&mut self.payload)?;
        let mut code = self.code.clone();
        code.update(&self.number.to_le_bytes());
        code.update(&head[..4]);
        code.update(&self.payload);
        self.number += 1;
        match code.verify_truncated_left(&head[4..]) {
            Ok(()) => Ok(flags),
            Err(_) => {
                self.payload.clear();
                Err(foreign())
            }
        }
    }
}

impl Read for Wire {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut reader = lock(&self.0.reader);
        while reader.at == reader.payload.len() {
            if reader.closed {
                return Ok(0);
            }
            match reader.frame() {
                Ok(flags) if flags & FAILED != 0 => {
                    let text = String::from_utf8_lossy(&reader.payload).into_owned();
                    self.0.health.lose(text);
                    park_forever();
                }
                Ok(flags) => reader.closed |= flags & CLOSE != 0,
                Err(e) => {
                    self.lose(&e);
                    park_forever();
                }
            }
        }
        let count = out.len().min(reader.payload.len() - reader.at);
        out[..count].copy_from_slice(&reader.payload[reader.at..reader.at + count]);
        reader.at += count;
        Ok(count)
    }
}

/// Parks the thread after a failure: the driver reads the failure from [`Health`], and the process
/// ends.
fn park_forever() -> ! {
    loop {
        std::thread::park();
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(MAX_PAYLOAD);
        let mut writer = lock(&self.0.writer);
        if count > 0
            && !writer.broken
            && let Err(e) = writer.frame(0, &bytes[..count])
        {
            writer.broken = true;
            self.lose(&e);
        }
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Wire {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }
    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        lock(&self.0.writer).socket.set_nonblocking(nonblocking)
    }
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let mut writer = lock(&self.0.writer);
        if how != Shutdown::Read && !writer.broken {
            // The peer may have ended already; then it needs nothing.
            let _ = writer.frame(CLOSE, &[]);
            let _ = writer.socket.shutdown(Shutdown::Write);
            writer.broken = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;
    use std::net::TcpListener;

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    /// Returns the payload that a reader accepts, and the loss that it records.
    fn read(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
        let (mut raw, socket) = sockets();
        let health = Arc::new(Health::default());
        let mut wire = Wire::new(socket, 3, &health, b"theirs", b"ours").unwrap();
        raw.write_all(bytes).unwrap();
        raw.shutdown(Shutdown::Write).unwrap();
        let (give, take) = std::sync::mpsc::channel();
        // A failing reader parks its thread.
        std::thread::spawn(move || {
            let mut buffer = [0; 1000];
            while let Ok(n @ 1..) = wire.read(&mut buffer) {
                give.send(buffer[..n].to_vec()).unwrap();
            }
        });
        let mut all = Vec::new();
        loop {
            match take.recv_timeout(Duration::from_millis(5)) {
                Ok(part) => all.extend(part),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                    if health.lost_process().is_none() => {}
                Err(_) => {
                    all.extend(take.try_iter().flatten());
                    return (all, health.lost_process());
                }
            }
        }
    }

    /// Returns the bytes of some payloads and a proper end.
    fn frames(payloads: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut raw, socket) = sockets();
        let mut wire = Wire::new(socket, 4, &Arc::default(), b"ours", b"theirs").unwrap();
        let mut frames = Vec::new();
        for payload in payloads {
            wire.write_all(payload).unwrap();
            let mut frame = vec![0; 4 + CODE + payload.len()];
            raw.read_exact(&mut frame).unwrap();
            frames.push(frame);
        }
        wire.shutdown(Shutdown::Write).unwrap();
        let mut last = Vec::new();
        raw.read_to_end(&mut last).unwrap();
        frames.push(last);
        frames
    }

    #[test]
    fn frames_arrive_as_they_were_written() {
        let long = vec![7; 5000];
        let frames = frames(&[b"one", &long, b"three"]);
        let (bytes, lost) = read(&frames.concat());
        assert_eq!((bytes.len(), lost), (3 + 5000 + 5, None));
        assert!(bytes.starts_with(b"one") && bytes.ends_with(b"three"));
    }

    #[test]
    fn replayed_reordered_omitted_truncated_and_foreign_frames_are_rejected() {
        let frames = frames(&[b"one", b"two", b"three"]);
        let foreign = "process 3: its connection carries bytes that are not its own";
        let ended = "process 3: it ended, or its connection was closed";
        let pick =
            |which: &[usize]| which.iter().flat_map(|&i| frames[i].clone()).collect::<Vec<u8>>();
        for (bytes, given, why) in [
            (pick(&[0, 0]), "one", foreign),
            (pick(&[1, 0]), "", foreign),
            (pick(&[0, 2]), "one", foreign),
            (pick(&[0, 1]), "onetwo", ended),
            (pick(&[0])[..10].to_vec(), "", ended),
            (b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n".to_vec(), "", foreign),
        ] {
            let (read, lost) = read(&bytes);
            assert_eq!(
                (String::from_utf8(read).unwrap().as_str(), lost.as_deref()),
                (given, Some(why))
            );
        }
    }

    #[test]
    fn no_flipped_bit_passes() {
        let frames = frames(&[b"payload"]);
        let mut random = Random::new(11);
        for _ in 0..60 {
            let mut bytes = frames[0].clone();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            let (read, lost) = read(&bytes);
            assert!(read.is_empty() && lost.is_some(), "byte {at}");
        }
    }
}
