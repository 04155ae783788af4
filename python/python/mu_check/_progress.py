"""Progress of a search: in a notebook a line of HTML with a bar, elsewhere a line on standard error.

A bar needs no widget: it is the element ``progress`` of the page, and a display handle replaces it.
Without a limit or a number of rows the share is unknown, and the bar only moves.
"""

import html
import sys
import time

# Seconds between two updates of a page.
_EVERY = 0.2


def _notebook():
    """Returns the display function of a notebook, if this runs in one."""
    # IPython is already loaded in a notebook.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    return lambda text, handle: (
        display(HTML(text), display_id=True) if handle is None else handle.update(HTML(text)) or handle
    )


class ProgressLine:
    """A progress line."""

    def __init__(self):
        self._display = _notebook()
        self._handle = None
        self._last = 0.0
        self._text = ""

    def show(self, text, share=None, *, now=False):
        """Shows progress; `share` is the completed part, from 0 to 1, if known. Notebooks are updated at a visible rate only."""
        self._text = text
        if self._display is None:
            bar = "" if share is None else f"{share:4.0%}  "
            sys.stderr.write(f"\r{bar}{text}\033[K")
            sys.stderr.flush()
        elif now or time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            value = "" if share is None else f' value="{min(max(share, 0.0), 1.0):.3f}"'
            bar = f'<progress{value} style="width: 16em; vertical-align: middle"></progress>'
            self._handle = self._display(f"<div>{bar} <span>{html.escape(text)}</span></div>", self._handle)

    def end(self):
        """Leaves the last text in a notebook, and nothing in a terminal."""
        if self._display is None:
            if self._text:
                sys.stderr.write("\r\033[K")
                sys.stderr.flush()
        elif self._handle is not None:
            self._handle = self._display(f"<div>{html.escape(self._text)}</div>", self._handle)


def watch(progress, *, max_states=None, timeout=None):
    """Returns the progress callback of a search, and the callback for its end."""
    if progress is not True:
        return (progress or None), lambda: None
    shown = ProgressLine()

    def line(states, transitions, seconds):
        shares = [states / max_states if max_states else 0.0, seconds / timeout if timeout else 0.0]
        share = max(shares) if max_states or timeout else None
        shown.show(f"{states:,} states, {transitions:,} transitions, {seconds:.1f} s", share)

    return line, shown.end


def rows(progress, total):
    """Returns the callback for each row of a sweep, with its number and description, and the callback for the end."""
    if progress is True:
        shown = ProgressLine()
        return lambda done, of: shown.show(f"{done} of {total} rows: {of}" if of else f"{done} rows", done / total, now=True), shown.end
    if progress:
        return lambda done, _of: progress(done, total), lambda: None
    return lambda _done, _of: None, lambda: None
