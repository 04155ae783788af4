//! Handshake of the processes of a distributed search: connection and mutual authentication.
//!
//! In: a listening socket, the addresses of all processes, a secret, the identity of this process's
//! run. Out: [`Connections`], one to each other process. Of two processes, the one with the higher
//! number connects and the other listens. When all are connected, no process listens any more.
//!
//! ```text
//! connecting   magic, version, 32 random bytes, its number, the other's number, process count
//! listening    magic, version, 32 random bytes
//! connecting   digests of its run, code over all of the above and "connects"
//! listening    digests of its run, code over all of the above and "listens"
//! ```
//!
//! The codes are HMAC-SHA-256 under the secret (challenge and response after ISO/IEC 9798-4). The
//! listening process reveals nothing of itself before the other is authenticated. It rejects a peer
//! that fails to authenticate, and continues to wait for the right one. The four digests
//! ([`Identity`]) show whether the binary, the model, the options or the formulas differ, so that a
//! message can name the difference. The keys of the connection's frames are further codes over the
//! same bytes. Cost: two round trips for each connection.

use super::process_group::Connections;
use super::wire::{Health, Wire, lock, new_code};
use hmac::Mac;
use mu_base::{Budget, Diagnostic, Stage, narrow};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MAGIC: &[u8; 16] = b"mu-check cluster";
/// Version of the protocol, including frames and reports.
const VERSION: u32 = 3;
/// Time limit of one step of the handshake.
const STEP: Duration = Duration::from_secs(5);
/// Time limit for resolving the name of a machine: containers that start together may register
/// their names late.
const RESOLVE: Duration = Duration::from_secs(30);
/// Time between attempts to connect.
const RETRY: Duration = Duration::from_millis(30);
/// Limit on concurrent handshakes.
const MAX_HANDSHAKES: usize = 256;
/// Limit on the peers with a failure that a message lists; further ones are left out.
const MAX_LISTED: usize = 5;

/// Shared secret of the processes of a search.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Creates a random secret.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn random() -> Result<Self, Diagnostic> {
        let mut bytes = [0; 32];
        fill(&mut bytes)?;
        Ok(Self(bytes.iter().flat_map(|b| format!("{b:02x}").into_bytes()).collect()))
    }
    /// Parses a secret; ignores surrounding white space.
    ///
    /// # Errors
    /// It is too short.
    pub fn of_text(text: &str) -> Result<Self, Diagnostic> {
        let text = text.trim();
        if text.len() < 16 {
            return Err(Diagnostic::new(Stage::Usage, "the secret is shorter than 16 characters")
                .note("write one with `head -c 32 /dev/urandom | base64 > secret`"));
        }
        Ok(Self(text.as_bytes().to_vec()))
    }
    /// Returns the secret as text, for another process.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

fn fill(bytes: &mut [u8]) -> Result<(), Diagnostic> {
    getrandom::fill(bytes)
        .map_err(|e| Diagnostic::internal(format!("the system gives no random numbers: {e}")))
}

/// Returns a random number.
pub(super) fn random_number() -> Result<u64, Diagnostic> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Digests that identify the run of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity([[u8; 32]; 4]);

/// Texts for messages: what a peer runs if the digest with this index differs.
const WHAT: [&str; 4] = [
    "another program or version",
    "another model or other parameters",
    "other options or goes on from another checkpoint",
    "other formulas",
];
/// Length of all digests, and of digests with a code.
const DIGESTS: usize = 128;
const PROOF: usize = DIGESTS + 32;

