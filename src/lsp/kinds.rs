//! Kinds of declarations, with their numbers in the protocol for completion and outline, and their
//! colours.

use mu_base::naming::Role;

/// Kind of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Parameter,
    Sort,
    Constructor,
    Projection,
    Recogniser,
    Mapping,
    Action,
    Process,
    Variable,
    FixedPoint,
    /// A role of another front end.
    Of(Role),
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Parameter => "parameter",
            Kind::Sort => "sort",
            Kind::Constructor => "constructor",
            Kind::Projection => "projection",
            Kind::Recogniser => "recogniser",
            Kind::Mapping => "map",
            Kind::Action => "act",
            Kind::Process => "proc",
            Kind::Variable => "variable",
            Kind::FixedPoint => "fixed point",
            Kind::Of(role) => role.word(),
        }
    }

    /// Returns the protocol's `CompletionItemKind`.
    pub(crate) fn completion(self) -> u8 {
        match self {
            Kind::Parameter | Kind::Variable | Kind::FixedPoint => 6,
            Kind::Sort => 22,
            Kind::Constructor => 20,
            Kind::Projection => 5,
            Kind::Recogniser | Kind::Mapping => 3,
            Kind::Action => 23,
            Kind::Process => 7,
            Kind::Of(role) => match role {
                Role::Type => 22,
                Role::Constructor => 20,
                Role::Storage
                | Role::Local
                | Role::Register
                | Role::Relation
                | Role::FixedPoint => 6,
                Role::Constant => 21,
                Role::Function => 3,
                Role::Process => 7,
                Role::Label => 18,
                Role::Claim => 23,
            },
        }
    }

    /// Returns the protocol's `SymbolKind`; `None` for kinds that an outline leaves out.
    pub(crate) fn symbol(self) -> Option<u8> {
        Some(match self {
            Kind::Parameter => 14,
            Kind::Sort => 23,
            Kind::Constructor => 22,
            Kind::Mapping | Kind::FixedPoint => 12,
            Kind::Action => 24,
            Kind::Process => 5,
            Kind::Projection | Kind::Recogniser | Kind::Variable => return None,
            Kind::Of(role) => match role {
                Role::Type => 23,
                Role::Constructor => 22,
                Role::Storage | Role::Relation => 13,
                Role::Constant => 14,
                Role::Function | Role::FixedPoint => 12,
                Role::Process => 5,
                Role::Label => 20,
                Role::Claim => 24,
                Role::Local | Role::Register => return None,
            },
        })
    }

    /// Returns the token type, one of [`crate::semantic_tokens::TOKEN_TYPES`].
    pub(crate) fn token_type(self) -> &'static str {
        match self {
            Kind::Sort => "type",
            Kind::Constructor => "enumMember",
            Kind::Projection => "property",
            Kind::Mapping | Kind::Recogniser => "function",
            Kind::Action => "event",
            Kind::Process | Kind::FixedPoint => "class",
            Kind::Parameter => "macro",
            Kind::Variable => "variable",
            Kind::Of(role) => match role {
                Role::Type => "type",
                Role::Constructor => "enumMember",
                Role::Storage => "property",
                Role::Relation | Role::Register => "variable",
                Role::Constant | Role::Label => "macro",
                Role::Function => "function",
                Role::Process | Role::FixedPoint => "class",
                Role::Local => "parameter",
                Role::Claim => "event",
            },
        }
    }
}
