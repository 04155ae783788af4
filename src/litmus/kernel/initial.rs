//! Initial states of tests of the kernel: `{ int x = 1; int *p = &x; atomic_t a = ATOMIC_INIT(2);
//! }`.
//!
//! All variables have 32 bits, whatever their type, as in the herd tools. Addresses of variables
//! fit in them.

use crate::init::{InitialRegister, InitialValue, value};
use crate::layout::{DEFAULT, MemoryLayout};
use mu_base::words::{Cursor, Token, TokenKind};
use mu_base::{Diagnostic, Span, Stage};
use std::collections::HashMap;

/// The target of an initial value.
enum InitialTarget {
    Register(usize),
    Element(u32, usize),
}

/// Parses an initial state with its braces.
pub(crate) fn initial_state<'a>(
    cursor: &mut Cursor<'a, '_>,
    layout: &mut MemoryLayout,
) -> Result<Vec<InitialRegister<'a>>, Diagnostic> {
    cursor.expect("{")?;
    let mut registers = Vec::new();
    // Addresses are known only after all variables.
    let mut later: Vec<(InitialTarget, InitialValue<'a>)> = Vec::new();
    let mut seen: HashMap<String, (Span, bool)> = HashMap::new();
    while !cursor.eat("}") {
        if cursor.eat(";") {
            continue;
        }
        item(cursor, layout, &mut registers, &mut later, &mut seen)?;
        if !cursor.is("}") {
            cursor.expect(";")?;
        }
    }
    for (target, value) in later {
        let value = value.resolve(layout)?;
        match target {
            InitialTarget::Register(i) => registers[i].value = Some(value),
            InitialTarget::Element(v, i) => {
                let initial = &mut layout.variable_mut(v).initial;
                if initial.len() <= i {
                    initial.resize(i + 1, 0);
                }
                initial[i] = value;
            }
        }
    }
    Ok(registers)
}

fn item<'a>(
    cursor: &mut Cursor<'a, '_>,
    layout: &mut MemoryLayout,
    registers: &mut Vec<InitialRegister<'a>>,
    later: &mut Vec<(InitialTarget, InitialValue<'a>)>,
    seen: &mut HashMap<String, (Span, bool)>,
) -> Result<(), Diagnostic> {
    let mut words: Vec<Token<'a>> = Vec::new();
    while cursor.peek().kind == TokenKind::Name
        && (matches!(cursor.ahead(1).kind, TokenKind::Name | TokenKind::Number)
            || cursor.ahead(1).text == "*"
                && matches!(cursor.ahead(2).kind, TokenKind::Name | TokenKind::Number)
            || cursor.ahead(1).text == "[" && cursor.ahead(2).kind == TokenKind::Name)
    {
        words.push(cursor.take());
    }
    while cursor.eat("*") {}
    let typed = words.iter().filter(|w| w.text != "_Atomic").count();
    if typed > 1 {
        let place = words[0].span.to(words[words.len() - 1].span);
        let text = words.iter().map(|w| w.text).collect::<Vec<_>>().join(" ");
        let error = format!("`{text}` is no type of an initial state");
        return Err(Diagnostic::at(Stage::Unsupported, place, error)
            .note("expected one word, such as `int`, or none: variables are 0 initially"));
    }
    let thread = match cursor.peek() {
        t if cursor.ahead(1).text != ":" => Err(t),
        t => t.text.trim_start_matches('P').parse::<u32>().map_err(|_| t),
    };
    if let Ok(thread) = thread {
        cursor.take();
        cursor.expect(":")?;
        cursor.eat("%");
        let token = cursor.name("a register")?;
        registers.push(InitialRegister {
            thread: Some(thread),
            token,
            symbolic: false,
            declared: None,
            value: None,
            label: None,
        });
        if cursor.eat("=") {
            later.push((InitialTarget::Register(registers.len() - 1), initial_value(cursor)?));
        }
        return Ok(());
    }
    let bracketed = cursor.eat("[");
    let name = cursor.name("a register or a variable")?;
    let v = layout.variable(name.text);
    let mut elements = None;
    if cursor.eat("[") {
        let n = cursor.number()?;
        if !(1..4096).contains(&n) {
            let message = format!("an array of {n} elements is not supported");
            return Err(
                Diagnostic::at(Stage::Unsupported, name.span, message).note("supported: 1 to 4095")
            );
        }
        cursor.expect("]")?;
        elements = Some(u32::try_from(n).expect("at most 4096"));
    }
    if bracketed {
        cursor.expect("]")?;
    }
    let variable = layout.variable_mut(v);
    variable.declared = Some(DEFAULT);
    variable.elements = variable.elements.or(elements);
    let valued = cursor.eat("=");
    if let Some((first, had)) = seen.insert(name.text.to_string(), (name.span, valued))
        && (had || !valued)
    {
        let message = format!("the variable `{}` is initialised twice", name.text);
        return Err(
            Diagnostic::at(Stage::Type, name.span, message).related(first, "the first time")
        );
    }
    if !valued {
        return Ok(());
    }
    if cursor.eat("{") {
        let mut i = 0;
        while !cursor.eat("}") {
            later.push((InitialTarget::Element(v, i), value(cursor)?));
            i += 1;
            if !cursor.is("}") {
                cursor.expect(",")?;
            }
        }
        let variable = layout.variable_mut(v);
        if variable.elements.is_none_or(|n| n as usize != i) {
            let message = format!("`{}` has another number of elements than values", name.text);
            return Err(Diagnostic::at(Stage::Type, name.span, message));
        }
        return Ok(());
    }
    later.push((InitialTarget::Element(v, 0), initial_value(cursor)?));
    Ok(())
}

/// Parses a value, or `ATOMIC_INIT(v)`.
fn initial_value<'a>(cursor: &mut Cursor<'a, '_>) -> Result<InitialValue<'a>, Diagnostic> {
    if cursor.peek().text == "ATOMIC_INIT" && cursor.ahead(1).text == "(" {
        cursor.take();
        cursor.take();
        let v = value(cursor)?;
        cursor.expect(")")?;
        return Ok(v);
    }
    value(cursor)
}
