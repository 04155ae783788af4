//! Random models from the productions of the grammar, well typed by construction.
//!
//! In: a seeded generator. Out: the text of a model with a few hundred states at most of the time.
//! The language is the part that Rumur and this project share without a known difference, so a
//! model is also a test against Rumur. Such differences are: a copy of an undefined variable (an
//! error in Rumur), multisets and unions (not in Rumur), priorities. [`Model::features`] names the
//! productions in the text, so that a test can require all of them.

use mu_base::random::Random;
use std::collections::BTreeSet;

/// Type of the generated language.
#[derive(Clone, Debug, PartialEq)]
enum Type {
    Boolean,
    Range(i64, i64),
    /// Number of an enumeration.
    Enum(usize),
    /// Number of a scalarset.
    Scalarset(usize),
    /// Index and element.
    Array(Box<Type>, Box<Type>),
    /// Fields `f0`, `f1`, ….
    Record(Vec<Type>),
}

/// Random model.
pub struct Model {
    /// Its text.
    pub text: String,
    /// Productions in it.
    pub features: BTreeSet<&'static str>,
}

struct Generator<'r> {
    random: &'r mut Random,
    enums: Vec<Vec<String>>,
    scalarsets: Vec<u32>,
    constants: Vec<(String, i64)>,
    /// Global variables, then those in scope; true if it can be written.
    variables: Vec<(String, Type, bool)>,
    /// Functions without effects: name, parameters, result.
    functions: Vec<(String, Vec<Type>, Type)>,
    /// Procedures: name and types of `var` parameters.
    procedures: Vec<(String, Vec<Type>)>,
    /// True if variables may be undefined, so that none is copied as a whole.
    undefined: bool,
    /// True if start states may depend on an order.
    ordered: bool,
    /// True within an index.
    in_index: bool,
    next: usize,
    features: BTreeSet<&'static str>,
}

/// Generates a model. Its start states do not depend on the order of a scalarset's elements.
pub fn model(random: &mut Random) -> Model {
    generate(random, false)
}

/// Generates a model with start states that may depend on the order of a scalarset's elements.
pub fn ordered_model(random: &mut Random) -> Model {
    generate(random, true)
}

/// Generates a model with a liveness property for each element of a scalarset, and no errors that
/// end the search early.
pub fn live_model(random: &mut Random) -> Model {
    let size = 2 + random.below(2);
    let mut text = format!(
        "type S: scalarset({size}); V: 0..3;
         var a: array [S] of V; x: V; o: S;
         ruleset i: S do startstate
           for k: S do a[k] := 0; end; x := 0; o := i; end; end;\n"
    );
    let number = |random: &mut Random| random.below(4);
    let condition = |random: &mut Random| {
        let value = number(random);
        let relation = ["=", "!=", "<=", ">"][random.below(4)];
        match random.below(6) {
            0 => format!("x {relation} {value}"),
            1 => ["o = i", "o != i"][random.below(2)].to_string(),
            2 => format!("a[o] {relation} {value}"),
            3 => format!("forall k: S do k = i | a[k] {relation} {value} end"),
            4 => format!("exists k: S do a[k] {relation} {value} end"),
            _ => format!("a[i] {relation} {value}"),
        }
    };
    for _ in 0..2 + random.below(3) {
        let guard = format!("({}) & ({})", condition(random), condition(random));
        let value = number(random);
        let effect = match random.below(6) {
            0 => format!("x := {value};"),
            1 => "o := i;".to_string(),
            2 => format!("a[o] := {value};"),
            3 => format!("a[i] := {value}; x := {};", number(random)),
            _ => format!("a[i] := {value};"),
        };
        text += &format!("ruleset i: S do rule {guard} ==> begin {effect} end; end;\n");
    }
    let both = format!("({}) | ({})", condition(random), condition(random));
    text += &format!("ruleset i: S do liveness \"live\" {both}; end;\n");
    Model { text, features: BTreeSet::from(["liveness", "ruleset", "scalarset"]) }
}

