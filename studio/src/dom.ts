// Construction of elements. Texts are set as texts, never as markup: the name of a model cannot
// become a tag.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | EventListener>;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  for (const child of children) {
    if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/** An HTML element. A function as attribute listens to the event of that name. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

/** Formats a number with thousands separators. */
export function count(n: number | string | null | undefined): string {
  return n === null || n === undefined ? "" : String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** Formats a time. */
export function seconds(n: number | undefined): string {
  if (n === undefined) return "";
  if (n >= 100) return `${count(Math.round(n))} s`;
  return n >= 0.0995 ? `${Number(n.toPrecision(3))} s` : `${Number((n * 1000).toPrecision(2))} ms`;
}

/** Formats a size of memory. */
export function bytes(n: number | undefined): string {
  if (n === undefined) return "";
  const mb = n / (1 << 20);
  return mb >= 1024 ? `${(mb / 1024).toFixed(1)} GiB` : `${mb.toFixed(0)} MiB`;
}

/** Formats a count with its noun. */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : /(s|ch|x)$/.test(noun) ? "es" : "s"}`;
}

const MARKS: Record<string, string> = { true: "✔", false: "✘", unknown: "?" };

/** A verdict as a word with a mark, so that colour is never the only sign. */
export function verdict(word: string | null | undefined, text = word): HTMLElement {
  if (!word) return h("span");
  return h("span", { class: `verdict verdict-${word}` }, h("span", { "aria-hidden": "true" }, MARKS[word] ?? ""), " ", text ?? word);
}

/** A list of terms with descriptions. Empty ones are left out. */
export function facts(list: [string, Child][]): HTMLElement {
  const shown = list.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return h("dl", { class: "facts" }, ...shown.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))));
}

let next = 0;
/** Returns a new unique id. */
export function fresh(prefix: string): string {
  next += 1;
  return `${prefix}-${next}`;
}

/** A command with a button that copies it. */
export function command(text: string): HTMLElement {
  const button = h("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", () => {
    const done = (word: string) => {
      button.textContent = word;
      setTimeout(() => (button.textContent = "Copy"), 1500);
    };
    // A page opened as a file may have no clipboard: select the text instead.
    const select = () => {
      getSelection()?.selectAllChildren(code);
      done("Selected");
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => done("Copied"), select);
    else select();
  });
  const code = h("code", {}, text);
  return h("div", { class: "command" }, code, button);
}

/** The page's font at a size, for measuring. */
const family = getComputedStyle(document.body).fontFamily;
export function font(size: number, weight = 400): string {
  return `${weight} ${size}px ${family}`;
}

/** Returns the width of the widest text in a font, in pixels. */
const pen = document.createElement("canvas").getContext("2d");
export function widest(texts: string[], font: string): number {
  if (!pen) return Math.max(0, ...texts.map((t) => t.length * 7));
  pen.font = font;
  return texts.reduce((most, text) => Math.max(most, pen.measureText(text).width), 0);
}

/** Downloads data as a file. */
export function saveFile(data: Blob, name: string): void {
  const address = URL.createObjectURL(data);
  h("a", { href: address, download: name }).click();
  // The browser reads it after this returns.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