impl Identity {
    /// Computes the digests of the program's bytes, the model with its parameters, the options that
    /// must agree, and the formulas.
    ///
    /// # Errors
    /// The program cannot be read.
    pub fn new(
        program: &mut dyn Read,
        model: &str,
        options: &str,
        formulas: &str,
    ) -> std::io::Result<Self> {
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match program.read(&mut buffer)? {
                0 => break,
                n => hash.update(&buffer[..n]),
            }
        }
        Ok(Self([
            hash.finalize().into(),
            Sha256::digest(model).into(),
            Sha256::digest(options).into(),
            Sha256::digest(formulas).into(),
        ]))
    }
    fn differs(&self, other: &Self) -> Option<&'static str> {
        (0..4).find(|&i| self.0[i] != other.0[i]).map(|i| WHAT[i])
    }
    fn bytes(&self) -> Vec<u8> {
        self.0.concat()
    }
    fn of(bytes: &[u8; DIGESTS]) -> Self {
        Self([0, 32, 64, 96].map(|at| std::array::from_fn(|i| bytes[at + i])))
    }
}

/// A process of a distributed search, before it is connected.
pub struct Party {
    /// Its number.
    pub me: usize,
    /// Addresses of all processes, by number.
    pub addresses: Vec<String>,
    /// Listening socket of this process.
    pub listener: TcpListener,
    /// Shared secret.
    pub secret: Secret,
    /// Identity of this process's run.
    pub identity: Identity,
}

/// Reason for a failed connection.
enum ConnectionFailure {
    /// No answer yet; retry.
    Silent(String),
    /// The peer is not part of the search; wait for another.
    Stranger(String),
    /// The peer is part of the search but does not match; the search fails.
    Wrong(Diagnostic),
}

impl From<std::io::Error> for ConnectionFailure {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        match error.kind() {
            TimedOut | WouldBlock => {
                ConnectionFailure::Silent(format!("it did not answer within {} s", STEP.as_secs()))
            }
            _ => ConnectionFailure::Silent(error.to_string()),
        }
    }
}
impl From<Diagnostic> for ConnectionFailure {
    fn from(error: Diagnostic) -> Self {
        ConnectionFailure::Wrong(error)
    }
}

impl Party {
    fn code(&self, transcript: &[u8], purpose: &str) -> Vec<u8> {
        let mut code = new_code(&self.secret.0);
        code.update(purpose.as_bytes());
        code.update(transcript);
        code.finalize().into_bytes().to_vec()
    }
    fn is_code(&self, transcript: &[u8], purpose: &str, claimed: &[u8]) -> bool {
        let mut code = new_code(&self.secret.0);
        code.update(purpose.as_bytes());
        code.update(transcript);
        code.verify_slice(claimed).is_ok()
    }
    fn wire(
        &self,
        socket: TcpStream,
        peer: usize,
        connects: bool,
        transcript: &[u8],
        health: &Arc<Health>,
    ) -> Result<Wire, ConnectionFailure> {
        let mut keys = ["frames of who connects", "frames of who listens"]
            .map(|purpose| self.code(transcript, purpose));
        if !connects {
            keys.reverse();
        }
        let [ours, theirs] = keys;
        Ok(Wire::new(socket, peer, health, &theirs, &ours)?)
    }
    fn compare(&self, peer: usize, theirs: &Identity) -> Result<(), Diagnostic> {
        match self.identity.differs(theirs) {
            None => Ok(()),
            Some(what) => Err(Diagnostic::new(Stage::Usage, format!("process {peer} runs {what}"))
                .note("all processes of a search need the same program, files, `-D` values and options")),
        }
    }

