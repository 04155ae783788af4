// Colours and places without a language server: keywords, comments, numbers and strings of the other
// text formats; occurrences of an action in a process.

const MURPHI = "alias array assert begin boolean case const do else elsif end enum endfor endfunction endif endprocedure endrule endruleset endstartstate endswitch endwhile error exists false for forall from function if invariant isundefined multiset multisetadd of procedure process put record return rule ruleset scalarset startstate switch then to true type undefine union var while cover liveness clear endexists endforall endrecord endtype";
const INTERFACE = "initial numbers from load store update fence commit observe internal program processors addresses values acquire release reserve conditional after as tso";
const FAULTS = "fault drop swap delay duplicate replace in of by when before after with";

/** Keywords and the start of a comment of each format. */
const FORMATS: [RegExp, Set<string>, string][] = [
  [/\.m$/, new Set(MURPHI.split(" ")), "--"],
  [/\.interface$/, new Set(INTERFACE.split(" ")), "//"],
  [/\.(faults|views)$/, new Set(FAULTS.split(" ")), "//"],
];

export interface SimpleToken {
  from: number;
  to: number;
  kind: "keyword" | "comment" | "number" | "string";
}

/** Returns the coloured tokens of a file, in order; none for other formats. */
export function simpleTokens(path: string, text: string): SimpleToken[] {
  const format = FORMATS.find(([ending]) => ending.test(path));
  if (!format) return [];
  const [, keywords, comment] = format;
  const tokens: SimpleToken[] = [];
  const word = /\/\*[\s\S]*?\*\/|--.*|\/\/.*|"[^"\n]*"|\b\d+\b|\b[A-Za-z_]\w*\b/g;
  for (const { 0: found, index } of text.matchAll(word)) {
    const kind = found.startsWith("/*") || found.startsWith(comment) ? "comment" : found.startsWith('"') ? "string" : /^\d/.test(found) ? "number" : keywords.has(found.toLowerCase()) ? "keyword" : null;
    if (kind) tokens.push({ from: index, to: index + found.length, kind });
  }
  return tokens;
}

/** Returns the offsets of a name in a text, without comments and declarations: in the definition of a process if it is there, else in all of them. */
export function occurrences(text: string, process: string, name: string): number[] {
  const blank = (s: string) => " ".repeat(s.length);
  const plain = text.replace(/%.*|--.*|\/\/.*/g, blank).replace(/\b(act|allow|comm|hide|block|rename|sort|map|cons|eqn|var)\b[^;]*?(?=\b(?:act|proc|init|sort|map|cons|eqn|glob)\b|;|$)/g, (s, word: string) => (["allow", "comm", "hide", "block", "rename"].includes(word) ? s : blank(s)));
  const escaped = (s: string) => s.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const at = (from: number, to: number) => [...plain.slice(from, to).matchAll(new RegExp(`(?<![\\w'])${escaped(name)}(?![\\w'])`, "g"))].map((m) => m.index + from);
  const definition = process === "" ? null : new RegExp(`(?<![\\w'])${escaped(process)}\\s*(\\([^)]*\\))?\\s*=(?!=)`).exec(plain);
  if (definition) {
    const from = definition.index + definition[0].length;
    const end = plain.indexOf(";", from);
    const inside = at(from, end < 0 ? plain.length : end);
    if (inside.length > 0) return inside;
  }
  const rule = new RegExp(`\\brule\\s+"${escaped(name).replace(/_/g, "[^\"]")}"`).exec(text);
  if (rule) return [rule.index + rule[0].length - name.length - 1];
  return at(0, plain.length);
}
