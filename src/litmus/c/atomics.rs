//! Atomic operations of C: loads, stores, exchanges, fetch-and-modify, compare-and-exchange,
//! fences, with the memory orders that section 7.17 of the C11 standard allows for each.

use super::expression::is_wide;
use super::{INT, Local, Lowering, Typed, halves, tag};
use crate::code::{Atomicity, Binary, Flow, Op, RegisterExpr};
use crate::layout::IntegerType;
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Stage};

/// Memory orders by name.
const ORDERS: [(&str, &str); 6] = [
    ("relaxed", "RLX"),
    ("consume", "CON"),
    ("acquire", "ACQ"),
    ("release", "REL"),
    ("acq_rel", "ACQ_REL"),
    ("seq_cst", "SC"),
];

/// A memory order in the text.
#[derive(Clone, Copy)]
struct OrderText<'a> {
    /// Its name without `memory_order_`.
    name: &'static str,
    /// Its tag.
    tag: &'static str,
    /// Its token; `None` for the default, sequential consistency.
    token: Option<Token<'a>>,
}

/// The place of the expected value of a compare-and-exchange.
enum Expected {
    /// An address.
    Memory(RegisterExpr),
    /// A local variable.
    Local(Local),
}

impl OrderText<'_> {
    /// Returns the tags of an atomic access with this order.
    fn tags(self) -> u64 {
        tag(self.tag) | tag("A")
    }
    /// Rejects orders that an operation must not have.
    fn not(self, forbidden: &[&str], of: &str) -> Result<Self, Diagnostic> {
        match self.token {
            Some(token) if forbidden.contains(&self.name) => {
                let allowed: Vec<&str> =
                    ORDERS.iter().map(|o| o.0).filter(|o| !forbidden.contains(o)).collect();
                let message =
                    format!("`{}` is no order of {of}: the behaviour is undefined", token.text);
                Err(Diagnostic::at(Stage::Type, token.span, message)
                    .note(format!("expected {}", allowed.join(", "))))
            }
            _ => Ok(self),
        }
    }
    /// Returns the stronger orders.
    fn stronger(self) -> &'static [&'static str] {
        match self.name {
            "relaxed" => &["consume", "acquire", "release", "acq_rel", "seq_cst"],
            "consume" => &["acquire", "acq_rel", "seq_cst", "release"],
            "acquire" | "release" => &["acq_rel", "seq_cst", "release"],
            "acq_rel" => &["seq_cst", "acq_rel", "release"],
            _ => &["release", "acq_rel"],
        }
    }
}