    /// Authenticates to a listening process. `waited`: the time since the first attempt.
    fn connect(
        &self,
        peer: usize,
        health: &Arc<Health>,
        waited: Duration,
    ) -> Result<Wire, ConnectionFailure> {
        let address = &self.addresses[peer];
        let unknown =
            || match format!("no machine is known as `{address}`, the address of process {peer}") {
                text if waited < RESOLVE => ConnectionFailure::Silent(text),
                text => ConnectionFailure::Wrong(Diagnostic::new(Stage::Usage, text)),
            };
        let place =
            address.to_socket_addrs().ok().and_then(|mut all| all.next()).ok_or_else(unknown)?;
        let mut socket = TcpStream::connect_timeout(&place, STEP)?;
        socket.set_read_timeout(Some(STEP))?;
        socket.set_nodelay(true)?;
        let mut random = [0; 32];
        fill(&mut random)?;
        let numbers =
            [self.me, peer, self.addresses.len()].map(|n| narrow::index(n).to_le_bytes()).concat();
        let mut transcript = [&MAGIC[..], &VERSION.to_le_bytes(), &random, &numbers].concat();
        socket.write_all(&transcript)?;
        let mut answer = [0; 52];
        socket.read_exact(&mut answer)?;
        if &answer[..16] != MAGIC {
            return Err(ConnectionFailure::Stranger(
                "what listens there is no process of a search".into(),
            ));
        }
        transcript.extend(answer);
        let mine = self.identity.bytes();
        transcript.extend(&mine);
        let code = self.code(&transcript, "connects");
        socket.write_all(&[mine, code].concat())?;
        let mut proof = [0; PROOF];
        socket.read_exact(&mut proof).map_err(|_| {
            ConnectionFailure::Stranger(
                "it closed the connection during authentication: its secret may be different"
                    .into(),
            )
        })?;
        let theirs: [u8; DIGESTS] = std::array::from_fn(|i| proof[i]);
        transcript.extend(theirs);
        if !self.is_code(&transcript, "listens", &proof[DIGESTS..]) {
            return Err(ConnectionFailure::Stranger(
                "what listens there does not know the secret".into(),
            ));
        }
        self.compare(peer, &Identity::of(&theirs))?;
        self.wire(socket, peer, true, &transcript, health)
    }

    /// Authenticates a process that has connected.
    fn authenticate(
        &self,
        mut socket: TcpStream,
        health: &Arc<Health>,
    ) -> Result<(usize, Wire), ConnectionFailure> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(STEP))?;
        socket.set_nodelay(true)?;
        let mut hello = [0; 64];
        socket.read_exact(&mut hello)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| hello[at + i])) as usize;
        if &hello[..16] != MAGIC || word(16) != VERSION as usize {
            return Err(ConnectionFailure::Stranger(
                "it is no process of a search of this version".into(),
            ));
        }
        let (peer, me, count) = (word(52), word(56), word(60));
        let mut random = [0; 32];
        fill(&mut random)?;
        let answer = [&MAGIC[..], &VERSION.to_le_bytes(), &random].concat();
        socket.write_all(&answer)?;
        let mut proof = [0; PROOF];
        socket.read_exact(&mut proof)?;
        let theirs: [u8; DIGESTS] = std::array::from_fn(|i| proof[i]);
        let mut transcript = [&hello[..], &answer, &theirs].concat();
        if !self.is_code(&transcript, "connects", &proof[DIGESTS..]) {
            return Err(ConnectionFailure::Stranger("it does not know the secret".into()));
        }
        let mine = self.identity.bytes();
        transcript.extend(&mine);
        let code = self.code(&transcript, "listens");
        socket.write_all(&[mine, code].concat())?;
        self.compare(peer, &Identity::of(&theirs))?;
        if me != self.me || count != self.addresses.len() || peer <= self.me || peer >= count {
            let message = format!(
                "process {peer} of {count} took this one for process {me}: this is process {} of {}",
                self.me,
                self.addresses.len()
            );
            return Err(Diagnostic::new(Stage::Usage, message)
                .note("give all processes the same list of hosts, and each its own `--process`")
                .into());
        }
        Ok((peer, self.wire(socket, peer, false, &transcript, health)?))
    }
}

/// Failures by process or by address.
#[derive(Default)]
struct FailureLog(Vec<(String, String)>);

