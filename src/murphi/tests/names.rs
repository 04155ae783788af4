//! Names for editors: every mention has its declaration, and a renamed text has the same typed
//! tree; texts with errors.

use mu_base::naming::{NameRole, Naming};
use mu_base::random::Random;
use mu_base::{SourceId, SourceMap};
use mu_murphi::{Settings, names, read};
use std::collections::BTreeSet;

const MODEL: &str = include_str!("models/constructs.m");

fn binding(naming: &Naming, text: &str, mark: &str) -> usize {
    let at = text.find(mark).unwrap_or_else(|| panic!("{mark}")) as u32;
    let found = naming.mentions.iter().find(|m| m.place.start == at);
    found.unwrap_or_else(|| panic!("no name at {mark}")).of
}

#[test]
fn roles_and_declarations() {
    let naming = names(SourceId::FIRST, MODEL);
    let of = |mark: &str| &naming.bindings[binding(&naming, MODEL, mark)];
    for (mark, name, role, says) in [
        ("N : 3", "N", NameRole::Constant, "N : 3"),
        ("Proc : Sc", "Proc", NameRole::Type, "Proc : Scalarset( N )"),
        ("Busy then", "Busy", NameRole::Constructor, "Busy: State"),
        ("kind := next", "kind", NameRole::Storage, "kind: State"),
        ("owner := p", "owner", NameRole::Storage, "owner : Node"),
        ("next(state", "next", NameRole::Function, "function next( s:State ) :State"),
        ("send(p", "send", NameRole::Function, "procedure send(n:Node;var m: Message)"),
        ("mine := Idle", "mine", NameRole::Local, "mine: State"),
        ("q != p", "q", NameRole::Local, "q: Proc"),
        ("j].kind", "j", NameRole::Local, "j: position in multiset [4] of Message"),
        ("boolean;", "boolean", NameRole::Type, "boolean: `false` and `true`"),
    ] {
        let found = of(mark);
        assert_eq!((found.name.as_str(), found.role), (name, role), "{mark}");
        assert_eq!(found.declaration, says, "{mark}");
    }
    let parts: Vec<&str> = naming.parts.iter().map(|p| p.0.as_str()).collect();
    assert_eq!(
        parts,
        [
            "startstate \"initial\"",
            "rule \"step\"",
            "rule",
            "rule \"receive\"",
            "invariant \"owner\"",
            "liveness \"idle\""
        ]
    );
    // All words that are names are mentioned: only keywords, texts and comments are left.
    let mentioned: BTreeSet<u32> = naming.mentions.iter().map(|m| m.place.start).collect();
    let mut sources = SourceMap::new();
    let source = sources.add("constructs.m", MODEL);
    for token in mu_murphi::lexer::tokens(source, MODEL).expect("tokens") {
        let word = sources.text(token.span).to_lowercase();
        let keyword = mu_murphi::lexer::KEYWORDS.contains(&word.as_str())
            && !["boolean", "true", "false"].contains(&word.as_str());
        if token.tok == mu_murphi::lexer::Tok::Name && !keyword {
            assert!(mentioned.contains(&token.span.start), "{word} at {:?}", token.span);
        }
    }
}

#[test]
fn renamed_texts_have_the_same_tree() {
    let before =
        format!("{:?}", read(SourceId::FIRST, MODEL, &Settings::default()).expect("a model"));
    let naming = names(SourceId::FIRST, MODEL);
    let mut renamed = 0;
    for (of, binding) in naming.bindings.iter().enumerate().filter(|b| b.1.fixed.is_none()) {
        // A name of equal length that no model has.
        let new: String = binding.name.chars().map(|_| 'Z').collect();
        let mut text = MODEL.to_string();
        for mention in naming.mentions.iter().filter(|m| m.of == of) {
            let (from, to) = (mention.place.start as usize, mention.place.end as usize);
            assert_eq!(&MODEL[from..to], binding.name);
            text.replace_range(from..to, &new);
        }
        let model = read(SourceId::FIRST, &text, &Settings::default())
            .unwrap_or_else(|e| panic!("{} -> {new}: {e}", binding.name));
        let quoted = |name: &str| format!("\"{name}\"");
        let after = format!("{model:?}").replace(&quoted(&new), &quoted(&binding.name));
        assert_eq!(after, before, "{}", binding.name);
        renamed += 1;
    }
    assert!(renamed > 40, "{renamed}");
}

#[test]
fn texts_with_errors_keep_their_other_names() {
    let broken = MODEL.replace("state[p] = Idle & !", "state[p] = & $ Idle !");
    let naming = names(SourceId::FIRST, &broken);
    let of = |mark: &str| naming.bindings[binding(&naming, &broken, mark)].name.clone();
    assert_eq!(of("owner)\n| ismember"), "owner");
    assert_eq!(of("next( s:State"), "next");
    // An unknown type hides only the names that need it.
    let text = "type t: 0..M; var x: t; y: boolean; startstate y := true; x := 1; end;";
    let naming = names(SourceId::FIRST, text);
    assert_eq!(naming.bindings[binding(&naming, text, "y := true")].name, "y");
    assert_eq!(naming.bindings[binding(&naming, text, "x := 1")].name, "x");
}

/// Random edits of a model: nothing panics, each error has a place in the text, mentions do not
/// overlap, and the formatter changes no token.
#[test]
fn random_edits() {
    let seed = std::env::var("MU_CHECK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0xA51);
    println!("replay with MU_CHECK_SEED={seed}");
    let mut random = Random::new(seed);
    let tokens = mu_murphi::lexer::tokens(SourceId::FIRST, MODEL).expect("tokens");
    let pieces: Vec<&str> =
        tokens.iter().map(|t| &MODEL[t.span.start as usize..t.span.end as usize]).collect();
    let (mut accepted, mut rejected, mut rejected_types) = (0, 0, 0);
    for _ in 0..1_000 {
        let mut edited = pieces.clone();
        for _ in 0..1 + random.below(12) {
            let at = random.below(edited.len());
            let word = |text: &str| {
                text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && !mu_murphi::lexer::KEYWORDS.contains(&text.to_lowercase().as_str())
            };
            let other = *random.choose(&pieces);
            match random.below(16) {
                0 => drop(edited.remove(at)),
                1 => edited.insert(at, other),
                2 => edited[at] = other,
                // Most edits replace a name by a name, which leads to errors of types.
                _ if word(edited[at]) && word(other) => edited[at] = other,
                _ => {}
            }
        }
        let text = edited.join(" ");
        match read(SourceId::FIRST, &text, &Settings::default()) {
            Ok(_) => {
                accepted += 1;
                let formatted = mu_murphi::format::format(&text);
                assert!(mu_murphi::format::is_same(&text, &formatted), "{text}");
                assert_eq!(mu_murphi::format::format(&formatted), formatted, "{text}");
            }
            Err(error) => {
                rejected += 1;
                rejected_types += usize::from(error.stage == mu_base::Stage::Type);
                let span = error.span.unwrap_or_else(|| panic!("no place: {error}\n{text}"));
                assert!(text.get(span.start as usize..span.end as usize).is_some(), "{text}");
                assert!(!error.message.is_empty(), "{text}");
            }
        }
        let mut mentions = names(SourceId::FIRST, &text).mentions;
        mentions.sort_by_key(|m| m.place);
        let overlap = mentions.windows(2).find(|w| w[0].place.overlaps(w[1].place));
        assert!(overlap.is_none(), "{overlap:?}\n{text}");
    }
    println!("{accepted} accepted, {rejected} rejected, {rejected_types} of them by type");
    assert!(accepted > 50 && rejected > 300 && rejected_types > 100);
}
