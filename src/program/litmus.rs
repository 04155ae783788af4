//! Parser of litmus tests for x86 in the format of the herd tools.
//!
//! Input: the text of a `.litmus` file of architecture `X86` or `X86_64`. Output: a [`Litmus`]:
//! program, observations, condition, filter; or a [`Read`], which has no cells yet, for routes that
//! divide memory themselves. `X86` has the destination first, `X86_64` last. A file that is valid
//! only in the other order is read in that order. Format: Alglave, Maranget, "The diy toolsuite",
//! <http://diy.inria.fr/doc/>.

use std::collections::HashMap;

use super::condition::Observed;
use super::expr::Width;
use super::litmus_init::{InitialRegister, initial_state, is_register, number_of, register};
use super::outcome_search::Observable;
use super::variables::{IntegerType, Use, Variable, Variables};
use super::x86::{Assembler, OperandError, OperandOrder};
use super::{Program, Thread};
use crate::outcome::{Head, NameResolver, Question, head, table};
use mu_base::words::{Cursor, LexicalForm, Token, TokenKind, tokens};
use mu_base::{Diagnostic, SourceId, Stage, narrow};

/// The architecture in the first line of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// 32 bits, Intel's order of operands, capital registers.
    X86,
    /// 64 bits, AT&T's order of operands.
    X86_64,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Litmus {
    /// Architecture.
    pub arch: Arch,
    /// Its name.
    pub name: String,
    /// Lines `key=value` before the initial state.
    pub info: Vec<(String, String)>,
    /// The program.
    pub program: Program,
    /// Its variables.
    pub variables: Variables,
    /// The condition and its observations.
    pub question: Question<Observed>,
    /// Registers of the condition that neither the code of their thread nor the initial state
    /// names, so that they are 0.
    pub unnamed: Vec<String>,
}

impl Litmus {
    /// Returns the observed registers and cells, in order.
    pub fn observables(&self) -> Vec<Observable> {
        self.question.observed.iter().map(|o| o.what).collect()
    }
}

/// A parsed test without cells of memory: code, variables, condition.
#[derive(Clone, Debug)]
pub struct Read {
    /// Architecture.
    pub arch: Arch,
    /// Its name.
    pub name: String,
    /// Lines `key=value` before the initial state.
    pub info: Vec<(String, String)>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// The variables.
    pub variables: Variables,
    /// The condition. A cell in it is an element of a variable, by index.
    pub question: Question<Observed>,
    /// As [`Litmus::unnamed`].
    pub unnamed: Vec<String>,
    uses: Vec<Use>,
}

/// Parses a test for the machines, which access cells as a whole.
///
/// # Errors
///
/// As [`read`]; accesses of mixed sizes.
pub fn parse(source: SourceId, text: &str) -> Result<Litmus, Diagnostic> {
    let Read { arch, name, info, threads, variables, question, unnamed, uses } =
        read(source, text)?;
    let program = Program { cells: variables.cells(&uses)?, threads };
    Ok(Litmus { arch, name, info, program, variables, question, unnamed })
}

/// Parses a test.
///
/// # Errors
///
/// A syntax or type error, with its position.
pub fn read(source: SourceId, text: &str) -> Result<Read, Diagnostic> {
    let head = head(source, text, arch, "X86, X86_64")?;
    let list = tokens(source, text, head.body, LexicalForm::Free)?;
    let usual = if head.arch == Arch::X86 { OperandOrder::Intel } else { OperandOrder::Att };
    let other = if head.arch == Arch::X86 { OperandOrder::Att } else { OperandOrder::Intel };
    match body(&head, &list, text, usual) {
        Ok(test) => Ok(test),
        Err(refusal) if refusal.order => {
            body(&head, &list, text, other).map_err(|_| refusal.diagnostic)
        }
        Err(refusal) => Err(refusal.diagnostic),
    }
}

