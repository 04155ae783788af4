//! Distributed searches over networks with delays, fragmentation, and cuts; hosts that one command
//! starts.

use crate::cluster::newest;
use crate::support::{Outcome, mu_check, package};
use mu_check::base::random::Random;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SECRET: &str = "a secret that nobody else knows\n";

/// Returns a port that is free now.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Proxy between the processes: the changes that it makes to the traffic.
struct Network {
    cut: AtomicBool,
    bytes: AtomicU64,
}

/// Copies one direction in pieces, now and then late, some of them together.
fn pump(mut from: TcpStream, mut to: TcpStream, network: &Network, seed: u64) {
    let mut random = Random::new(seed);
    let mut buffer = [0; 4096];
    let mut waiting: Vec<u8> = Vec::new();
    from.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    loop {
        let most = 1 + random.below(buffer.len());
        match from.read(&mut buffer[..most]) {
            Ok(0) => {
                let _ = to.write_all(&waiting);
                let _ = to.shutdown(std::net::Shutdown::Write);
                return;
            }
            Ok(n) => waiting.extend(&buffer[..n]),
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => return,
        }
        if network.cut.load(Ordering::Relaxed) {
            // What comes in goes nowhere; the connection stays.
            waiting.clear();
            continue;
        }
        // Held back for a while, then all together, in two pieces.
        if random.below(8) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(3000) as u64));
        }
        if random.below(4) > 0 && !waiting.is_empty() {
            let (first, second) = waiting.split_at(random.below(waiting.len() + 1));
            if to.write_all(first).and_then(|()| to.write_all(second)).is_err() {
                return;
            }
            network.bytes.fetch_add(waiting.len() as u64, Ordering::Relaxed);
            waiting.clear();
        }
    }
}

/// Forwards connections to a port.
fn proxy(listener: TcpListener, to: u16, network: &Arc<Network>, seed: u64) {
    let network = network.clone();
    std::thread::spawn(move || {
        for (i, from) in listener.incoming().enumerate() {
            let Ok(from) = from else { return };
            // A process that is not there yet is tried again by the other.
            let Ok(there) = TcpStream::connect(("127.0.0.1", to)) else { continue };
            let (back, forth) = (from.try_clone().unwrap(), there.try_clone().unwrap());
            let (one, two) = (network.clone(), network.clone());
            std::thread::spawn(move || pump(from, there, &one, seed + 2 * i as u64));
            std::thread::spawn(move || pump(forth, back, &two, seed + 2 * i as u64 + 1));
        }
    });
}