impl Lowering<'_> {
    fn order<'a>(cursor: &mut Cursor<'a, '_>) -> Result<OrderText<'a>, Diagnostic> {
        let token = cursor.name("a memory order")?;
        let word = token.text.strip_prefix("memory_order_").unwrap_or(token.text);
        let found = ORDERS.iter().find(|o| o.0 == word);
        let error = || {
            Diagnostic::at(Stage::Type, token.span, format!("`{}` is no memory order", token.text))
        };
        found.map(|&(name, tag)| OrderText { name, tag, token: Some(token) }).ok_or_else(error)
    }
    /// Parses the order of an access: after a comma, or the default in the short form of a name.
    fn order_of<'a>(
        cursor: &mut Cursor<'a, '_>,
        explicit: bool,
    ) -> Result<OrderText<'a>, Diagnostic> {
        if !explicit {
            return Ok(OrderText { name: "seq_cst", tag: "SC", token: None });
        }
        cursor.expect(",")?;
        Self::order(cursor)
    }
    pub(super) fn call(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        depth: u32,
    ) -> Result<Typed, Diagnostic> {
        let name = cursor.take();
        if name.text == "__atomic_add_unless" {
            return self.add_unless(cursor, depth);
        }
        cursor.expect("(")?;
        let (stem, explicit) = match name.text.strip_suffix("_explicit") {
            Some(stem) => (stem, true),
            None => (name.text, false),
        };
        let none = Typed::of(RegisterExpr::Const(0), INT);
        let result = match stem {
            "atomic_thread_fence" => {
                let order = Self::order(cursor)?;
                // A consume fence is an acquire fence.
                self.push(Op::Fence(tag(if order.name == "consume" { "ACQ" } else { order.tag })));
                none
            }
            "atomic_load" => {
                let pointer = self.expression(cursor, 0, depth)?;
                let order =
                    Self::order_of(cursor, explicit)?.not(&["release", "acq_rel"], "a load")?;
                self.load(pointer.e, pointer.pointee.unwrap_or(INT), order.tags())
            }
            "atomic_store" => {
                let pointer = self.expression(cursor, 0, depth)?;
                cursor.expect(",")?;
                let value = self.expression(cursor, 0, depth)?;
                let order = Self::order_of(cursor, explicit)?
                    .not(&["consume", "acquire", "acq_rel"], "a store")?;
                let ty = pointer.pointee.unwrap_or(INT);
                let value = self.convert(value, ty);
                self.push(Op::Store {
                    address: pointer.e,
                    width: ty.width,
                    value,
                    tags: order.tags(),
                    joined: false,
                });
                none
            }
            "atomic_exchange" | "atomic_fetch_add" | "atomic_fetch_sub" | "atomic_fetch_and"
            | "atomic_fetch_or" | "atomic_fetch_xor" => {
                let pointer = self.expression(cursor, 0, depth)?;
                cursor.expect(",")?;
                let operand = self.expression(cursor, 0, depth)?;
                let tags = Self::order_of(cursor, explicit)?.tags();
                let op = match stem {
                    "atomic_fetch_add" => Some(Binary::Add),
                    "atomic_fetch_sub" => Some(Binary::Sub),
                    "atomic_fetch_and" => Some(Binary::And),
                    "atomic_fetch_or" => Some(Binary::Or),
                    "atomic_fetch_xor" => Some(Binary::Xor),
                    _ => None,
                };
                let ty = pointer.pointee.unwrap_or(INT);
                if ty.boolean && op.is_some() {
                    let error = Diagnostic::at(
                        Stage::Type,
                        name.span,
                        format!("`{}` does not apply to `atomic_bool`", name.text),
                    );
                    return Err(error.note("exchange and compare-and-exchange do"));
                }
                let operand = self.convert(operand, ty);
                self.inexact |= is_wide(ty) && matches!(op, Some(Binary::Add | Binary::Sub));
                let value = match op {
                    Some(op) => RegisterExpr::binary(op, RegisterExpr::Loaded, operand),
                    None => operand,
                };
                self.update(pointer.e, ty, value, None, tags, tags)
            }
            "atomic_compare_exchange_strong" | "atomic_compare_exchange_weak" => {
                let pointer = self.expression(cursor, 0, depth)?;
                cursor.expect(",")?;
                let expected = self.expected_place(cursor, &pointer, depth)?;
                cursor.expect(",")?;
                let desired = self.expression(cursor, 0, depth)?;
                let success = Self::order_of(cursor, explicit)?;
                let failure = Self::order_of(cursor, explicit)?
                    .not(success.stronger(), "a failure of this exchange")?;
                let weak = stem.ends_with("weak");
                self.compare_exchange(
                    pointer,
                    &expected,
                    desired,
                    (success.tags(), failure.tags()),
                    weak,
                )
            }
            _ => {
                return Err(Diagnostic::at(Stage::Unsupported, name.span, format!("the function `{}` is not supported", name.text)).note(
                    "supported: atomic_load, atomic_store, atomic_exchange, atomic_fetch_add, _sub, _and, _or, _xor, atomic_compare_exchange_strong, _weak, \
                     these with _explicit, and atomic_thread_fence",
                ));
            }
        };
        cursor.expect(")")?;
        Ok(result)
    }
    /// Parses `__atomic_add_unless{mb}(x, a, u)` after the name: adds `a` unless the value is `u`.
    /// Returns whether it did.
    fn add_unless(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Typed, Diagnostic> {
        cursor.expect("{")?;
        let order = cursor.name("`mb`")?;
        if order.text != "mb" {
            let message = format!("the order `{}` is not supported", order.text);
            return Err(
                Diagnostic::at(Stage::Unsupported, order.span, message).note("supported: mb")
            );
        }
        cursor.expect("}")?;
        cursor.expect("(")?;
        let pointer = self.expression(cursor, 0, depth)?;
        cursor.expect(",")?;
        let added = self.expression(cursor, 0, depth)?;
        cursor.expect(",")?;
        let unless = self.expression(cursor, 0, depth)?;
        cursor.expect(")")?;
        let ty = pointer.pointee.unwrap_or(INT);
        self.inexact |= is_wide(ty);
        let (added, unless) = (self.convert(added, ty), self.convert(unless, ty));
        let tags = tag("SC") | tag("A");
        let old = RegisterExpr::Loaded.extend_bytes(ty.width, ty.signed);
        let when = RegisterExpr::binary(Binary::Ne, old, unless.clone());
        let sum = RegisterExpr::binary(Binary::Add, RegisterExpr::Loaded, added);
        let old = self.update(pointer.e, ty, sum, Some(when), tags, tags);
        Ok(Typed::of(RegisterExpr::binary(Binary::Ne, old.e, unless), INT))
    }
    /// Parses the place of the expected value: a pointer, or `&e` for a local variable.
    fn expected_place(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        pointer: &Typed,
        depth: u32,
    ) -> Result<Expected, Diagnostic> {
        if !cursor.is("&") || cursor.ahead(2).text != "," {
            return Ok(Expected::Memory(self.expression(cursor, 0, depth)?.e));
        }
        cursor.take();
        let name = cursor.name("a local variable")?;
        let local = self.local(&name)?;
        let ty = pointer.pointee.unwrap_or(INT);
        if local.pointee.is_some() || (local.ty.width, local.ty.boolean) != (ty.width, ty.boolean) {
            let message = format!("`{}` has not the type of the exchanged value", name.text);
            return Err(Diagnostic::at(Stage::Type, name.span, message)
                .note("expected a local variable of that type"));
        }
        Ok(Expected::Local(local))
    }
    /// Writes the value that a compare-and-exchange found to the place of the expected value.
    fn put_expected(&mut self, expected: &Expected, found: Typed) {
        let op = match expected {
            Expected::Memory(address) => Op::Store {
                address: address.clone(),
                width: found.ty.width,
                value: found.e,
                tags: tag("NA"),
                joined: false,
            },
            Expected::Local(local) => Op::Let(local.register, self.convert(found, local.ty)),
        };
        self.push(op);
    }
    /// Lowers a compare-and-exchange. A weak one has an additional path on which the value is the
    /// expected one and nothing is written.
    fn compare_exchange(
        &mut self,
        pointer: Typed,
        expected: &Expected,
        desired: Typed,
        (success, failure): (u64, u64),
        weak: bool,
    ) -> Typed {
        let ty = pointer.pointee.unwrap_or(INT);
        let desired = self.convert(desired, ty);
        let wanted = match expected {
            Expected::Memory(address) => self.load(address.clone(), ty, tag("NA")),
            Expected::Local(local) => {
                // The variable is changed before the result is used.
                let (held, own) = (self.temporary(), RegisterExpr::Register(local.register));
                let value = self.convert(Typed::of(own, local.ty), ty);
                self.push(Op::Let(held, value));
                self.joined = false;
                Typed::of(RegisterExpr::Register(held), ty)
            }
        };
        self.accesses[1] += 2;
        let refused = weak.then(|| {
            self.push(Op::Either { to: 0 });
            self.thread.ops.len() - 1
        });
        let when = RegisterExpr::binary(
            Binary::Eq,
            RegisterExpr::Loaded.extend_bytes(ty.width, ty.signed),
            wanted.e.clone(),
        );
        let old = self.update(pointer.e.clone(), ty, desired, Some(when), success, failure);
        let equal = RegisterExpr::binary(Binary::Eq, old.e.clone(), wanted.e.clone());
        let over = self.branch(Some(equal.clone()));
        self.put_expected(expected, old);
        self.land(over);
        let Some(refused) = refused else { return Typed::of(equal, INT) };
        let result = self.temporary();
        self.push(Op::Let(result, equal));
        let done = self.branch(None);
        self.land(refused);
        let old = self.load(pointer.e, ty, failure);
        self.push(Op::Assume(RegisterExpr::binary(Binary::Eq, old.e.clone(), wanted.e)));
        self.put_expected(expected, old);
        self.push(Op::Let(result, RegisterExpr::Const(0)));
        self.land(done);
        Typed::of(RegisterExpr::Register(result), INT)
    }
    fn update(
        &mut self,
        address: RegisterExpr,
        ty: IntegerType,
        value: RegisterExpr,
        when: Option<RegisterExpr>,
        tags: u64,
        failed: u64,
    ) -> Typed {
        let into = self.temporary();
        let old = RegisterExpr::Loaded.extend_bytes(ty.width, ty.signed);
        let (read, write) = if self.pairs { halves(tags) } else { (tags, tags) };
        let atomicity = if self.pairs { Atomicity::Pair } else { Atomicity::One };
        let joined = self.count(if self.pairs { 2 } else { 1 });
        self.push(Op::Update {
            into: Some((into, old)),
            address,
            width: ty.width,
            value,
            when,
            read,
            write,
            failed,
            atomicity,
            flow: Flow::Plain,
            joined,
        });
        Typed::of(RegisterExpr::Register(into), ty)
    }
}
