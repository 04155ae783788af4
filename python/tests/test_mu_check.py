"""The package as a user meets it: counts, verdicts, evidence, errors, limits, interrupts, sweeps, the notebook."""

import json
import math
import os
import pickle
import signal
import threading
import time
from pathlib import Path

import mu_check
import pytest

ROOT = Path(__file__).parents[2]
ARCX = ROOT / "specs" / "arcx.spec"
BUFFER = """act enter, leave: Nat;
proc Buffer = sum n: Nat. (n < 3) -> enter(n) . leave(n) . Buffer;
init Buffer;
"""
COUNTER = """$param max: Nat = 3;
act up: Nat;
proc P(n: Nat) = (n < ${max}) -> up(n + 1) . P(n + 1);
init P(0);
"""


def test_counts():
    model = mu_check.Model(ARCX, max_operation_id=1)
    counts = model.explore()
    assert model.parameters["max_operation_id"] == "1"
    assert counts.complete and counts.states == model.explore(engine="symbolic").states == model.explore(symmetry=False).states
    assert str(counts.states) in repr(counts)


def test_verdicts_and_evidence():
    model = mu_check.Model.from_text(BUFFER)
    judgement = model.check("[true* . enter(2)] <leave(1)> true")
    assert judgement.verdict is False and not judgement
    evidence = judgement.evidence
    assert evidence.actions == ["enter(2)"] and not evidence.is_witness
    assert "enter(2)" in str(evidence) and "<svg" in evidence._repr_svg_()
    assert len(json.loads(evidence.json)["steps"]) == 1
    assert model.check("[true*]<true>true").verdict is True
    assert mu_check.Model(ARCX, max_operation_id=0).check(ROOT / "formulas" / "1a.gos.mcf").verdict is True


def test_errors_have_places():
    with pytest.raises(mu_check.Error) as caught:
        mu_check.Model.from_text("act a;\ninit b;\n", name="wrong.mcrl2")
    assert caught.value.place == ("wrong.mcrl2", 2, 6, "b")
    assert "wrong.mcrl2:2:6" in str(caught.value) and caught.value.stage and isinstance(caught.value.notes, list)
    with pytest.raises(mu_check.Error):
        mu_check.Model.from_text(BUFFER).check("[true*")
    with pytest.raises(mu_check.Error):
        mu_check.Model.from_text(COUNTER, least=1)


# Its initial value takes 2^60 evaluations.
ENDLESS = """map f: Nat -> Nat; var n: Nat; eqn f(0) = 1; f(1) = 1; n > 1 -> f(n) = f(Int2Nat(n - 1)) + f(Int2Nat(n - 2));
act a: Nat;
proc P(n: Nat) = a(n) . P(n + 1);
init P(f(90));
"""
# Its first step takes as many.
LATER = ENDLESS.replace("a(n) . P(n + 1)", "(n == 0) -> a(f(90)) . P(1)").replace("P(f(90))", "P(0)")


def interrupted_soon():
    """Sends Ctrl-C to this process in half a second."""
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def test_interrupts_and_limits_hold_within_an_evaluation(tmp_path):
    (tmp_path / "endless.mcrl2").write_text(ENDLESS)
    start = time.monotonic()
    with pytest.raises(mu_check.Error) as caught:
        mu_check.Model.open(tmp_path / "endless.mcrl2", timeout=0.5)
    assert caught.value.stage == "limit"
    interrupted_soon()
    with pytest.raises(KeyboardInterrupt):
        mu_check.Model(tmp_path / "endless.mcrl2")
    interrupted_soon()
    with pytest.raises(KeyboardInterrupt):
        mu_check.Model.from_text(ENDLESS)
    later = mu_check.Model.from_text(LATER)
    assert later.explore(timeout=0.5).stop == "timeout"
    assert later.check("[a(1)]false", timeout=0.5).verdict is None
    interrupted_soon()
    with pytest.raises(KeyboardInterrupt):
        later.explore()
    assert time.monotonic() - start < 30


def test_options_that_mean_nothing_are_refused():
    model = mu_check.Model.from_text(BUFFER)
    for timeout in [math.nan, -1, 1e20, -math.inf]:
        with pytest.raises(ValueError, match="timeout"):
            model.explore(timeout=timeout)
    for threads in [0, -1, 100_000, 1.5]:
        with pytest.raises(ValueError, match="threads"):
            model.explore(threads=threads)
    for wrong, kind in [({"max_memory": "2 parsecs"}, ValueError), ({"engine": "fast"}, ValueError), ({"timeout": "2"}, TypeError)]:
        with pytest.raises(kind, match=next(iter(wrong))):
            model.check("true", **wrong)
    states = model.explore().states
    for right in [{"timeout": math.inf}, {"max_states": 1e6}, {"max_memory": "2G"}, {"max_memory": "1.5 GiB"}, {"threads": 2}]:
        assert model.explore(**right).states == states


