//! Kinds of declarations, with their numbers in the protocol for completion and outline, and their
//! colours.

use mu_base::naming::NameRole;

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
    Of(NameRole),
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
                NameRole::Type => 22,
                NameRole::Constructor => 20,
                NameRole::Storage
                | NameRole::Local
                | NameRole::Register
                | NameRole::Relation
                | NameRole::FixedPoint => 6,
                NameRole::Constant => 21,
                NameRole::Function => 3,
                NameRole::Process => 7,
                NameRole::Label => 18,
                NameRole::Claim => 23,
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
                NameRole::Type => 23,
                NameRole::Constructor => 22,
                NameRole::Storage | NameRole::Relation => 13,
                NameRole::Constant => 14,
                NameRole::Function | NameRole::FixedPoint => 12,
                NameRole::Process => 5,
                NameRole::Label => 20,
                NameRole::Claim => 24,
                NameRole::Local | NameRole::Register => return None,
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
                NameRole::Type => "type",
                NameRole::Constructor => "enumMember",
                NameRole::Storage => "property",
                NameRole::Relation | NameRole::Register => "variable",
                NameRole::Constant | NameRole::Label => "macro",
                NameRole::Function => "function",
                NameRole::Process | NameRole::FixedPoint => "class",
                NameRole::Local => "parameter",
                NameRole::Claim => "event",
            },
        }
    }
}