/// Starts processes with proxies for all connections.
fn start_with_proxies(
    count: usize,
    folder: &Path,
    options: &str,
    seed: u64,
) -> (Vec<Child>, Arc<Network>) {
    let network = Arc::new(Network { cut: AtomicBool::new(false), bytes: AtomicU64::new(0) });
    let ports: Vec<u16> = (0..count).map(|_| free()).collect();
    let proxies: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let list: Vec<String> = proxies.iter().map(|l| l.local_addr().unwrap().to_string()).collect();
    std::fs::write(folder.join("hosts"), list.join("\n")).unwrap();
    std::fs::write(folder.join("secret"), SECRET).unwrap();
    for (me, listener) in proxies.into_iter().enumerate() {
        proxy(listener, ports[me], &network, seed + 100 * me as u64);
    }
    let start = |me: usize| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mu-check"));
        command
            .current_dir(folder)
            .arg("explore")
            .arg(package("specs/arcx.spec"))
            .args(options.split_whitespace());
        command.args(["--cluster", "hosts", "--secret", "secret", "--process", &me.to_string()]);
        command.args(["--listen", &format!("127.0.0.1:{}", ports[me]), "--format", "json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    ((0..count).map(start).collect(), network)
}

fn wait_for(child: Child) -> Outcome {
    let output = child.wait_with_output().unwrap();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        json: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn networks_that_delay_and_cut_up_change_nothing() {
    for (count, seed) in [(2, 5), (3, 6)] {
        let folder = tempfile::tempdir().unwrap();
        let (processes, network) = start_with_proxies(
            count,
            folder.path(),
            "-D max_operation_id=1 --confluence auto",
            seed,
        );
        let outcomes: Vec<Outcome> = processes.into_iter().map(wait_for).collect();
        assert!(
            outcomes.iter().all(|o| o.code == 0),
            "seed {seed}: {:?}",
            outcomes.iter().map(|o| &o.stderr).collect::<Vec<_>>()
        );
        let figures =
            ["states", "transitions", "deadlocks"].map(|key| outcomes[0].json[key].as_u64());
        assert_eq!(figures, [Some(171_413), Some(417_116), Some(1_441)], "seed {seed}");
        assert!(
            network.bytes.load(Ordering::Relaxed) > 50_000,
            "seed {seed}: nothing went through the proxies"
        );
    }
}

/// A connection that goes silent ends the search within [`mu_check`]'s ten seconds of patience.
#[test]
fn a_network_that_goes_silent_ends_the_search_with_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let (processes, network) =
        start_with_proxies(2, folder.path(), "-D max_operation_id=6 --without symmetry", 9);
    let begin = Instant::now();
    while network.bytes.load(Ordering::Relaxed) < 100_000 {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    network.cut.store(true, Ordering::Relaxed);
    let cut = Instant::now();
    let outcomes: Vec<Outcome> = processes.into_iter().map(wait_for).collect();
    assert!(cut.elapsed() < Duration::from_secs(30), "{:?}", cut.elapsed());
    for outcome in &outcomes {
        assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    }
    assert_eq!(outcomes[0].json["stop"], "process-lost", "{}", outcomes[0].json);
}

fn succeeds(words: &str) -> bool {
    let words: Vec<&str> = words.split_whitespace().collect();
    Command::new(words[0])
        .args(&words[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Two hosts of one machine: namespaces joined by a pair of devices. They end with this.
struct Hosts;

impl Hosts {
    /// None where this user may not make them.
    fn new() -> Option<Self> {
        let hosts = Hosts;
        let made = ["ip netns add mu-check-a", "ip netns add mu-check-b"].into_iter().all(succeeds)
            && succeeds(
                "ip link add mu-a netns mu-check-a type veth peer name mu-b netns mu-check-b",
            )
            && succeeds("ip -n mu-check-a addr add 10.77.0.1/24 dev mu-a")
            && succeeds("ip -n mu-check-b addr add 10.77.0.2/24 dev mu-b")
            && succeeds("ip -n mu-check-a link set mu-a up")
            && succeeds("ip -n mu-check-b link set mu-b up");
        made.then_some(hosts)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        succeeds("ip netns del mu-check-a");
        succeeds("ip netns del mu-check-b");
    }
}

/// `cargo test --release --test suite -- --ignored --nocapture cluster_networks::hosts`, as root,
/// with `ip`.
#[test]
#[ignore = "needs root and makes network namespaces"]
fn hosts_with_a_cut_network_end_with_unknown() {
    let Some(_hosts) = Hosts::new() else {
        println!("no network namespaces here: not run");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hosts"), "10.77.0.1:7117\n10.77.0.2:7117\n").unwrap();
    std::fs::write(folder.path().join("secret"), SECRET).unwrap();
    let start = |me: usize, options: &str| {
        let name = ["mu-check-a", "mu-check-b"][me];
        let mut command = Command::new("ip");
        command.current_dir(folder.path()).args([
            "netns",
            "exec",
            name,
            env!("CARGO_BIN_EXE_mu-check"),
            "explore",
        ]);
        command.arg(package("specs/arcx.spec")).args(options.split_whitespace()).args([
            "--cluster",
            "hosts",
            "--secret",
            "secret",
        ]);
        command.args(["--process", &me.to_string(), "--format", "json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let whole: Vec<Outcome> =
        [0, 1].map(|me| start(me, "-D max_operation_id=1")).into_iter().map(wait_for).collect();
    assert_eq!(
        (whole[0].code, whole[0].json["states"].as_u64()),
        (0, Some(275_528)),
        "{}",
        whole[0].stderr
    );
    let running = [0, 1].map(|me| {
        start(
            me,
            "-D max_operation_id=6 --without symmetry --checkpoint kept --checkpoint-every 100ms",
        )
    });
    // They are connected, and search.
    let begin = Instant::now();
    while newest(&folder.path().join("kept")).is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(succeeds("ip -n mu-check-a link set mu-a down"));
    let cut = Instant::now();
    let outcomes: Vec<Outcome> = running.into_iter().map(wait_for).collect();
    println!("cut: both had ended after {:.1} s", cut.elapsed().as_secs_f64());
    assert!(cut.elapsed() < Duration::from_secs(30), "{:?}", cut.elapsed());
    assert!(outcomes.iter().all(|o| o.code == 3), "{} {}", outcomes[0].stderr, outcomes[1].stderr);
    assert_eq!(outcomes[0].json["stop"], "process-lost", "{}", outcomes[0].json);
}

#[test]
fn one_command_starts_all_hosts_or_says_what_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    // What stands for `ssh` here forgets the host.
    std::fs::write(path("here"), "#!/bin/sh\nshift\nexec sh -c \"$1\"\n").unwrap();
    std::fs::write(path("hosts"), format!("127.0.0.1:{}\n127.0.0.1:{}\n", free(), free())).unwrap();
    let program = env!("CARGO_BIN_EXE_mu-check");
    let (hosts, shell) = (path("hosts"), format!("sh {}", path("here")));
    let run = |options: &[&str], words: &str| {
        let mut command = Command::new(program);
        command
            .current_dir(folder.path())
            .args(["cluster", "run", &hosts])
            .args(options)
            .arg("--")
            .args(words.split_whitespace());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let search =
        format!("explore {} -D max_operation_id=0 --format json", package("specs/arcx.spec"));
    let (code, lines, _) = run(&[], &search);
    assert_eq!(code, Some(0));
    assert_eq!(
        lines
            .lines()
            .filter(|l| l.starts_with("ssh 127.0.0.1 ") && l.contains("--process"))
            .count(),
        2,
        "{lines}"
    );
    // The secret was written, for its owner alone, and stays.
    let secret = std::fs::read_to_string(path("secret")).unwrap();
    assert!(secret.trim().len() >= 64);
    let (code, result, stderr) =
        run(&["--start", "--program", program, "--shell", &shell], &search);
    let json: Value = serde_json::from_str(&result).unwrap_or_else(|_| panic!("{result}{stderr}"));
    assert_eq!(
        (code, json["states"].as_u64(), json["processes"]["count"].as_u64()),
        (Some(0), Some(6_052), Some(2))
    );
    assert_eq!(std::fs::read_to_string(path("secret")).unwrap(), secret);
    let (code, _, stderr) =
        run(&["--start", "--program", program, "--shell", &shell], "explore no.mcrl2");
    assert!(code == Some(2) && stderr.contains("cannot read `no.mcrl2`"), "{stderr}");
    let (code, _, stderr) =
        run(&["--start", "--program", "/no/program", "--shell", &shell], &search);
    assert!(
        code == Some(2) && stderr.contains("process 0 at 127.0.0.1: it ended with"),
        "{stderr}"
    );
    assert!(stderr.contains("set its path with `--program PATH`"), "{stderr}");
    let (code, _, stderr) = run(&["--start", "--shell", "/no/shell"], &search);
    assert!(
        code == Some(2) && stderr.contains("cannot start `/no/shell` for process 0"),
        "{stderr}"
    );
    for (words, message) in [
        ("simulate a.mcrl2", "`simulate` cannot be distributed"),
        ("explore a.mcrl2 --processes 2", "`--processes` after `--`"),
        ("explore a.mcrl2 --secret=x", "`--secret=x` after `--`"),
        ("explore a.mcrl2 --no-such", "after `--`: unexpected argument '--no-such'"),
    ] {
        let (code, _, stderr) = run(&[], words);
        assert!(code == Some(2) && stderr.contains(message), "{words}: {stderr}");
    }
    assert_eq!(
        mu_check(&[
            "cluster".into(),
            "run".into(),
            path("nothing"),
            "--".into(),
            "explore".into(),
            "a".into()
        ])
        .code,
        2
    );
}

/// True if some process has an argument with this text.
fn is_running(text: &str) -> bool {
    let of = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let own = std::process::id().to_string();
    let others = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy() != own);
    others.filter_map(of).any(|words| String::from_utf8_lossy(&words).contains(text))
}

/// Output of a run without its third host; nothing of it remains on the others.
#[cfg(target_os = "linux")]
fn without_the_third(folder: &Path, hosts: [&str; 3], shell: &str) {
    let mark = folder.display().to_string();
    let lines: Vec<String> = hosts.iter().map(|host| format!("{host}:{}\n", free())).collect();
    std::fs::write(folder.join("hosts"), lines.concat()).unwrap();
    let program = env!("CARGO_BIN_EXE_mu-check");
    let mut command = Command::new(program);
    command.current_dir(folder).args([
        "cluster",
        "run",
        &folder.join("hosts").display().to_string(),
        "--start",
    ]);
    command.args([
        "--program",
        program,
        "--shell",
        shell,
        "--",
        "explore",
        &package("specs/arcx.spec"),
    ]);
    let begin = Instant::now();
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    // They would wait for five minutes.
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}: {stderr}", begin.elapsed());
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(&format!("process 2 at {}: it ended with", hosts[2])), "{stderr}");
    assert!(stderr.contains("cannot reach the host"), "{stderr}");
    let begin = Instant::now();
    while is_running(&format!("{mark}/hosts")) {
        assert!(begin.elapsed() < Duration::from_secs(20), "a process waits on: {stderr}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_host_that_cannot_be_reached_ends_the_others_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("shell");
    // What it starts is no child of the one that it belongs to, as on another host; only the input
    // is handed on.
    let text = "#!/bin/sh\n[ $1 = 127.0.0.3 ] && exit 255\nsetsid -w sh -c \"$2\"\n";
    std::fs::write(&shell, text).unwrap();
    without_the_third(
        folder.path(),
        ["127.0.0.1", "127.0.0.2", "127.0.0.3"],
        &format!("sh {}", shell.display()),
    );
}

/// Servers of the real kind, each at a host of its own, for whoever has the key; they end with
/// this.
struct Shells {
    servers: Vec<Child>,
    config: String,
}

impl Shells {
    /// At these addresses. None where there is no such server, or this user may not run one.
    fn new(folder: &Path, hosts: &[&str]) -> Option<Self> {
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"]
            .into_iter()
            .find(|p| Path::new(p).exists())?;
        let path = |name: &str| folder.join(name).display().to_string();
        for name in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(name)])
                .status();
            if !made.is_ok_and(|s| s.success()) {
                return None;
            }
        }
        std::fs::copy(path("user.pub"), path("allowed")).unwrap();
        let port = free();
        let options = format!(
            "Port {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n",
            path("host"),
            path("allowed")
        );
        let mut shells = Shells { servers: Vec::new(), config: path("config") };
        for host in hosts {
            std::fs::write(path("server"), format!("{options}ListenAddress {host}\n")).unwrap();
            let server = Command::new(sshd)
                .args(["-D", "-e", "-f", &path("server")])
                .stderr(Stdio::null())
                .spawn()
                .ok()?;
            shells.servers.push(server);
            let begin = Instant::now();
            while TcpStream::connect((*host, port)).is_err() {
                if begin.elapsed() > Duration::from_secs(5)
                    || !matches!(shells.servers.last_mut()?.try_wait(), Ok(None))
                {
                    return None;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let config = format!(
            "Host *\n  Port {port}\n  IdentityFile {}\n  IdentitiesOnly yes\n  BatchMode yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n",
            path("user")
        );
        std::fs::write(&shells.config, config).unwrap();
        succeeds(&format!("ssh -F {} {} true", shells.config, hosts.first()?)).then_some(shells)
    }
}

impl Drop for Shells {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn real_shells_start_all_hosts_and_end_them() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    let Some(shells) = Shells::new(folder.path(), &hosts[..2]) else {
        println!("no `sshd` that this user may run: not run");
        return;
    };
    let shell = format!("ssh -F {}", shells.config);
    without_the_third(folder.path(), hosts, &shell);
    // Two that are there come to the result.
    let list = folder.path().join("two");
    std::fs::write(&list, format!("127.0.0.1:{}\n127.0.0.2:{}\n", free(), free())).unwrap();
    let program = env!("CARGO_BIN_EXE_mu-check");
    let run = |program: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mu-check"));
        command.args([
            "cluster",
            "run",
            &list.display().to_string(),
            "--start",
            "--program",
            program,
            "--shell",
            &shell,
            "--",
        ]);
        command
            .args([
                "explore",
                &package("specs/arcx.spec"),
                "-D",
                "max_operation_id=0",
                "--format",
                "json",
            ])
            .output()
            .unwrap()
    };
    let output = run(program);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    assert_eq!(
        (output.status.code(), json["states"].as_u64()),
        (Some(0), Some(6_052)),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let missing = run("no-such-program");
    let stderr = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        missing.status.code() == Some(2) && stderr.contains("set its path with `--program PATH`"),
        "{stderr}"
    );
}

/// Ranks become processes by the line of the documentation, under each launcher that is there, and
/// under one that only sets the variable of OpenMPI's.
#[test]
fn ranks_of_launchers_become_processes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(package("specs/arcx.spec"), folder.path().join("model.spec")).unwrap();
    std::fs::write(folder.path().join("secret"), SECRET).unwrap();
    let stand_in = "#!/bin/sh\nshift; n=$1; shift; i=0\nwhile [ $i -lt $n ]; do OMPI_COMM_WORLD_RANK=$i \"$@\" & i=$((i+1)); done\nwait\n";
    std::fs::write(folder.path().join("launcher"), stand_in).unwrap();
    let line = std::fs::read_to_string(package("docs/cluster.md")).unwrap();
    let line = line
        .lines()
        .find_map(|l| l.strip_prefix("mpiexec -n 3 "))
        .expect("the line of the documentation");
    let (mut run, mut missing) = (0, Vec::new());
    for launcher in ["sh launcher", "mpiexec.openmpi", "mpiexec.hydra"] {
        let there = launcher.starts_with("sh") || succeeds(&format!("{launcher} --version"));
        if !there {
            missing.push(launcher);
            continue;
        }
        let hosts: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}\n", free())).collect();
        std::fs::write(folder.path().join("hosts"), hosts.concat()).unwrap();
        let words = format!(
            "{} explore model.spec -D max_operation_id=0 --format json --timeout 60s",
            env!("CARGO_BIN_EXE_mu-check")
        );
        let line = line.replace("mu-check explore model.mcrl2", &words);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{launcher} -n 3 {line}")]).current_dir(folder.path());
        // As root, and on fewer cores than ranks.
        for (key, value) in [
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ] {
            command.env(key, value);
        }
        let output = command.output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), json["states"].as_u64()),
            (Some(0), Some(6_052)),
            "{launcher}: {json} {stderr}"
        );
        assert_eq!(json["processes"]["count"], 3, "{launcher}");
        run += 1;
    }
    assert!(run > 0);
    println!("{run} launchers; not there: {missing:?}");
}