def test_missing_files_raise_one_error():
    for use in [lambda: mu_check.Model("missing.mcrl2"), lambda: mu_check.Model.from_text(BUFFER).check("missing.mcf"), lambda: list(mu_check.sweep("missing.mcrl2"))]:
        with pytest.raises(FileNotFoundError):
            use()


def test_results_are_values():
    model = mu_check.Model.from_text(BUFFER)
    counts, judgement = model.explore(), model.check("[true* . enter(2)] <leave(1)> true")
    assert counts == model.explore(threads=2) and judgement == model.check("[true* . enter(2)] <leave(1)> true")
    for result in [counts, judgement, judgement.evidence]:
        assert pickle.loads(pickle.dumps(result)) == result and hash(result) == hash(result)
        assert type(result).__module__ == "mu_check"
    assert pickle.loads(pickle.dumps(judgement.evidence)).svg == judgement.evidence.svg
    assert counts != mu_check.Model.from_text(COUNTER).explore()
    assert mu_check.__version__


def test_ranges_are_what_python_iterates(tmp_path):
    path = tmp_path / "counter.spec"
    path.write_text(COUNTER)

    def states(values, formulas=()):
        return [r["states"] for r in mu_check.sweep(path, formulas, max=values) if r["job"] == "explore"]

    assert states({3, 1, 2}) == states(n for n in (1, 2, 3)) == states((1, 2, 3)) == [2, 3, 4]
    assert states(2) == states("2") == [3]
    (tmp_path / "f.mcf").write_text("true")
    for single in [tmp_path / "f.mcf", str(tmp_path / "f.mcf"), "true"]:
        assert len(list(mu_check.sweep(path, single, max=1))) == 2
    numpy = pytest.importorskip("numpy")
    assert states(numpy.arange(1, 4)) == [2, 3, 4] and states(numpy.int64(2)) == [3]


def test_names_and_messages_are_those_of_python():
    assert {"os", "itertools", "Path"}.isdisjoint(dir(mu_check)) and "Model" in dir(mu_check)
    with pytest.raises(mu_check.Error) as raised:
        mu_check.Model.from_text("act a; init a;", nothing=1)
    assert not str(raised.value).startswith("error: "), raised.value


def test_messages_do_not_name_options_of_the_command_line():
    for make in [lambda: mu_check.Model.from_text(COUNTER, least=1), lambda: mu_check.Model.from_text(COUNTER, max="many"), lambda: mu_check.Model.from_text(BUFFER, max=1)]:
        with pytest.raises(mu_check.Error) as caught:
            make()
        assert "-D" not in str(caught.value), caught.value


def test_limits_leave_it_unknown():
    model = mu_check.Model.from_text(COUNTER, max=10_000_000)
    counts = model.explore(max_states=1000)
    assert not counts.complete and counts.stop == "max-states"
    judgement = model.check("[true*]<true>true", timeout=0.2)
    assert judgement.verdict is None and judgement.stop == "timeout"
    with pytest.raises(mu_check.Error):
        bool(judgement)


def test_interrupts_raise():
    model = mu_check.Model.from_text(COUNTER, max=100_000_000)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.explore()
    assert time.monotonic() - start < 10


def test_progress_is_reported():
    reports = []
    model = mu_check.Model.from_text(COUNTER, max=100_000_000)
    model.explore(timeout=1.5, progress=lambda states, transitions, seconds: reports.append((states, seconds)))
    assert reports and reports == sorted(reports) and reports[-1][0] > 0


def test_a_bar_in_a_terminal(capsys):
    model = mu_check.Model.from_text(COUNTER, max=100_000_000)
    model.explore(timeout=1.5, progress=True)
    line = capsys.readouterr().err
    assert "states" in line and "%" in line and line.endswith("\r\033[K"), line
    rows = list(mu_check.sweep(ARCX, progress=True, max_operation_id=range(2)))
    line = capsys.readouterr().err
    assert len(rows) == 2 and "0 of 2 rows: explore, max_operation_id=0" in line and "2 rows" in line and line.endswith("\r\033[K")
    counted = []
    list(mu_check.sweep(ARCX, progress=lambda done, total: counted.append((done, total)), max_operation_id=range(2)))
    assert counted == [(0, 2), (1, 2), (2, 2)]


