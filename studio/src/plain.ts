// A result without a view of its own: its JSON as lists and tables.

import { count, facts, h, verdict } from "./dom";

type Value = string | number | boolean | null | Value[] | { [key: string]: Value };

/** Keys that every result has, and that the head of a result shows. */
const LEFT_OUT = new Set(["schema_version", "tool", "command", "model", "host"]);
/** Number of rows and elements that are shown. */
const MOST = 500;

const words = (key: string) => key.charAt(0).toUpperCase() + key.slice(1).replaceAll("_", " ");
const isObject = (value: Value): value is { [key: string]: Value } => typeof value === "object" && value !== null && !Array.isArray(value);
const isScalar = (value: Value) => typeof value !== "object" || value === null;

function scalar(key: string, value: Value): Node | string {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : String(value);
  const text = String(value);
  if (["true", "false", "unknown"].includes(text) || key === "verdict") return verdict(text);
  return text.includes("\n") ? h("pre", {}, text) : text;
}

function list(key: string, values: Value[]): Node | string {
  const shown = values.slice(0, MOST);
  const more = values.length > shown.length ? [h("p", { class: "quiet" }, `${count(values.length - shown.length)} more`)] : [];
  if (values.length > 0 && values.every(isObject)) {
    const columns = [...new Set(shown.flatMap((v) => Object.keys(v as object)))];
    const cell = (row: Value, column: string) => h("td", {}, view(column, (row as { [key: string]: Value })[column] ?? null));
    const rows = shown.map((row) => h("tr", {}, ...columns.map((c) => cell(row, c))));
    const head = h("tr", {}, ...columns.map((c) => h("th", { scope: "col" }, words(c))));
    return h("div", { class: "wide" }, h("table", { class: "results" }, h("thead", {}, head), h("tbody", {}, ...rows)), ...more);
  }
  if (values.every(isScalar)) return values.length > 8 ? h("div", {}, h("pre", {}, shown.join("\n")), ...more) : shown.join(", ");
  return h("ol", {}, ...shown.map((v) => h("li", {}, view(key, v))), ...more);
}

function view(key: string, value: Value): Node | string {
  if (Array.isArray(value)) return list(key, value);
  return isObject(value) ? facts(entries(value)) : scalar(key, value);
}

function entries(value: { [key: string]: Value }): [string, Node | string][] {
  return Object.entries(value).map(([key, v]) => [words(key), view(key, v)]);
}

/** The view of a result. Small values come first, then tables. */
export function plainView(value: object): HTMLElement {
  const all = Object.entries(value as { [key: string]: Value }).filter(([key]) => !LEFT_OUT.has(key));
  const small = all.filter(([, v]) => isScalar(v));
  const large = all.filter(([, v]) => !isScalar(v) && (!Array.isArray(v) || v.length > 0));
  const sections = large.map(([key, v]) => h("section", {}, h("h3", {}, words(key)), view(key, v)));
  return h("div", { class: "plain" }, facts(small.map(([key, v]) => [words(key), scalar(key, v)])), ...sections);
}
