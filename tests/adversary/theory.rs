//! Generator of mappings with equations, and of values from small sets.
//!
//! Nullary mappings are defined through others, functions by conditions, by patterns of
//! constructors and of lists, by recursion, by `lambda`, and with functions as arguments and as
//! results. Equations apply mappings declared before only, so that rewriting ends.

use super::data::{BOOL, D, E, INT, Maker, Mapping, NAT, Sort, T, Vars, in_brackets};

impl Maker<'_> {
    /// Returns a nullary mapping of a sort: one that is there, or a new one.
    pub fn nullary(&mut self, sort: &Sort) -> String {
        let known: Vec<String> = self
            .mappings
            .iter()
            .filter(|m| m.params.is_empty() && m.result == *sort)
            .map(|m| m.name.clone())
            .collect();
        if !known.is_empty() && (self.defining > 0 || self.theory.len() > 5 || self.t.chance(1, 2))
        {
            return self.t.choose(&known).clone();
        }
        if !self.may_declare || self.defining > 1 || self.theory.len() > 7 {
            return self.constant(sort);
        }
        let name = self.name("k");
        self.defining += 1;
        let depth = 1 + self.t.below(2);
        let value = self.expr(sort, &Vars::new(), depth);
        self.defining -= 1;
        self.theory.push(format!("map {name}: {};\neqn {name} = {value};\n", sort.text()));
        self.mappings.push(Mapping {
            name: name.clone(),
            params: Vec::new(),
            result: sort.clone(),
        });
        name
    }
    /// Returns an application of a mapping, or of a variable that is a function.
    pub fn apply(&mut self, sort: &Sort, vars: &Vars, d: usize) -> String {
        let functions: Vec<(String, Vec<Sort>)> = vars
            .iter()
            .filter_map(|(name, s)| match s {
                Sort::Function(params, result) if **result == *sort => {
                    Some((name.clone(), params.clone()))
                }
                _ => None,
            })
            .collect();
        let known: Vec<(String, Vec<Sort>)> = self
            .mappings
            .iter()
            .filter(|m| !m.params.is_empty() && m.result == *sort)
            .map(|m| (m.name.clone(), m.params.clone()))
            .collect();
        let may_declare = self.may_declare && self.defining == 0 && self.theory.len() < 6;
        let (name, params) = if !functions.is_empty() && self.t.chance(2, 3) {
            self.t.choose(&functions).clone()
        } else if may_declare && (known.is_empty() || self.t.chance(1, 2)) {
            self.mapping(sort)
        } else if known.is_empty() {
            return self.expr(sort, vars, d);
        } else {
            self.t.choose(&known).clone()
        };
        let args: Vec<String> = params.iter().map(|s| self.expr(s, vars, d)).collect();
        // A function-valued mapping is applied in two steps.
        format!("{name}({})", args.join(if name.ends_with('_') { ")(" } else { ", " }))
    }
    /// Declares a mapping with this result.
    fn mapping(&mut self, result: &Sort) -> (String, Vec<Sort>) {
        self.defining += 1;
        let found = self.declaration(result);
        self.defining -= 1;
        found
    }
    fn declaration(&mut self, result: &Sort) -> (String, Vec<Sort>) {
        let name = self.name("f");
        let r = result.text();
        let (declared, equations, params): (String, String, Vec<Sort>) = match self.t.below(7) {
            0 | 1 => {
                let params: Vec<Sort> = (0..1 + self.t.below(2)).map(|_| self.plain()).collect();
                let vars: Vars = params.iter().map(|s| (self.name("a"), s.clone())).collect();
                let args: Vec<&str> = vars.iter().map(|v| v.0.as_str()).collect();
                let head = format!("{name}({})", args.join(", "));
                let body = if self.t.chance(1, 2) {
                    format!("{head} = {};", self.expr(result, &vars, 2))
                } else {
                    let (c, x, y) = (
                        self.expr(&BOOL, &vars, 1),
                        self.expr(result, &vars, 1),
                        self.expr(result, &vars, 1),
                    );
                    let c = in_brackets(&c);
                    format!("{c} -> {head} = {x};\n    !{c} -> {head} = {y};")
                };
                (sorts(&params), format!("{}eqn {body}", variables(&vars)), params)
            }
            2 => {
                let vars: Vars = vec![(self.name("a"), NAT)];
                let bodies: Vec<String> = (0..3).map(|_| self.expr(result, &vars, 1)).collect();
                let line = |i: usize| format!("{name}(e{}, {}) = {};", i + 1, vars[0].0, bodies[i]);
                let text = format!("{}eqn {} {} {}", variables(&vars), line(0), line(1), line(2));
                ("E # Nat".into(), text, vec![E, NAT])
            }
            3 => {
                let (x, l) = (self.name("a"), self.name("a"));
                let vars: Vars = vec![(x.clone(), E), (l.clone(), Sort::of("List", E))];
                let mut inner = vars.clone();
                inner.push((format!("{name}({l})"), result.clone()));
                let (empty, step) =
                    (self.expr(result, &Vars::new(), 1), self.expr(result, &inner, 1));
                let text = format!(
                    "{}eqn {name}([]) = {empty}; {name}({x} |> {l}) = {step};",
                    variables(&vars)
                );
                ("List(E)".into(), text, vec![Sort::of("List", E)])
            }
            4 => {
                let (b, x) = (self.name("a"), self.name("a"));
                let vars: Vars = vec![(b.clone(), BOOL), (x.clone(), E)];
                let bodies: Vec<String> = (0..3)
                    .map(|i| {
                        self.expr(result, &if i == 0 { Vars::new() } else { vars[..i].to_vec() }, 1)
                    })
                    .collect();
                let head = variables(&vars);
                let text = format!(
                    "{head}eqn {name}(d1) = {}; {name}(d2({b})) = {}; {name}(d3({x}, {b})) = {};",
                    bodies[0], bodies[1], bodies[2]
                );
                ("D".into(), text, vec![D])
            }
            5 => {
                // A function as argument.
                let vars: Vars =
                    vec![(self.name("a"), NAT.to(result.clone())), (self.name("a"), NAT)];
                let text = format!(
                    "{}eqn {name}({}, {}) = {};",
                    variables(&vars),
                    vars[0].0,
                    vars[1].0,
                    self.expr(result, &vars, 2)
                );
                (
                    format!("(Nat -> {}) # Nat", in_sort_brackets(result)),
                    text,
                    vec![NAT.to(result.clone()), NAT],
                )
            }
            _ => {
                // A function as result.
                let vars: Vars = vec![(self.name("a"), INT), (self.name("a"), NAT)];
                let text = format!(
                    "{}eqn {name}_({})({}) = {};",
                    variables(&vars),
                    vars[0].0,
                    vars[1].0,
                    self.expr(result, &vars, 1)
                );
                self.theory.push(format!(
                    "map {name}_: Int -> Nat -> {};\n{text}\n",
                    in_sort_brackets(result)
                ));
                self.mappings.push(Mapping {
                    name: format!("{name}_"),
                    params: vec![INT, NAT],
                    result: result.clone(),
                });
                return (format!("{name}_"), vec![INT, NAT]);
            }
        };
        self.theory.push(format!(
            "map {name}: {declared} -> {};\n{equations}\n",
            if matches!(result, Sort::Function(..)) { r } else { in_sort_brackets(result) }
        ));
        self.mappings.push(Mapping {
            name: name.clone(),
            params: params.clone(),
            result: result.clone(),
        });
        (name, params)
    }
    /// Writes an expression with few possible values, for a parameter of a process.
    pub fn clip(&mut self, sort: &Sort, vars: &Vars, depth: usize) -> String {
        let e = self.expr(sort, vars, depth);
        let simple = vars.iter().any(|v| v.0 == e);
        if simple {
            return e;
        }
        let p = in_brackets(&e);
        match sort {
            Sort::Plain("Nat") => match self.t.below(3) {
                0 => format!("{p} mod {}", self.bound + 1),
                1 => format!("min({e}, {})", self.bound),
                _ => format!("if({e} <= {0}, {e}, {0})", self.bound),
            },
            Sort::Plain("Pos") if self.t.chance(1, 2) => format!("min({e}, {})", self.bound + 1),
            Sort::Plain("Pos") => format!("{p} mod {} + 1", self.bound),
            Sort::Plain("Int") if self.t.chance(1, 2) => format!("max(-2, min({e}, 2))"),
            Sort::Plain("Int") => format!("{p} mod 5 - 2"),
            Sort::Plain("Real") => format!("(floor({e}) mod 3) / 2"),
            Sort::Of("Set", s) if **s == E => format!("{{x: E | x in {p}}}"),
            Sort::Of("Bag", s) if **s == E => format!("{{x: E | count(x, {e}) mod 3}}"),
            Sort::Of("List", s) if **s == NAT => format!("cutn({e})"),
            Sort::Of("List", _) => format!("cutl({e})"),
            s if *s == E.to(BOOL) => format!("cutf({e})"),
            s if *s == E.to(NAT) => format!("cutg({e})"),
            s if *s == T || *s == Sort::of("FBag", E) => format!("cut({e})"),
            _ => e,
        }
    }
    /// Returns a sort of a parameter of a process.
    pub fn parameter(&mut self) -> Sort {
        use super::data::{C, ID, POS, REAL};
        let sorts = [
            NAT,
            E,
            BOOL,
            NAT,
            POS,
            INT,
            REAL,
            D,
            C,
            T,
            ID,
            Sort::of("List", E),
            Sort::of("List", NAT),
            Sort::of("FSet", E),
            Sort::of("Set", E),
            Sort::of("FBag", E),
            Sort::of("Bag", E),
            E.to(BOOL),
            E.to(NAT),
        ];
        self.t.choose(&sorts).clone()
    }
}

fn in_sort_brackets(sort: &Sort) -> String {
    if matches!(sort, Sort::Function(..)) { format!("({})", sort.text()) } else { sort.text() }
}

fn sorts(params: &[Sort]) -> String {
    params.iter().map(in_sort_brackets).collect::<Vec<_>>().join(" # ")
}

fn variables(vars: &Vars) -> String {
    let all: Vec<String> = vars.iter().map(|(v, s)| format!("{v}: {};", s.text())).collect();
    format!("var {}\n", all.join(" "))
}