impl FailureLog {
    /// Records a failure of a peer; it replaces the earlier one. [`ConnectionFailure::Silent`]
    /// replaces nothing: a process that has given up is silent too, but that is not the cause.
    fn add(&mut self, who: String, refused: ConnectionFailure) {
        let (why, silent) = match refused {
            ConnectionFailure::Silent(why) => (why, true),
            ConnectionFailure::Stranger(why) => (why, false),
            ConnectionFailure::Wrong(error) => (error.message, false),
        };
        match self.0.iter().position(|n| n.0 == who) {
            Some(_) if silent => {}
            Some(at) => self.0[at].1 = why,
            None if self.0.len() < MAX_LISTED => self.0.push((who, why)),
            None => {}
        }
    }
}

/// Connects this process with all others. `wait`: time limit. `meanwhile`: called periodically; an
/// error ends the wait.
///
/// # Errors
/// A process is missing or runs something else; an error of `meanwhile`.
pub fn meet(
    party: &Party,
    budget: &Budget,
    wait: Duration,
    meanwhile: &mut dyn FnMut() -> Result<(), Diagnostic>,
) -> Result<Connections, Diagnostic> {
    let count = party.addresses.len();
    let health: Arc<Health> = Arc::default();
    let begin = Instant::now();
    let over = AtomicBool::new(false);
    let wires: Mutex<Vec<Option<Wire>>> = Mutex::new((0..count).map(|_| None).collect());
    let wrong: Mutex<Option<Diagnostic>> = Mutex::default();
    let notes: Mutex<FailureLog> = Mutex::default();
    let note = |who: String, why: ConnectionFailure| lock(&notes).add(who, why);
    party
        .listener
        .set_nonblocking(true)
        .map_err(|e| Diagnostic::internal(format!("cannot listen: {e}")))?;
    let result = std::thread::scope(|scope| {
        let (health, wires, wrong, over, note) = (&health, &wires, &wrong, &over, &note);
        for peer in 0..party.me {
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match party.connect(peer, health, begin.elapsed()) {
                        Ok(wire) => {
                            lock(wires)[peer] = Some(wire);
                            return;
                        }
                        Err(ConnectionFailure::Wrong(error)) => {
                            lock(wrong).get_or_insert(error);
                            return;
                        }
                        Err(why) => {
                            note(format!("process {peer} at {}", party.addresses[peer]), why)
                        }
                    }
                    std::thread::sleep(RETRY);
                }
            });
        }
        let mut hearing: Vec<std::thread::ScopedJoinHandle<'_, ()>> = Vec::new();
        let result = loop {
            if let Some(error) = lock(wrong).take() {
                break Err(error);
            }
            let missing: Vec<usize> =
                (0..count).filter(|&p| p != party.me && lock(wires)[p].is_none()).collect();
            if missing.is_empty() {
                break Ok(());
            }
            if let Err(stop) = budget.check(0) {
                break Err(Diagnostic::stopped(stop));
            }
            if let Err(error) = meanwhile() {
                break Err(error);
            }
            if begin.elapsed() > wait {
                let names: Vec<String> = missing
                    .iter()
                    .map(|p| format!("process {p} ({})", party.addresses[*p]))
                    .collect();
                let message =
                    format!("not connected after {} s: {}", wait.as_secs(), names.join(", "));
                break Err(Diagnostic::new(Stage::File, message));
            }
            hearing.retain(|h| !h.is_finished());
            match party.listener.accept() {
                Ok((socket, from)) if hearing.len() < MAX_HANDSHAKES => {
                    hearing.push(scope.spawn(move || match party.authenticate(socket, health) {
                        Ok((peer, wire)) => match &mut lock(wires)[peer] {
                            Some(_) => note(
                                from.to_string(),
                                ConnectionFailure::Stranger(format!(
                                    "process {peer} is here already"
                                )),
                            ),
                            free => *free = Some(wire),
                        },
                        Err(ConnectionFailure::Wrong(error)) => {
                            lock(wrong).get_or_insert(error);
                        }
                        Err(why) => note(from.to_string(), why),
                    }))
                }
                Ok(_) => {}
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        over.store(true, Ordering::Relaxed);
        result
    });
    result.map_err(|error| {
        lock(&notes).0.iter().fold(error, |e, (who, why)| e.note(format!("{who}: {why}")))
    })?;
    let wires = std::mem::take(&mut *lock(&wires));
    Ok(Connections { me: party.me, wires, health })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    fn party(
        me: usize,
        addresses: &[String],
        listener: TcpListener,
        secret: &str,
        model: &str,
    ) -> Party {
        let secret = Secret::of_text(secret).unwrap();
        Party {
            me,
            addresses: addresses.to_vec(),
            listener,
            secret,
            identity: Identity::new(&mut &b"program"[..], model, "options", "").unwrap(),
        }
    }

    fn listeners(count: usize) -> (Vec<TcpListener>, Vec<String>) {
        let all: Vec<TcpListener> =
            (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses = all.iter().map(|l| l.local_addr().unwrap().to_string()).collect();
        (all, addresses)
    }

    const SECRET: &str = "a secret of some length";

    fn two(
        secrets: [&str; 2],
        models: [&str; 2],
        wait: Duration,
    ) -> [Result<usize, Diagnostic>; 2] {
        let (listeners, addresses) = listeners(2);
        let mut listeners = listeners.into_iter();
        let parties: Vec<Party> = (0..2)
            .map(|i| party(i, &addresses, listeners.next().unwrap(), secrets[i], models[i]))
            .collect();
        let met = |p: &Party| {
            meet(p, &Budget::default(), wait, &mut || Ok(()))
                .map(|c| c.wires.iter().flatten().count())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| met(&parties[1]));
            [met(&parties[0]), other.join().unwrap()]
        })
    }

    #[test]
    fn secrets_survive_as_text() {
        let secret = Secret::random().unwrap();
        assert_eq!(Secret::of_text(&secret.text()).unwrap().0, secret.0);
        assert_ne!(Secret::random().unwrap().0, secret.0);
        assert!(Secret::of_text(" short \n").is_err());
    }

    #[test]
    fn processes_with_one_secret_meet() {
        let met = two([SECRET, SECRET], ["m", "m"], STEP);
        assert!(met.iter().all(|m| m.as_ref().is_ok_and(|n| *n == 1)), "{met:?}");
    }

    #[test]
    fn a_name_that_is_not_known_is_waited_for_but_not_for_long() {
        let (listeners, _) = listeners(1);
        let addresses = ["no-such-machine.invalid:7117".to_string(), "127.0.0.1:7118".to_string()];
        let party = party(1, &addresses, listeners.into_iter().next().unwrap(), SECRET, "m");
        let health: Arc<Health> = Arc::default();
        let text =
            "no machine is known as `no-such-machine.invalid:7117`, the address of process 0";
        let early = party.connect(0, &health, Duration::ZERO).err();
        assert!(matches!(&early, Some(ConnectionFailure::Silent(why)) if why == text));
        let late = party.connect(0, &health, RESOLVE).err();
        assert!(matches!(&late, Some(ConnectionFailure::Wrong(error)) if error.message == text));
    }

    #[test]
    fn another_secret_is_rejected_and_another_model_is_named() {
        let (listeners, addresses) = listeners(2);
        let mut parties =
            listeners.into_iter().zip([SECRET, "another secret entirely"]).enumerate();
        let parties: [Party; 2] = std::array::from_fn(|_| {
            parties.next().map(|(i, (l, s))| party(i, &addresses, l, s, "m")).unwrap()
        });
        let health: Arc<Health> = Arc::default();
        let [heard, connected] = std::thread::scope(|scope| {
            let other = scope.spawn(|| parties[1].connect(0, &health, Duration::ZERO).err());
            let heard =
                parties[0].authenticate(parties[0].listener.accept().unwrap().0, &health).err();
            [heard, other.join().unwrap()]
        });
        assert!(
            matches!(&heard, Some(ConnectionFailure::Stranger(why)) if why.contains("does not know the secret"))
        );
        assert!(
            matches!(&connected, Some(ConnectionFailure::Stranger(why)) if why.contains("its secret may be different"))
        );
        for met in two([SECRET, "another secret entirely"], ["m", "m"], Duration::from_millis(50)) {
            let error = met.unwrap_err();
            assert!(error.message.contains("not connected"), "{error:?}");
        }
        let refused = two([SECRET, SECRET], ["m", "n"], STEP);
        for (peer, result) in [1, 0].into_iter().zip(refused) {
            assert_eq!(
                result.unwrap_err().message,
                format!("process {peer} runs another model or other parameters")
            );
        }
    }

    #[test]
    fn silence_does_not_replace_a_reason() {
        let mut notes = FailureLog::default();
        let again = || std::io::Error::from(std::io::ErrorKind::WouldBlock);
        notes.add("process 0".into(), again().into());
        assert_eq!(notes.0[0].1, "it did not answer within 5 s");
        notes.add("process 0".into(), ConnectionFailure::Stranger("another secret".into()));
        notes.add("process 0".into(), again().into());
        assert_eq!(notes.0, [("process 0".into(), "another secret".into())]);
    }

    #[test]
    fn strangers_are_rejected_and_the_others_still_connect() {
        let (listeners, addresses) = listeners(2);
        let mut listeners = listeners.into_iter();
        let parties: Vec<Party> =
            (0..2).map(|i| party(i, &addresses, listeners.next().unwrap(), SECRET, "m")).collect();
        let met = |p: &Party| {
            meet(p, &Budget::default(), STEP, &mut || Ok(()))
                .map(|c| c.wires.iter().flatten().count())
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| met(&parties[0]));
            let mut random = Random::new(17);
            let valid: Vec<u8> = [
                &MAGIC[..],
                &VERSION.to_le_bytes(),
                &[9; 32],
                &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0],
            ]
            .concat();
            for n in 0..40 {
                let mut socket = TcpStream::connect(&addresses[0]).unwrap();
                let bytes: Vec<u8> = match n % 4 {
                    0 => (0..random.below(300)).map(|_| random.next_u64() as u8).collect(),
                    1 => b"GET / HTTP/1.1\r\n\r\n".to_vec(),
                    // An invalid proof.
                    2 => valid
                        .iter()
                        .copied()
                        .chain((0..128).map(|_| random.next_u64() as u8))
                        .collect(),
                    _ => valid[..random.below(valid.len())].to_vec(),
                };
                let _ = socket.write_all(&bytes);
            }
            assert_eq!(met(&parties[1]).unwrap(), 1);
            assert_eq!(first.join().unwrap().unwrap(), 1);
        });
    }

    #[test]
    fn a_recorded_proof_is_worth_nothing() {
        let (listeners, addresses) = listeners(2);
        let mut listeners = listeners.into_iter();
        let one = party(0, &addresses, listeners.next().unwrap(), SECRET, "m");
        let health = Arc::default();
        // A process that knows the secret sends this once.
        let mut recorded = Vec::new();
        for replay in [false, true] {
            std::thread::scope(|scope| {
                let heard = scope.spawn(|| {
                    one.authenticate(one.listener.accept().unwrap().0, &health).map(|h| h.0)
                });
                let mut socket = TcpStream::connect(&addresses[0]).unwrap();
                let hello: Vec<u8> = [
                    &MAGIC[..],
                    &VERSION.to_le_bytes(),
                    &[9; 32],
                    &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0],
                ]
                .concat();
                socket.write_all(&hello).unwrap();
                let mut answer = [0; 52];
                socket.read_exact(&mut answer).unwrap();
                if !replay {
                    let mine = one.identity.bytes();
                    let transcript = [&hello[..], &answer, &mine].concat();
                    recorded = [mine, one.code(&transcript, "connects")].concat();
                }
                socket.write_all(&recorded).unwrap();
                assert_eq!(heard.join().unwrap().is_ok(), !replay);
            });
        }
    }
}