def run_notebook(cells):
    """The outputs of the cells of a notebook, executed by a kernel; the pages that a display went through."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    pages = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, cell, cell_index):
            if message["msg_type"] in ("display_data", "update_display_data"):
                pages.append((message["msg_type"], message["content"]["data"].get("text/html", "")))
            return super().process_message(message, cell, cell_index)

    Client(notebook, timeout=300).execute()
    return [c.outputs for c in notebook.cells], pages


def test_a_bar_in_a_notebook():
    begin = f"import mu_check\ntext = {COUNTER!r}\nmodel = mu_check.Model.from_text(text, name='<b>', max=100_000_000)"
    outputs, pages = run_notebook([begin, "model.explore(timeout=2, progress=True).stop"])
    # One display, which is updated in place, with a share since there is a limit; in the end the last words stay.
    kinds = [kind for kind, _ in pages]
    assert kinds[0] == "display_data" and set(kinds[1:]) == {"update_display_data"} and len(kinds) > 3, kinds
    shares = [float(page.split('value="')[1].split('"')[0]) for _, page in pages[:-1]]
    assert shares == sorted(shares) and 0 < shares[0] and shares[-1] <= 1
    shown = [o for o in outputs[1] if o.output_type == "display_data"]
    assert len(shown) == 1 and "progress" not in shown[0].data["text/html"] and "states" in shown[0].data["text/html"]
    assert [o.data["text/plain"] for o in outputs[1] if o.output_type == "execute_result"] == ["'timeout'"]
    # Without a limit nobody knows the share; a sweep knows it.
    _, pages = run_notebook([begin, "import threading, _thread\nthreading.Timer(1.5, _thread.interrupt_main).start()\ntry:\n    model.explore(progress=True)\nexcept KeyboardInterrupt:\n    pass"])
    assert "<progress " in pages[0][1] and "value=" not in pages[0][1]
    _, pages = run_notebook([f"import mu_check\nrows = list(mu_check.sweep({str(ARCX)!r}, ['<true>true'], progress=True, max_operation_id=range(2)))"])
    assert 'value="0.250"' in pages[1][1] and "&lt;true&gt;true, max_operation_id=0" in pages[1][1] and "4 rows" in pages[-1][1]


def test_an_error_in_progress_ends_the_search():
    model = mu_check.Model.from_text(COUNTER, max=100_000_000)

    def fail(*_):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        model.explore(progress=fail)


def test_sweeps_are_rows():
    path = ROOT / "python" / "tests" / "counter.spec"
    path.write_text(COUNTER)
    try:
        rows = mu_check.sweep(path, ["[true*]<true>true"], max=range(1, 4))
        assert len(rows) == 6 and repr(rows) == "Rows(0 of 6 computed)"
        assert rows[-1]["max"] == 3 and len(rows[1:3]) == 2
    finally:
        path.unlink()
    # The file is gone: a second pass computes nothing.
    assert list(rows) == list(rows) and len(list(rows)) == 6
    with pytest.raises(IndexError):
        rows[6]
    assert [r["states"] for r in rows if r["job"] == "explore"] == [2, 3, 4]
    assert [r["verdict"] for r in rows if r["job"] != "explore"] == [False] * 3
    pytest.importorskip("pandas")
    frame = mu_check.frame(rows)
    assert list(frame[frame.job == "explore"]["max"]) == [1, 2, 3]
    assert all(str(frame[c].dtype) == "Int64" for c in ["states", "transitions", "deadlocks", "equations", "max"])


def test_a_sweep_has_the_rows_of_the_tutorial(tmp_path):
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    for name, language in [("deep.mcrl2", "mcrl2"), ("order.mcf", "mcf")]:
        (tmp_path / name).write_text(text.split(f"\n```{language} {name}\n")[1].split("\n```")[0] + "\n")
    shown = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(("| explore |", "| order |"))]
    rows = list(mu_check.sweep(tmp_path / "deep.mcrl2", [tmp_path / "order.mcf"], depth=range(2, 7)))
    counts = [[r["job"], r["depth"], r["states"], r["transitions"] or r["equations"]] for r in rows]
    written = [[j, int(d), int(s), int(n.replace(",", ""))] for j, d, s, n, *_ in shown]
    assert sorted(counts) == sorted(written) and len(written) == 10


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    folder = ROOT / "python" / "examples"
    notebook = nbformat.read(folder / "sweep.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    assert any("image/svg+xml" in o.get("data", {}) for o in outputs), "evidence is shown as a picture"
