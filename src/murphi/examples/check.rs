//! Checks a model: `cargo run -p mu-check-murphi --example check FILE.m`.

use mu_base::SourceMap;

fn main() {
    let file = std::env::args().nth(1).expect("a file");
    let text = String::from_utf8_lossy(&std::fs::read(&file).expect("a file")).into_owned();
    let mut sources = SourceMap::new();
    let source = sources.add(file.as_str(), text.as_str());
    if let Err(error) = mu_murphi::read(source, &text, &mu_murphi::Settings::default()) {
        eprint!("{}", error.render(&sources));
        std::process::exit(2);
    }
}
