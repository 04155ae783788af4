//! The terminal screen and its keys, on a backend that records what is drawn.

use super::interpreter::Interpreter;
use super::screen::Screen;
use mu_base::Budget;
use mu_compile::{Compiled, Confluence};
use mu_process::linearise::{LineariserOptions, linearise};
use mu_process::typecheck::check_specification;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

const MODEL: &str = "act enter, leave, give, take, mid: Nat;
proc First(a: Nat) = sum n: Nat. (n < 2) -> enter(n) . give(n) . First(n);
proc Second(b: Nat) = sum n: Nat. take(n) . leave(n) . Second(n);
init hide({mid}, allow({enter, leave, mid}, comm({give|take -> mid}, First(0) || Second(0))));
";

fn model() -> Compiled {
    let mut sources = mu_base::SourceMap::new();
    let source = sources.add("m.mcrl2", MODEL);
    let spec =
        check_specification(&mu_syntax::parse_specification(source, MODEL).unwrap()).unwrap();
    Compiled::new(linearise(&spec, &LineariserOptions::default()).unwrap(), &Confluence::None)
        .unwrap()
}

fn screen(model: &Compiled, colour: bool) -> Screen<'_> {
    Screen::new(
        Interpreter::new(model, "buffer.mcrl2".as_ref(), 3, &Budget::default()).unwrap(),
        colour,
    )
}

fn draw(screen: &mut Screen, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame).unwrap()).unwrap();
    terminal
}

fn picture(screen: &mut Screen) -> Vec<String> {
    let terminal = draw(screen, 100, 20);
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..100).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..20).map(|y| line(y).trim_end().to_string()).collect()
}

/// Types keys; characters of the text, with `\n` for Enter.
fn keys(screen: &mut Screen, text: &str) -> bool {
    let key = |c: char| {
        KeyEvent::new(if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) }, KeyModifiers::NONE)
    };
    text.chars().any(|c| screen.key(key(c)))
}

#[test]
fn the_picture() {
    let model = model();
    let mut screen = screen(&model, true);
    keys(&mut screen, "j\n\n");
    let picture = picture(&mut screen);
    let expected = include_str!("picture.txt");
    if std::env::var_os("MU_CHECK_WRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/simulate/picture.txt");
        std::fs::write(path, picture.join("\n") + "\n").unwrap();
        return;
    }
    assert_eq!(picture, expected.lines().collect::<Vec<_>>(), "MU_CHECK_WRITE=1 draws it anew");
}

#[test]
fn keys_are_commands() {
    let model = model();
    let mut screen = screen(&model, true);
    let has = |screen: &mut Screen, text: &str| {
        let picture = picture(screen);
        assert!(picture.iter().any(|l| l.contains(text)), "{text}: {picture:#?}");
    };
    has(&mut screen, "at the initial state: 2 steps");
    keys(&mut screen, "\n\n");
    has(&mut screen, "(hidden: mid(0))");
    has(&mut screen, "after step 2:");
    keys(&mut screen, "bb");
    has(&mut screen, "at the initial state");
    keys(&mut screen, "b");
    has(&mut screen, "this is the initial state");
    keys(&mut screen, "ff");
    has(&mut screen, "after step 2:");
    keys(&mut screen, ":take nothing\n");
    has(&mut screen, "`nothing` is not a step of this state");
    keys(&mut screen, ":jump\n");
    has(&mut screen, "`jump` is not a command");
    keys(&mut screen, ":load /no/such/file.json\n");
    has(&mut screen, "cannot read `/no/such/file.json`");
    keys(&mut screen, "R");
    has(&mut screen, "after step 12:");
    keys(&mut screen, ":xyz");
    has(&mut screen, ":xyz█");
    keys(&mut screen, "\n/a\n");
    has(&mut screen, "with `a`");
    keys(&mut screen, "?");
    has(&mut screen, "Help: any key goes back");
    assert!(!keys(&mut screen, "q"), "a key ends the help, not the program");
    assert!(keys(&mut screen, "q"));
    assert!(screen.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    // A trace that was saved is replayed.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.json").display().to_string();
    keys(&mut screen, &format!(":save {file}\n:goto 0\n:random\nl{file}\n"));
    has(&mut screen, "replayed the 12 steps");
}

/// Any size of terminal draws, however small.
#[test]
fn small_terminals() {
    let model = model();
    let mut screen = screen(&model, true);
    for height in 1..12 {
        for width in [1, 2, 5, 20, 60] {
            draw(&mut screen, width, height);
            keys(&mut screen, "r");
        }
    }
}

#[test]
fn no_colours_if_not_wanted() {
    let model = model();
    let colours = |colour: bool| {
        let mut screen = screen(&model, colour);
        keys(&mut screen, "\n:wrong\n");
        let terminal = draw(&mut screen, 100, 20);
        terminal
            .backend()
            .buffer()
            .content()
            .iter()
            .filter(|c| c.fg != Color::Reset || c.bg != Color::Reset)
            .count()
    };
    assert_eq!(colours(false), 0);
    assert!(colours(true) > 10);
}
