//! Parity games in PGSolver's text format (`.pg`, `.gm`): text -> [`Game`] and back, and solutions.
//!
//! ```text
//! parity 2;
//! start 1;
//! 0 3 1 0,2 "a name";
//! 1 0 0 0;
//! 2 2 0 2;
//! ```
//! A row is: identifier, priority, owner (0 or 1), successors, name. Header, `start` and names are
//! optional; without `start`, vertex 0 is the initial one. Rows may come in any order but must
//! contain each identifier from 0 to the highest exactly once. A row without successors, which
//! PGSolver forbids, is accepted and written: its owner loses there. The highest priority wins.
//!
//! Cost: O(bytes). Memory is allocated for rows, not according to the header.

use std::io::Write;

use super::scanner::Scanner;
use super::{Game, Player, Solution};
use mu_base::ids::VertexId;
use mu_base::{Diagnostic, Stage};

/// Reads a game.
pub fn read(text: &str) -> Result<Game, Diagnostic> {
    struct Row<'a> {
        place: usize,
        id: u32,
        priority: u32,
        owner: Player,
        from: usize,
        name: &'a str,
    }
    let mut scan = Scanner::new(text, None);
    if scan.keyword("parity") {
        scan.number("the highest identifier")?;
        scan.expect(";")?;
    }
    let mut start = None;
    if scan.keyword("start") {
        start = Some((scan.place(), scan.number("the identifier of the initial vertex")?));
        scan.expect(";")?;
    }
    let mut rows = Vec::new();
    let mut moves: Vec<(usize, u32)> = Vec::new();
    while !scan.at_end() {
        let place = scan.place();
        let id = scan.number("the identifier of a vertex")?;
        let priority = scan.number("a priority below 2^32 - 1")?;
        let owner = match scan.rest().chars().next() {
            Some('0') if scan.take("0") => Player::Even,
            Some('1') if scan.take("1") => Player::Odd,
            _ => return Err(scan.refuse("the owner, 0 or 1")),
        };
        let from = moves.len();
        if !scan.rest().starts_with(['"', ';']) {
            loop {
                moves.push((scan.place(), scan.number("the identifier of a successor")?));
                if !scan.take(",") {
                    break;
                }
            }
        }
        let mut name = "";
        if scan.take("\"") {
            name =
                scan.until('"').ok_or_else(|| scan.error(place, "the name has no closing '\"'"))?;
        }
        scan.expect(";")?;
        rows.push(Row { place, id, priority, owner, from, name });
    }
    if rows.is_empty() {
        return Err(Diagnostic::new(Stage::File, "the game has no vertices"));
    }
    let n = rows.len();
    let mut row_of: Vec<Option<usize>> = vec![None; n];
    for (i, row) in rows.iter().enumerate() {
        match row_of.get_mut(row.id as usize) {
            None => {
                return Err(scan.error(
                    row.place,
                    format!("vertex {} is given, but some vertex below it is not", row.id),
                ));
            }
            Some(Some(_)) => {
                return Err(scan.error(row.place, format!("vertex {} is given twice", row.id)));
            }
            Some(r @ None) => *r = Some(i),
        }
    }
    if let Some(&(place, t)) = moves.iter().find(|m| m.1 as usize >= n) {
        return Err(scan.error(place, format!("vertex {t} is a successor but is not given")));
    }
    let mut game = Game::default();
    if let Some((place, v)) = start {
        if v as usize >= n {
            return Err(scan.error(place, format!("the initial vertex {v} is not given")));
        }
        game.initial = VertexId(v);
    }
    let named = rows.iter().any(|r| !r.name.is_empty());
    for i in row_of {
        // As many rows as vertices, none twice.
        let i = i.ok_or_else(|| Diagnostic::internal("a vertex without a row"))?;
        let row = &rows[i];
        let to = rows.get(i + 1).map_or(moves.len(), |r| r.from);
        game.push(row.owner, row.priority, moves[row.from..to].iter().map(|m| VertexId(m.1)));
        if named {
            game.names.push(row.name.to_owned());
        }
    }
    Ok(game)
}

/// Writes a game. Replaces a quote in a name, which the format does not support, by an apostrophe.
pub fn write(game: &Game, output: impl Write) -> Result<(), Diagnostic> {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, output);
    write_rows(game, &mut out)
        .and_then(|()| out.flush())
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}

