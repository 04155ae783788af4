"""Runs of the two tools, and what can come of them besides an answer."""
import json, os, pathlib, re, resource, signal, subprocess


class Unanswered(Exception):
    """A tool gives no answer in time."""


class Refused(Exception):
    """A tool refuses the input."""


class Shared(Exception):
    """What all cases of a batch share has no answer, so none of them has: halves would fare no better. Its cause is one of the two above."""


class Differs(Exception):
    """The tools do not agree."""


class Tools:
    """The two tools, and how many seconds of processor time each may take, which does not depend on what else the machine does; and ten times as long by the clock."""

    def __init__(self, toolset, mu_check, seconds):
        self.toolset, self.mu_check, self.seconds = pathlib.Path(toolset).resolve(), pathlib.Path(mu_check).resolve(), seconds
        self.running = set()
        self.env = dict(os.environ, LD_LIBRARY_PATH=f"{self.toolset.parent / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}")

    def run(self, who, words, processor=None):
        processor = max(1, int(processor or self.seconds))
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (processor, processor))
        try:
            with subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, env=self.env, preexec_fn=limit) as p:
                self.running.add(p)
                try:
                    out, err = p.communicate(timeout=10 * self.seconds)
                finally:
                    p.kill()
                    self.running.discard(p)
        except subprocess.TimeoutExpired:
            raise Unanswered(who)
        if p.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise Unanswered(who)
        return subprocess.CompletedProcess(words, p.returncode, out, err)

    def stop(self):
        """Ends the programs that run."""
        for p in list(self.running):
            p.kill()

    def theirs(self, name, *words, processor=None, errors=False):
        """What a program prints; with `errors` also what it prints as errors."""
        p = self.run("toolset", [self.toolset / name, *words], processor)
        if p.returncode != 0:
            raise Refused(f"toolset: {name}: " + (p.stderr.strip().split("\n") or [""])[-1][:160])
        return p.stdout + (p.stderr if errors else "")

    def reads_ours(self, name, *words):
        """A tool that is given a file of mu-check: it must not refuse it."""
        try:
            return self.theirs(name, *words)
        except Refused as e:
            raise Differs(f"{name} refuses our file: {e}")

    def ours(self, *words, codes=(0, 1)):
        p = self.run("mu-check", [self.mu_check, *words, "--format", "json", "--no-progress", "--threads", "1", "--max-memory", "2GB"])
        if p.returncode == 3 and 3 not in codes:
            raise Unanswered("mu-check")
        if p.returncode not in (*codes, 2):
            raise Differs(f"internal error ({p.returncode}): " + p.stderr.strip().split("\n")[-1][:200])
        if p.returncode not in codes:
            raise Refused("mu-check: " + next((re.sub(r"^\S*/", "", line) for line in p.stderr.split("\n") if "error" in line), p.stderr)[:200])
        return json.loads(p.stdout)

    def solved(self, path, read=None):
        out = (read or self.theirs)("pbessolve", "-q", path).strip().split("\n")
        if not out or out[-1] not in ("true", "false"):
            raise Refused("toolset: no verdict")
        return out[-1]


def figures(path):
    """States and different transitions: the toolset writes one for each value of a sum."""
    with open(path) as lines:
        m = re.match(r"des\s*\([^,]*,\s*(\d+)\s*,\s*(\d+)", next(lines))
        return int(m[2]), len(set(lines))


def agree(what, mine, other):
    if mine != other:
        raise Differs(f"{what}: mu-check {mine}, toolset {other}")