fn arch(name: &str) -> Option<Arch> {
    match name {
        "X86" => Some(Arch::X86),
        "X86_64" => Some(Arch::X86_64),
        _ => None,
    }
}

fn body(
    head: &Head<Arch>,
    list: &[Token<'_>],
    text: &str,
    order: OperandOrder,
) -> Result<Read, OperandError> {
    let mut cursor = Cursor::new(list);
    cursor.expect("{")?;
    let wide = if head.arch == Arch::X86 { Width::W32 } else { Width::W64 };
    let mut variables = Variables::new(true);
    let initial =
        initial_state(&mut cursor, &mut variables, IntegerType { width: wide, signed: false })?;
    let mut assemblers: Vec<Assembler> =
        (0..table::columns(&mut cursor)?).map(|i| Assembler::new(i, order)).collect();
    table::rows(&mut cursor, assemblers.len(), |i, cursor| {
        assemblers[i].line(cursor, &mut variables, text)
    })?;
    let mut threads: Vec<Thread> = Vec::new();
    let mut uses: Vec<Use> = Vec::new();
    for assembler in assemblers {
        let (thread, more) = assembler.finish()?;
        threads.push(thread);
        uses.extend(more);
    }
    let mut types = HashMap::new();
    for r in &initial {
        set_register(&mut threads, r)?;
        if let Some(ty) = r.declared {
            types.insert((r.thread, r.view.full.clone()), ty);
        }
    }
    let mut names = Observer {
        arch: head.arch,
        threads: &mut threads,
        variables: &mut variables,
        types,
        unnamed: Vec::new(),
    };
    let question = Question::parse(&mut cursor, &mut names)?;
    let unnamed = names.unnamed;
    Ok(Read {
        arch: head.arch,
        name: head.name.clone(),
        info: head.info.clone(),
        threads,
        variables,
        question,
        unnamed,
        uses,
    })
}

fn set_register(threads: &mut [Thread], r: &InitialRegister<'_>) -> Result<(), Diagnostic> {
    let count = threads.len();
    let Some(thread) = threads.get_mut(r.thread as usize) else {
        return Err(Diagnostic::at(
            Stage::Type,
            r.token.span,
            format!("there is no thread {}, the last one is {}", r.thread, count - 1),
        ));
    };
    let at = thread.register(&r.view.full);
    let old = &mut thread.registers[at as usize].initial;
    *old = *old & !(r.view.width.mask() << r.view.shift)
        | (r.value & r.view.width.mask()) << r.view.shift;
    Ok(())
}

/// Resolver of the names in a condition.
struct Observer<'p> {
    arch: Arch,
    threads: &'p mut Vec<Thread>,
    variables: &'p mut Variables,
    types: HashMap<(u32, String), IntegerType>,
    /// As [`Litmus::unnamed`].
    unnamed: Vec<String>,
}

impl Observer<'_> {
    /// Returns the observation of an element of a variable.
    fn element(&self, variable: &Variable, index: usize) -> Observed {
        let name = &variable.name;
        let before = self.variables.list().iter().take_while(|o| o.name != *name);
        let first = before.map(|o| o.initial.len()).sum::<usize>();
        Observed {
            what: Observable::Cell(narrow::index(first + index)),
            shift: 0,
            shown: variable.declared.unwrap_or(IntegerType::INT),
            text: if variable.array { format!("{name}[{index}]") } else { format!("[{name}]") },
        }
    }
    /// Parses the name of an array without an index, as `x`, `*x`, or `[x]`, and returns its
    /// elements; `None` for any other location, of which nothing is consumed.
    fn whole_array(&self, cursor: &mut Cursor<'_, '_>) -> Option<Vec<Observed>> {
        let bracketed = cursor.is("[");
        let prefix = usize::from(bracketed || cursor.is("*"));
        let (name, after) = (cursor.ahead(prefix), cursor.ahead(prefix + 1).text);
        let variable = self.variables.get(name.text).filter(|v| v.array)?;
        if after == "[" || bracketed && after != "]" || is_register(cursor) {
            return None;
        }
        (0..=prefix + usize::from(bracketed)).for_each(|_| {
            cursor.take();
        });
        Some((0..variable.initial.len()).map(|index| self.element(variable, index)).collect())
    }
}

