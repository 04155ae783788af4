"""What came of the cases, by kind: kept in a file that is written while the run goes on, so that nothing is lost when it is stopped."""
import collections, json, pathlib, time


class Tally:
    """Counts by kind and result, and how far the seeds of each kind were taken."""

    def __init__(self, path, commit, first):
        self.path, self.commit, self.first = path and pathlib.Path(path), commit, first
        self.counts, self.until, self.written, self.began = collections.defaultdict(collections.Counter), {}, 0.0, time.time()

    def add(self, kind, seed, result):
        self.counts[kind][result] += 1
        self.until[kind] = max(seed, self.until.get(kind, seed))
        if time.time() - self.written > 10:
            self.write()

    def write(self):
        self.written = time.time()
        if self.path:
            whole = self.path.with_suffix(".new")
            whole.write_text(json.dumps({"commit": self.commit, "seconds": round(time.time() - self.began), "kinds": {
                kind: {"seeds": [self.first, self.until[kind]], **counts} for kind, counts in self.counts.items()}}, indent=1) + "\n")
            whole.replace(self.path)

    def show(self):
        for kind, counts in self.counts.items():
            print(f"{kind}, seeds {self.first} to {self.until[kind]}: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
