//! Boolean equation systems as text: their solutions, rejected inputs, depth.

use mu_base::limits::Budget;
use mu_game::Player;
use mu_game::bes::read;

fn holds(text: &str) -> bool {
    let game = read(text).unwrap();
    let solution = mu_game::solve::default_solver().solve(&game, &Budget::default()).unwrap();
    mu_game::verify::verify(&game, &solution).unwrap();
    solution.winner(game.initial) == Player::Even
}

#[test]
fn systems_have_their_solutions() {
    for (text, wanted) in [
        ("bes nu X = X; init X;", true),
        ("pbes mu X = X; init X;", false),
        ("bes mu X = true; init X;", true),
        ("bes nu X = false || !true; init X;", false),
        ("bes nu X = Y; mu Y = X; init X; % outer nu wins", true),
        ("bes mu Y = X; nu X = Y; init Y;", false),
        ("bes mu Y = X; nu X = Y; init X;", false),
        ("bes nu X = true => X; init X;", true),
        ("bes mu X = false => true => X; init X;", true),
        ("bes mu X = (false => X) => false; init X;", false),
        ("bes nu X = X && !(!X || false) && ((true)); init X;", true),
        ("bes mu X = false && true || true; init X;", true),
        ("bes mu X = true || true && false; init X;", true),
        ("bes mu X = (true || true) && false; init X;", false),
        ("bes mu X1 = Y' || Z; nu Y' = Z && X1; nu Z = Z; init X1;", true),
    ] {
        if text.contains("(false => X)") {
            assert!(read(text).unwrap_err().message.contains("'X' occurs under a negation"));
        } else {
            assert_eq!(holds(text), wanted, "{text}");
        }
    }
}

#[test]
fn refusals_name_place_and_text() {
    for (text, wanted) in [
        ("", "line 1, column 1: expected an equation"),
        ("bes mu X = Y; init X;", "line 1, column 12: the variable 'Y' has no equation"),
        (
            "bes mu X = X; mu X = X; init X;",
            "line 1, column 18: the variable 'X' has two equations",
        ),
        ("bes mu X = X;\ninit Z;", "line 2, column 6: the initial variable 'Z' has no equation"),
        ("bes mu X = !X; init X;", "line 1, column 13: the variable 'X' occurs under a negation"),
        ("bes mu X = (X; init X;", "expected an operator or ')', found \"; init X;\""),
        ("bes mu X = X); init X;", "expected ';', found \"); init X;\""),
        ("bes mu X = X & X; init X;", "expected ';', found \"& X; init X;\""),
        ("bes mu X = ; init X;", "expected an expression, found \"; init X;\""),
        ("bes mu X = X;", "expected an equation or 'init'"),
        ("bes mu X = X; init X; more", "expected the end of the text, found \"more\""),
    ] {
        let d = read(text).unwrap_err();
        assert!(d.to_string().contains(wanted), "{text:?}: {}", d);
    }
}

#[test]
fn depth_and_length_do_not_matter() {
    let n = 200_000;
    assert!(holds(&format!("bes nu X = {}X{}; init X;", "(".repeat(n), ")".repeat(n))));
    assert!(holds(&format!("bes nu X = {}X; init X;", "!!".repeat(n))));
    assert!(holds(&format!("bes nu X = {}X; init X;", "X || ".repeat(n))));
    assert!(holds(&format!("bes nu X = {}X; init X;", "true => ".repeat(n))));
    assert!(holds(&format!(
        "bes nu X = {}true{}; init X;",
        "X && (X || ".repeat(n),
        ")".repeat(n)
    )));
}