fn write_rows(game: &Game, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "parity {};", game.vertex_count().saturating_sub(1))?;
    if game.initial != VertexId(0) {
        writeln!(out, "start {};", game.initial.0)?;
    }
    for v in game.vertices() {
        write!(out, "{} {} {}", v.0, game.priorities[v.index()], game.owners[v.index()] as u8)?;
        for (i, t) in game.successors(v).iter().enumerate() {
            write!(out, "{}{}", if i == 0 { ' ' } else { ',' }, t.0)?;
        }
        match game.names.get(v.index()) {
            Some(name) if !name.is_empty() => writeln!(out, " \"{}\";", name.replace('"', "'"))?,
            _ => writeln!(out, ";")?,
        }
    }
    Ok(())
}

/// Writes a solution in PGSolver's format: `paritysol`, then identifier, winner and the winner's
/// move in each row.
pub fn write_solution(solution: &Solution, output: impl Write) -> Result<(), Diagnostic> {
    let mut out = std::io::BufWriter::new(output);
    let mut rows = || {
        writeln!(out, "paritysol {};", solution.winners.len().saturating_sub(1))?;
        for (v, &winner) in solution.winners.iter().enumerate() {
            match solution.strategy[v] {
                Some(t) => writeln!(out, "{v} {} {};", winner as u8, t.0)?,
                None => writeln!(out, "{v} {};", winner as u8)?,
            }
        }
        out.flush()
    };
    rows().map_err(|e: std::io::Error| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::random_game;
    use mu_base::random::Random;

    #[test]
    fn reads_what_others_write() {
        let game = read(
            "parity 4;\nstart 2;\n0 6 1 4,2 \"Africa\";4 5 1 0 \"Antarctica\";\n1 8 1 2,4,3 \"America\";\n3 6 0 4, 2;\n2 7 0 3,1,0,4;",
        )
        .unwrap();
        assert_eq!(game.initial, VertexId(2));
        assert_eq!(game.priorities, [6, 8, 7, 6, 5]);
        assert_eq!(
            game.successors(VertexId(2)),
            [VertexId(3), VertexId(1), VertexId(0), VertexId(4)]
        );
        assert_eq!(game.names[4], "Antarctica");
        assert_eq!(read("0 0 0;").unwrap().edge_count(), 0);
    }

    #[test]
    fn round_trip() {
        let mut random = Random::new(3);
        for seed in 0..100 {
            let n = 1 + random.below(20);
            let mut game = random_game(&mut random, n, 5, 0, 3);
            game.initial = VertexId::new(random.below(n));
            if seed % 2 == 0 {
                game.names = (0..n)
                    .map(|i| if i == 0 { String::from("x y;") } else { String::new() })
                    .collect();
            }
            let mut bytes = Vec::new();
            write(&game, &mut bytes).unwrap();
            assert_eq!(read(std::str::from_utf8(&bytes).unwrap()).unwrap(), game, "case {seed}");
        }
    }

    #[test]
    fn refusals_name_place_and_text() {
        for (text, wanted) in [
            ("", "no vertices"),
            ("parity 3", "line 1, column 9: expected ';', found the end of the text"),
            ("parity 0;\n0 1 2 0;", "line 2, column 5: expected the owner, 0 or 1, found \"2 0;\""),
            ("0 1 0 1;", "line 1, column 7: vertex 1 is a successor but is not given"),
            ("0 1 0 0;\n0 1 0 0;", "line 2, column 1: vertex 0 is given twice"),
            ("5 1 0 5;", "vertex 5 is given, but some vertex below it is not"),
            ("start 4; 0 0 0 0;", "line 1, column 7: the initial vertex 4 is not given"),
            ("0 1 0 0 \"abc;", "no closing"),
            (
                "0 99999999999 0 0;",
                "expected a priority below 2^32 - 1, found \"99999999999 0 0;\"",
            ),
            ("0 1 0 0,;", "expected the identifier of a successor, found \";\""),
            ("hello", "expected the identifier of a vertex, found \"hello\""),
        ] {
            let d = read(text).unwrap_err();
            assert!(d.to_string().contains(wanted), "{text:?}: {}", d);
        }
    }
}