fn generate(random: &mut Random, ordered: bool) -> Model {
    let undefined = random.chance(1, 4);
    let mut g = Generator {
        random,
        enums: Vec::new(),
        scalarsets: Vec::new(),
        constants: Vec::new(),
        variables: Vec::new(),
        functions: Vec::new(),
        procedures: Vec::new(),
        undefined,
        ordered,
        in_index: false,
        next: 0,
        features: BTreeSet::new(),
    };
    let text = g.model();
    Model { text, features: g.features }
}

impl Generator<'_> {
    fn note(&mut self, feature: &'static str) {
        self.features.insert(feature);
    }
    fn fresh(&mut self, letter: &str) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }
    fn model(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.random.below(3) {
            let value = self.random.below(4) as i64;
            let name = self.fresh("k");
            text += &format!("const {name}: {value};\n");
            self.constants.push((name, value));
            self.note("const");
        }
        for n in 0..self.random.below(3) {
            let members: Vec<String> =
                (0..2 + self.random.below(2)).map(|m| format!("E{n}m{m}")).collect();
            text += &format!("type E{n}: enum {{{}}};\n", members.join(", "));
            self.enums.push(members);
            self.note("enum");
        }
        for n in 0..self.random.below(3) {
            let size = 1 + self.random.below(3) as u32;
            text += &format!("type S{n}: scalarset({size});\n");
            self.scalarsets.push(size);
            self.note("scalarset");
        }
        for _ in 0..1 + self.random.below(4) {
            let ty = self.ty(2);
            let name = self.fresh("x");
            text += &format!("var {name}: {};\n", self.type_text(&ty));
            self.variables.push((name, ty, true));
        }
        for _ in 0..self.random.below(3) {
            text += &self.function();
        }
        for _ in 0..self.random.below(2) {
            text += &self.procedure();
        }
        for _ in 0..1 + self.random.below(2) {
            text += &self.start();
        }
        for _ in 0..1 + self.random.below(4) {
            text += &self.rule(2);
        }
        for _ in 0..self.random.below(3) {
            text += &self.property(2);
        }
        text
    }
    fn simple(&mut self) -> Type {
        match self.random.below(5) {
            0 => Type::Boolean,
            1 if !self.enums.is_empty() => Type::Enum(self.random.below(self.enums.len())),
            2 if !self.scalarsets.is_empty() => {
                Type::Scalarset(self.random.below(self.scalarsets.len()))
            }
            _ => {
                let low = self.random.below(3) as i64 - 1;
                Type::Range(low, low + self.random.below(4) as i64)
            }
        }
    }
    fn ty(&mut self, depth: usize) -> Type {
        match self.random.below(4) {
            0 if depth > 0 => {
                self.note("array");
                let index = match self.simple() {
                    Type::Range(low, high) => Type::Range(low, high.min(low + 2)),
                    other => other,
                };
                Type::Array(Box::new(index), Box::new(self.ty(depth - 1)))
            }
            1 if depth > 0 => {
                self.note("record");
                let count = 1 + self.random.below(2);
                Type::Record((0..count).map(|_| self.ty(depth - 1)).collect())
            }
            _ => self.simple(),
        }
    }
    fn type_text(&self, ty: &Type) -> String {
        match ty {
            Type::Boolean => "boolean".into(),
            Type::Range(low, high) => format!("{low}..{high}"),
            Type::Enum(n) => format!("E{n}"),
            Type::Scalarset(n) => format!("S{n}"),
            Type::Array(index, element) => {
                format!("array [{}] of {}", self.type_text(index), self.type_text(element))
            }
            Type::Record(fields) => {
                let all = fields.iter().enumerate();
                let all: Vec<String> =
                    all.map(|(n, f)| format!("f{n}: {};", self.type_text(f))).collect();
                format!("record {} end", all.join(" "))
            }
        }
    }

    /// Returns a place of a type that satisfies the test, if it finds one.
    fn place(&mut self, written: bool, test: &dyn Fn(&Type) -> bool) -> Option<(String, Type)> {
        for _ in 0..6 {
            if self.variables.is_empty() {
                return None;
            }
            let at = self.random.below(self.variables.len());
            let (mut text, mut ty, writable) = self.variables[at].clone();
            if written && !writable {
                continue;
            }
            loop {
                if test(&ty) && (is_simple(&ty) || self.random.chance(1, 2)) {
                    return Some((text, ty));
                }
                match ty {
                    Type::Array(index, element) => {
                        let Some(at) = self.index(&index) else { break };
                        text = format!("{text}[{at}]");
                        ty = *element;
                    }
                    Type::Record(fields) => {
                        let field = self.random.below(fields.len());
                        text = format!("{text}.f{field}");
                        ty = fields[field].clone();
                    }
                    _ => break,
                }
            }
        }
        None
    }
    /// Returns an index that is mostly in its range.
    fn index(&mut self, ty: &Type) -> Option<String> {
        // Indices in an index are without errors: else their number is not bounded.
        if !self.in_index && self.random.chance(1, 8) {
            self.in_index = true;
            let value = self.value(ty, 1);
            self.in_index = false;
            return value;
        }
        self.safe(ty)
    }
    /// Returns a value without errors.
    fn safe(&mut self, ty: &Type) -> Option<String> {
        let bound = |g: &mut Self| {
            let all = g.variables.iter().filter(|v| !v.2 && v.1 == *ty && v.0.starts_with('i'));
            let all: Vec<String> = all.map(|v| v.0.clone()).collect();
            (!all.is_empty()).then(|| g.random.choose(&all).clone())
        };
        if self.random.chance(1, 2)
            && let Some(name) = bound(self)
        {
            return Some(name);
        }
        match ty {
            Type::Boolean => Some((if self.random.chance(1, 2) { "true" } else { "false" }).into()),
            Type::Range(low, high) => {
                let count = (high - low + 1) as usize;
                Some((low + self.random.below(count) as i64).to_string())
            }
            Type::Enum(n) => {
                let n = *n;
                let at = self.random.below(self.enums[n].len());
                Some(self.enums[n][at].clone())
            }
            Type::Scalarset(_) => bound(self),
            _ => None,
        }
    }
    /// Returns an expression of a simple type.
    fn value(&mut self, ty: &Type, depth: usize) -> Option<String> {
        if depth == 0 || self.random.chance(1, 4) {
            return self.safe(ty);
        }
        if self.random.chance(1, 8) {
            let all: Vec<(String, Vec<Type>)> = (self.functions.iter())
                .filter(|f| compatible(&f.2, ty))
                .map(|f| (f.0.clone(), f.1.clone()))
                .collect();
            if !all.is_empty() {
                let (name, parameters) = self.random.choose(&all).clone();
                let arguments: Option<Vec<String>> =
                    parameters.iter().map(|p| self.safe(p)).collect();
                if let Some(arguments) = arguments {
                    self.note("call");
                    return Some(format!("{name}({})", arguments.join(", ")));
                }
            }
        }
        if self.random.chance(1, 10) {
            let condition = self.condition(depth - 1);
            let (a, b) = (self.value(ty, depth - 1)?, self.value(ty, depth - 1)?);
            self.note("?:");
            return Some(format!("({condition} ? {a} : {b})"));
        }
        match ty {
            Type::Boolean => Some(self.condition(depth)),
            Type::Range(..) => Some(self.number(depth)),
            _ if self.undefined => self.safe(ty),
            _ => {
                let wanted = ty.clone();
                self.place(false, &move |t| *t == wanted).map(|p| p.0).or_else(|| self.safe(ty))
            }
        }
    }
    fn number(&mut self, depth: usize) -> String {
        let is_number = |t: &Type| matches!(t, Type::Range(..));
        match self.random.below(if depth > 0 { 9 } else { 3 }) {
            0 if !self.constants.is_empty() => self.random.choose(&self.constants).0.clone(),
            0 | 1 => self.random.below(4).to_string(),
            2 | 3 => match self.place(false, &is_number) {
                Some((place, _)) if self.undefined => format!("({place} + 0)"),
                Some((place, _)) => place,
                None => "1".into(),
            },
            8 => {
                self.note("unary minus");
                format!("(-{})", self.number(depth - 1))
            }
            n => {
                let sign = ["+", "-", "*", "/", "%"][if n == 7 { 3 } else { n - 4 } % 5];
                let sign = if sign == "/" && self.random.chance(1, 2) { "%" } else { sign };
                self.note(match sign {
                    "+" => "+",
                    "-" => "-",
                    "*" => "*",
                    "/" => "/",
                    _ => "%",
                });
                let (a, b) = (self.number(depth - 1), self.number(depth - 1));
                if "/%".contains(sign) && self.random.chance(7, 8) {
                    let divisor = 1 + self.random.below(3);
                    return format!("({a} {sign} {divisor})");
                }
                format!("({a} {sign} {b})")
            }
        }
    }
    fn condition(&mut self, depth: usize) -> String {
        let leaf = depth == 0;
        match self.random.below(if leaf { 4 } else { 12 }) {
            0 => match self.place(false, &|t| *t == Type::Boolean) {
                Some((place, _)) if self.undefined => format!("({place} & true)"),
                Some((place, _)) => place,
                None => "true".into(),
            },
            1 | 2 => {
                let sign = *self.random.choose(&["<", "<=", ">", ">=", "=", "!="]);
                self.note("comparison");
                let less = depth.saturating_sub(1);
                format!("({} {sign} {})", self.number(less), self.number(less))
            }
            3 => {
                let simple = |t: &Type| matches!(t, Type::Enum(_) | Type::Scalarset(_));
                let Some((place, ty)) = self.place(false, &simple) else { return "true".into() };
                let other = match self.safe(&ty) {
                    Some(other) => other,
                    None => place.clone(),
                };
                self.note("equality");
                let sign = if self.random.chance(2, 3) { "=" } else { "!=" };
                format!("({place} {sign} {other})")
            }
            4 | 5 => {
                self.note("&");
                format!("({} & {})", self.condition(depth - 1), self.condition(depth - 1))
            }
            6 => {
                self.note("|");
                format!("({} | {})", self.condition(depth - 1), self.condition(depth - 1))
            }
            7 => {
                self.note("->");
                format!("({} -> {})", self.condition(depth - 1), self.condition(depth - 1))
            }
            8 => {
                self.note("!");
                format!("!({})", self.condition(depth - 1))
            }
            9 => {
                let Some((place, _)) = self.place(false, &is_simple) else { return "true".into() };
                self.note("isundefined");
                format!("isundefined({place})")
            }
            _ => {
                let word = *self.random.choose(&["forall", "exists"]);
                self.note(word);
                let (name, ty, domain) = self.domain();
                self.variables.push((name, ty, false));
                let body = self.condition(depth - 1);
                self.variables.pop();
                format!("({word} {domain} do {body} end)")
            }
        }
    }
    /// Returns a bound variable with its type and its declaration.
    fn domain(&mut self) -> (String, Type, String) {
        let name = self.fresh("i");
        if self.random.chance(1, 5) {
            let (low, high) = (self.random.below(2), 1 + self.random.below(2));
            let by = if self.random.chance(1, 3) { " by 2" } else { "" };
            self.note("bounds");
            let domain = format!("{name} := {low} to {high}{by}");
            return (name, Type::Range(low as i64, high as i64), domain);
        }
        let ty = match self.simple() {
            Type::Range(low, high) => Type::Range(low, high.min(low + 2)),
            other => other,
        };
        let domain = format!("{name}: {}", self.type_text(&ty));
        (name, ty, domain)
    }

    /// Returns a statement with its semicolon.
    fn statement(&mut self, depth: usize) -> String {
        match self.random.below(if depth > 0 { 14 } else { 6 }) {
            0..=4 => self.assignment(),
            5 => match self.place(true, &|_| true) {
                Some((place, ty)) if !has_scalarset(&ty) && self.random.chance(1, 2) => {
                    self.note("clear");
                    format!("clear {place};")
                }
                Some((place, _)) if self.undefined => {
                    self.note("undefine");
                    format!("undefine {place};")
                }
                _ => self.assignment(),
            },
            6 | 7 => {
                self.note("if");
                let (condition, then) = (self.condition(2), self.statements(depth - 1));
                let mut text = format!("if {condition} then {then} ");
                if self.random.chance(1, 3) {
                    self.note("elsif");
                    let (condition, then) = (self.condition(1), self.statements(depth - 1));
                    text += &format!("elsif {condition} then {then} ");
                }
                if self.random.chance(1, 2) {
                    self.note("else");
                    text += &format!("else {} ", self.statements(depth - 1));
                }
                format!("{text}end;")
            }
            8 => {
                self.note("for");
                let (name, ty, domain) = self.domain();
                self.variables.push((name, ty, false));
                let body = self.statements(depth - 1);
                self.variables.pop();
                format!("for {domain} do {body} end;")
            }
            9 => {
                let Some((place, ty)) = self.place(false, &|t| {
                    matches!(t, Type::Enum(_) | Type::Boolean | Type::Range(..))
                }) else {
                    return self.assignment();
                };
                self.note("switch");
                let mut text = format!("switch {place} ");
                for _ in 0..1 + self.random.below(2) {
                    let Some(value) = self.safe(&ty) else { break };
                    text += &format!("case {value}: {} ", self.statements(depth - 1));
                }
                if self.random.chance(1, 2) {
                    text += &format!("else {} ", self.statements(depth - 1));
                }
                format!("{text}end;")
            }
            10 => {
                let Some((place, ty)) = self.place(true, &is_simple) else {
                    return self.assignment();
                };
                self.note("alias");
                let name = self.fresh("a");
                self.variables.push((name.clone(), ty, true));
                let body = self.statements(depth - 1);
                self.variables.pop();
                format!("alias {name}: {place}; do {body} end;")
            }
            11 => {
                let all = self.procedures.clone();
                if all.is_empty() {
                    return self.assignment();
                }
                let (name, parameters) = self.random.choose(&all).clone();
                let mut arguments = Vec::new();
                for p in parameters {
                    match self.place(true, &move |t| *t == p) {
                        Some((place, _)) => arguments.push(place),
                        None => return self.assignment(),
                    }
                }
                self.note("procedure call");
                format!("{name}({});", arguments.join(", "))
            }
            12 => match self.random.below(6) {
                0 => {
                    self.note("error");
                    let condition = self.condition(1);
                    format!("if {condition} & {} then error \"bad\"; end;", self.condition(1))
                }
                1 | 2 => {
                    self.note("assert");
                    format!("assert \"claim\" ({} | {});", self.condition(2), self.condition(1))
                }
                _ => self.assignment(),
            },
            _ => {
                let Some((place, Type::Range(low, high))) =
                    self.place(true, &|t| matches!(t, Type::Range(..)))
                else {
                    return self.assignment();
                };
                let _ = low;
                self.note("while");
                format!("while {place} < {high} do {place} := {place} + 1; end;")
            }
        }
    }
    fn assignment(&mut self) -> String {
        let composite = !self.undefined && self.random.chance(1, 8);
        if composite
            && let Some((to, ty)) = self.place(true, &|t| !is_simple(t))
            && let Some((from, _)) = self.place(false, &move |t| *t == ty)
        {
            self.note("composite assignment");
            return format!("{to} := {from};");
        }
        let Some((place, ty)) = self.place(true, &is_simple) else { return String::new() };
        let value = match &ty {
            // A value that is mostly in the range.
            Type::Range(low, high) if self.random.chance(3, 4) => {
                let (number, count) = (self.number(2), high - low + 1);
                Some(format!("((({number}) % {count}) + {count}) % {count} + {low}"))
            }
            _ => self.value(&ty, 2),
        };
        value.map_or(String::new(), |value| format!("{place} := {value};"))
    }
    fn statements(&mut self, depth: usize) -> String {
        let all: Vec<String> =
            (0..1 + self.random.below(2)).map(|_| self.statement(depth)).collect();
        all.join(" ")
    }
    /// Returns statements that give a place a value.
    fn initial(&mut self, place: &str, ty: &Type) -> String {
        match ty {
            Type::Array(index, element) => {
                let name = self.fresh("i");
                self.variables.push((name.clone(), (**index).clone(), false));
                let body = self.initial(&format!("{place}[{name}]"), element);
                self.variables.pop();
                format!("for {name}: {} do {body} end;", self.type_text(index))
            }
            Type::Record(fields) => {
                let all: Vec<String> = (fields.iter().enumerate())
                    .map(|(n, f)| self.initial(&format!("{place}.f{n}"), f))
                    .collect();
                all.join(" ")
            }
            Type::Scalarset(_) => match self.safe(ty) {
                Some(value) => format!("{place} := {value};"),
                None => {
                    // Without an element in scope: every element, the last one remains.
                    let name = self.fresh("i");
                    format!("for {name}: {} do {place} := {name}; end;", self.type_text(ty))
                }
            },
            simple => match self.safe(simple) {
                Some(value) => format!("{place} := {value};"),
                None => String::new(),
            },
        }
    }
    fn start(&mut self) -> String {
        self.note("startstate");
        let globals: Vec<(String, Type)> =
            self.variables.iter().map(|v| (v.0.clone(), v.1.clone())).collect();
        let has_scalarset = globals.iter().any(|g| has_scalarset(&g.1));
        let mut body = String::new();
        // A start state that depends on the order of a scalarset's elements is not symmetric.
        let chosen: Vec<usize> =
            if has_scalarset { (0..self.scalarsets.len()).collect() } else { Vec::new() };
        let chosen = if self.ordered && self.random.chance(1, 2) { Vec::new() } else { chosen };
        for n in &chosen {
            self.variables.push((format!("i0s{n}"), Type::Scalarset(*n), false));
        }
        for (name, ty) in &globals {
            if !self.undefined || self.random.chance(3, 4) {
                body += &self.initial(name, ty);
                body += " ";
            }
        }
        self.variables.truncate(globals.len());
        let title = if self.random.chance(1, 2) { " \"begin\"" } else { "" };
        let mut text = format!("startstate{title} begin {body} end;\n");
        for n in chosen {
            text = format!("ruleset i0s{n}: S{n} do {text} end;\n");
        }
        text
    }
    fn rule(&mut self, depth: usize) -> String {
        if depth > 0 && self.random.chance(1, 2) {
            self.note("ruleset");
            let (name, ty, domain) = self.domain();
            self.variables.push((name, ty, false));
            let count = 1 + self.random.below(2);
            let rules: Vec<String> = (0..count).map(|_| self.rule(depth - 1)).collect();
            self.variables.pop();
            return format!("ruleset {domain} do\n{}end;\n", rules.concat());
        }
        if depth > 0
            && self.random.chance(1, 8)
            && let Some((place, ty)) = self.place(true, &is_simple)
        {
            self.note("alias of rules");
            let name = self.fresh("a");
            self.variables.push((name.clone(), ty, true));
            let rule = self.rule(depth - 1);
            self.variables.pop();
            return format!("alias {name}: {place} do\n{rule}end;\n");
        }
        self.note("rule");
        let name = self.fresh("rule ");
        let title = if self.random.chance(2, 3) { format!(" \"{name}\"") } else { String::new() };
        let guard = if self.random.chance(4, 5) {
            self.note("guard");
            format!(" {} ==>", self.condition(2))
        } else {
            String::new()
        };
        let (mut declarations, depth) = (String::new(), self.variables.len());
        if self.random.chance(1, 4) {
            self.note("local variable");
            let ty = self.simple();
            if let Some(value) = self.safe(&ty) {
                let name = self.fresh("v");
                declarations =
                    format!(" var {name}: {}; begin {name} := {value};", self.type_text(&ty));
                self.variables.push((name, ty, true));
            }
        }
        let begin = if declarations.is_empty() { " begin" } else { "" };
        let body = self.statements(2);
        self.variables.truncate(depth);
        format!("rule{title}{guard}{declarations}{begin} {body} end;\n")
    }
    fn function(&mut self) -> String {
        let result = self.simple();
        if matches!(result, Type::Scalarset(_)) {
            return String::new();
        }
        self.note("function");
        let name = self.fresh("g");
        let parameters: Vec<(String, Type)> = (0..self.random.below(3))
            .map(|_| {
                let ty = self.simple();
                (self.fresh("p"), ty)
            })
            .collect();
        let globals = std::mem::take(&mut self.variables);
        self.variables.extend(parameters.iter().map(|p| (p.0.clone(), p.1.clone(), false)));
        let undefined = std::mem::replace(&mut self.undefined, false);
        let early = self.condition(1);
        let (first, second) = (self.safe(&result), self.value(&result, 2));
        self.undefined = undefined;
        self.variables = globals;
        let (Some(first), Some(second)) = (first, second) else { return String::new() };
        let second = match &result {
            Type::Range(low, high) => {
                let count = high - low + 1;
                format!("((({second}) % {count}) + {count}) % {count} + {low}")
            }
            _ => second,
        };
        let shown: Vec<String> =
            parameters.iter().map(|p| format!("{}: {}", p.0, self.type_text(&p.1))).collect();
        let text = format!(
            "function {name}({}): {}; begin if {early} then return {first}; end; return {second}; end;\n",
            shown.join("; "),
            self.type_text(&result)
        );
        let types = parameters.into_iter().map(|p| p.1).collect();
        self.functions.push((name, types, result));
        text
    }
    fn procedure(&mut self) -> String {
        let global = self.variables.iter().map(|v| v.1.clone()).find(is_simple);
        let Some(ty) = global else { return String::new() };
        self.note("procedure");
        let name = self.fresh("h");
        let parameter = self.fresh("p");
        let globals =
            std::mem::replace(&mut self.variables, vec![(parameter.clone(), ty.clone(), true)]);
        let procedures = std::mem::take(&mut self.procedures);
        let body = self.statements(1);
        self.procedures = procedures;
        self.variables = globals;
        let text = format!(
            "procedure {name}(var {parameter}: {}); begin {body} end;\n",
            self.type_text(&ty)
        );
        self.procedures.push((name, vec![ty]));
        text
    }
    fn property(&mut self, depth: usize) -> String {
        if depth > 0 && self.random.chance(1, 3) {
            let (name, ty, domain) = self.domain();
            self.variables.push((name, ty, false));
            let inner = self.property(depth - 1);
            self.variables.pop();
            return format!("ruleset {domain} do\n{inner}end;\n");
        }
        let condition = self.condition(2);
        let name = self.fresh("property ");
        match self.random.below(8) {
            0 => {
                self.note("cover");
                format!("cover \"{name}\" {condition};\n")
            }
            1 => {
                self.note("liveness");
                format!("liveness \"{name}\" {condition};\n")
            }
            2 => {
                self.note("assume");
                format!("assume \"{name}\" ({condition} | {});\n", self.condition(1))
            }
            _ => {
                self.note("invariant");
                format!("invariant \"{name}\" ({condition} | {});\n", self.condition(2))
            }
        }
    }
}

fn is_simple(ty: &Type) -> bool {
    !matches!(ty, Type::Array(..) | Type::Record(_))
}

/// True if a value of the first type can be used for the second.
fn compatible(from: &Type, to: &Type) -> bool {
    from == to || matches!((from, to), (Type::Range(..), Type::Range(..)))
}

fn has_scalarset(ty: &Type) -> bool {
    match ty {
        Type::Scalarset(_) => true,
        Type::Array(index, element) => has_scalarset(index) || has_scalarset(element),
        Type::Record(fields) => fields.iter().any(has_scalarset),
        _ => false,
    }
}
