// The results of a page, as described in docs/schema. The program that wrote the page has validated
// them.

/** A number that may be too large for an exact number in a browser. */
export type Count = number | string;
export type Verdict = "true" | "false" | "unknown";

/** An error with its place. */
export interface Refusal {
  message: string;
  place: { file: string; line: number; column: number; text: string } | null;
  notes: string[];
}

export interface Part {
  action: string;
  hidden: boolean;
  from: { component: string; action: string }[];
  receiver?: string;
}

export interface Step {
  from: number;
  to: number;
  action: string;
  hidden: string[];
  parts: Part[];
  changed: Record<string, string>;
  meaning?: Record<string, string | null>;
  at_once?: true;
  state?: Record<string, string>;
}

export interface Parameter {
  name: string;
  component: string;
  initial: string | null;
}

export interface Offer {
  action: string;
  line: number | null;
  why_not: string[];
}

export interface Ending {
  kind: "terminated" | "finished" | "hang";
  components: {
    component: string;
    posture: string;
    line: number | null;
    offers: Offer[];
    conditions_false: { action: string; line: number | null }[];
  }[];
}

export interface Note {
  kind: "warning" | "note";
  text: string;
  file: string | null;
  line: number | null;
  column: number | null;
}

export interface Evidence {
  verdict: Verdict | null;
  kind: "counterexample" | "witness" | "trace";
  linear: boolean;
  back_to: number | null;
  components: string[];
  parameters: Parameter[];
  steps: Step[];
  model?: string;
  formula?: string;
  ending?: Ending;
  execution?: Graph;
}

interface Head {
  model?: string;
  command?: string;
  parameters?: Record<string, string>;
  tool?: { name: string; version: string };
  seconds?: number;
  peak_memory_bytes?: number;
  stop?: string;
}

export interface CheckResult {
  formula: string;
  verdict: Verdict;
  reason: string;
  for?: string;
  cases?: number;
  equations?: Count;
  states?: Count;
  engine?: string;
  engine_reason?: string;
  seconds?: number;
  text?: string;
  first_line?: number;
  linear?: boolean;
  components?: string[];
  parameters?: Parameter[];
  evidence: Step[];
  evidence_left_out?: number;
  back_to?: number | null;
  vacuous: { line: number; column: number; text: string }[];
  notes?: Note[];
  ending?: Ending;
  execution?: Graph;
  error?: Refusal;
}

export interface Check extends Head {
  results: CheckResult[];
  warnings?: Note[];
}

export interface Explore extends Head {
  states?: Count;
  transitions?: Count | null;
  deadlocks?: Count | null;
  levels?: number;
  rounds?: number;
  engine?: string;
  reason?: string;
  reduced?: { equivalence: string; states: Count; transitions: Count };
  ends?: { terminated: Count; finished: Count; hang: Count };
  warnings?: Note[];
  sought?: "deadlock" | "action" | "divergence";
  action?: string | null;
  ways?: Evidence[];
  clean_ends?: Count;
}

export interface Row {
  job: string;
  formula: string | null;
  parameters: Record<string, string>;
  states: Count | null;
  transitions: Count | null;
  equations: Count | null;
  verdict: Verdict | null;
  seconds: number;
  peak_memory_bytes: number;
  stop: string;
  engine: string | null;
  confluence: string | null;
}

export interface Sweep extends Head {
  order?: string[];
  rows?: Row[];
}

export interface Graph {
  title: string;
  threads: string[];
  events: { name: string; thread: number | null; text: string; code: string; reads_initial: boolean }[];
  edges: { from: number; to: number; relation: string; forbids: boolean }[];
}

export interface LitmusTest {
  file: string;
  name?: string;
  condition?: string;
  verdict?: Verdict;
  herd?: string;
  observation?: string;
  positive?: Count;
  negative?: Count;
  states?: Record<string, string>[];
  stop?: string;
  flags?: string[];
  error?: Refusal;
  not_asked?: string;
  text?: string;
  execution?: Graph;
  shown?: string[];
  allowed?: string[];
  forbidden_but_shown?: string[];
  allowed_not_shown?: string[];
  not_compared?: string[];
}

export interface Litmus extends Head {
  /** "Traces" if these are traces of logs, not litmus tests. */
  subject?: string;
  tests?: LitmusTest[];
  summary?: { tests: number; ok: number; no: number; unknown: number; refused: number };
  machine?: string;
  against?: string;
}

export interface Meaning {
  test: string;
  machine: string;
}

export interface Conformance {
  name: string;
  verdict: Verdict;
  reason?: string;
  names?: { processors: Meaning[]; addresses: (Meaning & { values: Meaning[] })[] };
  test?: string;
  operations?: number;
  axiom?: string;
  cycle?: { event: string; relation: string }[];
  litmus?: string;
  confirmed?: { litmus: boolean; replay: boolean };
  evidence?: Evidence;
  execution?: Graph;
}

/** A seeded fault of a machine; without operations it was not found. */
export interface Fault {
  name: string;
  states: Count;
  stop: string;
  operations?: number;
  models?: string[];
  test?: string;
}

/** A minimum set of litmus tests that finds the faults. */
export interface Suite {
  tests: { name: string; program: string; allowed: number; finds: { fault: string; execution: string }[]; litmus: string }[];
  candidates: number;
  operations: number;
  least: boolean;
}

