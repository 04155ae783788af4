//! Kinds of declarations, with their numbers in the protocol for completion and outline, and their
//! colours.

use mu_base::naming::Role;

/// Kind of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameKind {
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

impl NameKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            NameKind::Parameter => "parameter",
            NameKind::Sort => "sort",
            NameKind::Constructor => "constructor",
            NameKind::Projection => "projection",
            NameKind::Recogniser => "recogniser",
            NameKind::Mapping => "map",
            NameKind::Action => "act",
            NameKind::Process => "proc",
            NameKind::Variable => "variable",
            NameKind::FixedPoint => "fixed point",
            NameKind::Of(role) => role.word(),
        }
    }

    /// Returns the protocol's `CompletionItemKind`.
    pub(crate) fn completion(self) -> u8 {
        match self {
            NameKind::Parameter | NameKind::Variable | NameKind::FixedPoint => 6,
            NameKind::Sort => 22,
            NameKind::Constructor => 20,
            NameKind::Projection => 5,
            NameKind::Recogniser | NameKind::Mapping => 3,
            NameKind::Action => 23,
            NameKind::Process => 7,
            NameKind::Of(role) => match role {
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
            NameKind::Parameter => 14,
            NameKind::Sort => 23,
            NameKind::Constructor => 22,
            NameKind::Mapping | NameKind::FixedPoint => 12,
            NameKind::Action => 24,
            NameKind::Process => 5,
            NameKind::Projection | NameKind::Recogniser | NameKind::Variable => return None,
            NameKind::Of(role) => match role {
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
            NameKind::Sort => "type",
            NameKind::Constructor => "enumMember",
            NameKind::Projection => "property",
            NameKind::Mapping | NameKind::Recogniser => "function",
            NameKind::Action => "event",
            NameKind::Process | NameKind::FixedPoint => "class",
            NameKind::Parameter => "macro",
            NameKind::Variable => "variable",
            NameKind::Of(role) => match role {
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