impl NameResolver for Observer<'_> {
    type Observed = Observed;
    fn location(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Observed, Diagnostic> {
        if is_register(cursor) {
            let (number, view, token) = register(cursor)?;
            let count = self.threads.len();
            let Some(thread) = self.threads.get_mut(number as usize) else {
                return Err(Diagnostic::at(
                    Stage::Type,
                    token.span,
                    format!("there is no thread {number}, the last one is {}", count - 1),
                ));
            };
            let is_named = thread.registers.iter().any(|r| r.name == view.full);
            let register = thread.register(&view.full);
            // As in the herd tools, a register without a declared type is an `int`, even if it is
            // wider.
            let shown = match self.types.get(&(number, view.full.clone())) {
                Some(ty) if view.width == Width::W64 || ty.width <= view.width => *ty,
                _ => IntegerType {
                    width: view.width.min(IntegerType::INT.width),
                    ..IntegerType::INT
                },
            };
            let symbolic = super::registers::parse(token.text).is_none();
            let name = match self.arch {
                _ if symbolic => format!("%{}", token.text),
                Arch::X86 => token.text.to_ascii_uppercase(),
                Arch::X86_64 => token.text.to_ascii_lowercase(),
            };
            let what = Observable::Register(number, register);
            if !is_named {
                self.unnamed.push(format!("{number}:{name}"));
            }
            return Ok(Observed {
                what,
                shift: view.shift,
                shown,
                text: format!("{number}:{name}"),
            });
        }
        let bracketed = cursor.eat("[") || {
            cursor.eat("*");
            false
        };
        let name = cursor.name("a register or a variable")?;
        if bracketed {
            cursor.expect("]")?;
        }
        self.variables.address(name.text, name.span, 0)?;
        let Some(v) = self.variables.get(name.text) else {
            return Err(cursor.unexpected("a variable"));
        };
        let mut index = 0;
        if !bracketed && cursor.is("[") {
            let open = cursor.take();
            let given = cursor.number()?;
            cursor.expect("]")?;
            let inside = |i: &usize| v.array && *i < v.initial.len();
            if let Some(i) = usize::try_from(given).ok().filter(inside) {
                index = i;
            } else {
                return Err(Diagnostic::at(
                    Stage::Type,
                    open.span,
                    format!("`{}` has no element {given}", name.text),
                ));
            }
        } else if v.array {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                name.span,
                format!("a condition cannot refer to the whole array `{}`", name.text),
            )
            .note(format!("expected an element, such as `{}[0]`", name.text)));
        }
        Ok(self.element(v, index))
    }
    fn elements(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
    ) -> Result<Option<Vec<Observed>>, Diagnostic> {
        let compared = matches!(cursor.ahead(1).text, "=" | "!=") && cursor.ahead(2).text == "{";
        Ok(if compared { self.whole_array(cursor) } else { None })
    }
    fn listed_locations(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
    ) -> Result<Vec<Observed>, Diagnostic> {
        match self.whole_array(cursor) {
            Some(elements) => Ok(elements),
            None => Ok(vec![self.location(cursor)?]),
        }
    }
    fn value(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<u64, Diagnostic> {
        if cursor.peek().kind == TokenKind::Name {
            let name = cursor.take();
            return self.variables.address(name.text, name.span, 0);
        }
        if cursor.eat("&") {
            let name = cursor.name("a variable")?;
            return self.variables.address(name.text, name.span, 0);
        }
        let word = if self.arch == Arch::X86 { Width::W32 } else { Width::W64 };
        number_of(cursor, word).map(|n| n as u64)
    }
}