/** Programs of every length: what was searched, checked, and assumed. */
export interface EveryLength extends Head {
  interface: string;
  operations: "any";
  processors: string[];
  addresses: string[];
  values: string[];
  states: Count;
  transitions: Count;
  searches: { what: string; order?: string; guesses: number; states: Count; violated: string | null }[];
  checked: { what: string; text: string }[];
  assumed: { what: string; text: string }[];
  certificate: string | null;
  strongest: string | null;
  models: Conformance[];
  faults?: Fault[];
  suite?: Suite;
}

export interface Conform extends Head {
  interface: string;
  operations: number;
  longest: number;
  states: Count;
  transitions: Count;
  reduced_states: Count;
  executions: Count;
  histories: Count;
  programs: Count;
  programs_by_length?: Count[];
  endless_programs?: Count;
  unmatched_lines?: string[];
  idle_processors?: string[];
  complete_to: number | null;
  processors?: string[];
  strongest?: { name: string }[];
  models: Conformance[];
  faults?: Fault[];
  suite?: Suite;
}

/** A Murphi model: the first failure, and a shortest run to it. */
export interface Murphi extends Head {
  verdict: string;
  failed: { message: string; line?: number; column?: number }[];
  states: Count;
  rules: Count;
  depth: number;
  path?: { rule: string; changes: Record<string, string> }[];
  reason?: string;
  warnings?: Note[];
}

export interface Conflict {
  message: string;
  operations: { thread: string; operation: string; line: number }[];
  cycle: { from: number; to: number; relation: string }[];
}

export interface TraceAnswer {
  model: string;
  verdict: Verdict;
  reason?: string;
  stop?: string;
  conflict?: Conflict;
  order?: string[];
  litmus?: { operations: number; text?: string; confirmed: boolean; reason?: string };
}

export interface Trace extends Head {
  traces: { file: string; name: string; verdict: Verdict; operations: number; threads: number; models: TraceAnswer[] }[];
  models: { model: string; allowed: Count; forbidden: Count; unknown: Count }[];
  skipped: unknown[];
}

export interface Proof extends Head {
  verdict: Verdict;
  processes?: string;
  why?: string;
  instances?: number[] | null;
  empty_from: number | null;
  assumptions: Count;
  assumed?: string[];
  checked?: Record<string, unknown>;
  searches: Count;
  search: Record<string, Count>;
  verified?: Record<string, Count>;
  verification_seconds: number;
  run?: { processes: number; steps: string[]; states: string[]; unsafe: { number: number; of: number[] } };
}

/** A step of a program: its thread and instruction, the effect on memory, and the state after it. */
export interface Interleaved {
  thread: string;
  instruction: string;
  event: string;
  memory: Record<string, number>;
  buffers: [string, number][][];
}

export interface Program extends Head {
  verdict: Verdict;
  property: string;
  threads: number | string;
  states: Count;
  transitions: Count;
  bound_reached: boolean;
  interleaving?: Interleaved[];
  unsafe_for?: Record<string, string>;
}

export interface Robust extends Head {
  verdict: Verdict;
  property: string;
  threads: number | string;
  states: Count;
  borderline?: { steps: Interleaved[]; thread: string; cell: string; newest: number; stale: number };
  assertions?: { property: string; model: string; interleaving?: Interleaved[] };
  fences?: { places: { line: number; column: number; put: string; before: string }[] | null };
}

export interface Compared extends Head {
  a: { file: string; states: Count; transitions: Count };
  b: { file: string; states: Count; transitions: Count };
  equivalence: string | null;
  preorder: string | null;
  verdict: Verdict;
  confirmed: boolean | null;
  difference: { kind: string; labels?: string[]; formula?: string; only_in?: "a" | "b"; not_checkable?: string } | null;
}

export interface Reduced extends Head {
  states: Count;
  transitions: Count;
  equivalence: string;
  reduced: { equivalence: string; states: Count; transitions: Count };
}

export interface Info extends Head {
  states: Count;
  transitions: Count;
  unreachable: Count;
  deadlocks: Count;
  divergences: Count;
  taus: Count;
  labels: Count;
  actions: Record<string, Count>;
  branching: { least: number; mean: number; most: number };
  deterministic: boolean;
  acyclic: boolean;
  declared: { name: string; sort: string; value?: string; default: string; constraint: string; help: string }[];
}

export interface Models extends Head {
  classes: string[][];
  edges: { stronger: number; weaker: number }[];
  separating: { allows: string; forbids: string; test: string }[];
  operations: number;
  plain: number;
  locations: number;
  programs: Count;
  tests: Count;
}

export type Shown =
  | { kind: "check"; file: string | null; value: Check }
  | { kind: "explore"; file: string | null; value: Explore | Murphi }
  | { kind: "sweep"; file: string | null; value: Sweep }
  | { kind: "litmus"; file: string | null; value: Litmus }
  | { kind: "conform"; file: string | null; value: Conform | EveryLength }
  | { kind: "evidence"; file: string | null; value: Evidence }
  | { kind: "trace"; file: string | null; value: Trace }
  | { kind: "prove"; file: string | null; value: Proof | Program }
  | { kind: "program"; file: string | null; value: Program }
  | { kind: "robust"; file: string | null; value: Robust }
  | { kind: "compare"; file: string | null; value: Compared }
  | { kind: "reduce"; file: string | null; value: Reduced }
  | { kind: "info"; file: string | null; value: Info }
  | { kind: "models"; file: string | null; value: Models }
  | { kind: "other"; title: string; file: string | null; value: { model?: string; command?: string } };

export interface Page {
  title: string;
  command: string;
  shown: Shown[];
}
