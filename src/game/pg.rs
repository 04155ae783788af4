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
    struct GameRow<'a> {
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
        let rest = scan.rest();
        let is_number = |text| {
            rest.strip_prefix(text).is_some_and(|r| !r.starts_with(|c: char| c.is_ascii_digit()))
        };
        let owner = match (is_number("0"), is_number("1")) {
            (true, _) if scan.take("0") => Player::Even,
            (_, true) if scan.take("1") => Player::Odd,
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
            name = scan
                .take_until('"')
                .ok_or_else(|| scan.error(place, "the name has no closing '\"'"))?;
        }
        scan.expect(";")?;
        rows.push(GameRow { place, id, priority, owner, from, name });
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
        game.initial = VertexId::of(v);
    }
    let named = rows.iter().any(|r| !r.name.is_empty());
    for i in row_of {
        // As many rows as vertices, none twice.
        let i = i.ok_or_else(|| Diagnostic::internal("a vertex without a row"))?;
        let row = &rows[i];
        let to = rows.get(i + 1).map_or(moves.len(), |r| r.from);
        game.push(row.owner, row.priority, moves[row.from..to].iter().map(|m| VertexId::of(m.1)));
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
    if game.initial != VertexId::of(0) {
        writeln!(out, "start {};", game.initial.number())?;
    }
    for v in game.vertices() {
        write!(
            out,
            "{} {} {}",
            v.number(),
            game.priorities[v.index()],
            game.owners[v.index()] as u8
        )?;
        for (i, t) in game.successors(v).iter().enumerate() {
            write!(out, "{}{}", if i == 0 { ' ' } else { ',' }, t.number())?;
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
                Some(t) => writeln!(out, "{v} {} {};", winner as u8, t.number())?,
                None => writeln!(out, "{v} {};", winner as u8)?,
            }
        }
        out.flush()
    };
    rows().map_err(|e: std::io::Error| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}
