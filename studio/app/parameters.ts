// Parameters of the model: a line of text, and a field for each declared parameter that edits this
// line.
//
// The line is the only state, so that it can be pasted, and ranges for sweeps typed. Blanks around
// `=` are allowed.

import { h } from "../src/dom";
import type { Parameter } from "./server";

/** Returns names and values of a line such as `n = 3 full=true; k=1..=5`. Calls `refuse` with each word that has no value. */
function parse(line: string, refuse: (word: string) => void): Record<string, string> {
  const out: Record<string, string> = {};
  const words = line.replace(/(^|[\s;])([A-Za-z_][\w']*)\s*=\s*/g, "$1$2=").split(/[\s;]+/).filter(Boolean);
  for (const word of words) {
    const at = word.indexOf("=");
    if (at <= 0 || at === word.length - 1) refuse(word);
    else out[word.slice(0, at)] = word.slice(at + 1);
  }
  return out;
}

/** Returns the parameters of a line that is being edited: words without a value are left out. */
const known = (line: string) => parse(line, () => undefined);

export class ParametersField {
  readonly input = h("input", { type: "text", class: "parameters", placeholder: "n=3 m=true", "aria-label": "Parameters", title: "Parameters with their values; for a sweep ranges: n=1..=5" });
  private readonly list = h("div", { class: "fields" });
  readonly fields = h("details", { class: "declared", hidden: true }, h("summary", {}, "Fields"), this.list);
  private declared: Parameter[] = [];

  constructor(private readonly changed: () => void) {
    this.input.addEventListener("input", () => {
      this.fill();
      this.changed();
    });
  }

  get value(): Record<string, string> {
    return parse(this.input.value, (word) => {
      throw new Error(`Parameters: \`${word}\` has no value; write NAME=VALUE, such as n=3`);
    });
  }

  /** The words that have a value. */
  get known(): Record<string, string> {
    return known(this.input.value);
  }

  get line(): string {
    return this.input.value;
  }

  set line(text: string) {
    this.input.value = text;
    this.fill();
  }

  /** Shows the declared parameters of a model. */
  declare(declared: Parameter[]): void {
    this.declared = declared;
    this.fields.hidden = declared.length === 0;
    const rows = declared.map((p) => {
      const input = h("input", { type: "text", name: p.name, placeholder: p.default === "" ? p.sort : p.default, "aria-label": `Value of ${p.name}` });
      input.addEventListener("input", () => this.set(p.name, input.value.trim()));
      const about = [p.sort, p.constraint && `where ${p.constraint}`, p.help].filter(Boolean).join(", ");
      return h("label", {}, h("code", {}, p.name), input, h("span", { class: "quiet" }, about));
    });
    this.list.replaceChildren(...rows);
    this.fill();
  }

  /** Replaces the value of a parameter in the line; an empty value removes it. */
  private set(name: string, value: string): void {
    const { [name]: _, ...others } = known(this.input.value);
    const all = value === "" ? others : { ...others, [name]: value };
    this.input.value = Object.entries(all).map(([n, v]) => `${n}=${v}`).join(" ");
    this.changed();
  }

  /** Copies the values of the line to the fields. */
  private fill(): void {
    const values = known(this.input.value);
    for (const { name } of this.declared) {
      const field = this.list.querySelector<HTMLInputElement>(`input[name="${CSS.escape(name)}"]`);
      if (field && field !== document.activeElement) field.value = values[name] ?? "";
    }
  }
}
