//! Files of games: reading, writing, rejected inputs.

use mu_base::ids::VertexId;
use mu_base::random::Random;
use mu_game::pg::{read, write};
use mu_testkit::games::random_game;

#[test]
fn reads_what_others_write() {
    let game = read(
        "parity 4;\nstart 2;\n0 6 1 4,2 \"Africa\";4 5 1 0 \"Antarctica\";\n1 8 1 2,4,3 \"America\";\n3 6 0 4, 2;\n2 7 0 3,1,0,4;",
    )
    .unwrap();
    assert_eq!(game.initial, VertexId::of(2));
    assert_eq!(game.priorities, [6, 8, 7, 6, 5]);
    assert_eq!(
        game.successors(VertexId::of(2)),
        [VertexId::of(3), VertexId::of(1), VertexId::of(0), VertexId::of(4)]
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
            game.names =
                (0..n).map(|i| if i == 0 { String::from("x y;") } else { String::new() }).collect();
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
        ("0 3 10,2;", "line 1, column 5: expected the owner, 0 or 1, found \"10,2;\""),
        ("0 1 0 1;", "line 1, column 7: vertex 1 is a successor but is not given"),
        ("0 1 0 0;\n0 1 0 0;", "line 2, column 1: vertex 0 is given twice"),
        ("5 1 0 5;", "vertex 5 is given, but some vertex below it is not"),
        ("start 4; 0 0 0 0;", "line 1, column 7: the initial vertex 4 is not given"),
        ("0 1 0 0 \"abc;", "no closing"),
        ("0 99999999999 0 0;", "expected a priority below 2^32 - 1, found \"99999999999 0 0;\""),
        ("0 1 0 0,;", "expected the identifier of a successor, found \";\""),
        ("hello", "expected the identifier of a vertex, found \"hello\""),
    ] {
        let d = read(text).unwrap_err();
        assert!(d.to_string().contains(wanted), "{text:?}: {}", d);
    }
}
