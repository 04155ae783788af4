"""Type checkers on the types that the package declares: the stubs against the built module, and the example notebook, README and tests against the stubs.

Each checker is used where it is installed: ``pip install mypy pyright``; elsewhere the test says that it is skipped.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRONG = """import mu_check

mu_check.Model("a.spec", max=[1])
mu_check.Model("a.spec").explore(thread=1)
counts: str = mu_check.Model("a.spec").explore().states
mu_check.Model("a.spec").check("true").evidence.actions
mu_check.Model("a.spec").explore(engine="fast")
mu_check.sweep("a.spec", formulas=3)
"""


def needs(checker):
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")


def run(folder, *line):
    return subprocess.run([sys.executable, "-m", *line], cwd=folder, capture_output=True, text=True, timeout=600)


def code(folder):
    """The code of the notebook, of the README and of the tests, as files in a folder."""
    notebook = json.loads((ROOT / "python" / "examples" / "sweep.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    readme = (ROOT / "python" / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    (folder / "notebook.py").write_text("\n".join(cells), encoding="utf-8")
    (folder / "readme.py").write_text(readme, encoding="utf-8")
    (folder / "wrong.py").write_text(WRONG, encoding="utf-8")


def test_mypy(tmp_path):
    needs("mypy")
    code(tmp_path)
    options = ["--strict", "--ignore-missing-imports", "--no-incremental"]
    good = run(tmp_path, "mypy", *options, "notebook.py", "readme.py")
    assert good.returncode == 0, good.stdout + good.stderr
    wrong = run(tmp_path, "mypy", *options, "wrong.py")
    lines = {line.split(":")[1] for line in wrong.stdout.splitlines() if ": error:" in line}
    assert lines == {"3", "4", "5", "6", "7", "8"}, wrong.stdout + wrong.stderr


def test_the_stubs_are_those_of_the_module(tmp_path):
    needs("mypy")
    checked = run(tmp_path, "mypy.stubtest", "mu_check", "--ignore-missing-stub")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_pyright(tmp_path):
    needs("pyright")
    code(tmp_path)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard", "reportMissingModuleSource": false}')
    checked = run(tmp_path, "pyright", "--outputjson", "--pythonpath", sys.executable, "notebook.py", "readme.py", "wrong.py")
    try:
        found = json.loads(checked.stdout[checked.stdout.index("{") :])["generalDiagnostics"]
    except ValueError:
        # It fetches its program at its first run.
        pytest.skip(f"pyright does not run: {(checked.stdout + checked.stderr)[-300:]}")
    errors = [(Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in found if d["severity"] == "error"]
    assert {e for e in errors if e[0] == "wrong.py"} == {("wrong.py", n) for n in (3, 4, 5, 6, 7, 8)}, checked.stdout
    assert all(e[0] == "wrong.py" for e in errors), checked.stdout
