//! Picture of the lattice: strong models at the top, a line down to each next weaker model, with
//! the test that separates them.

use std::fmt::Write;

use super::Lattice;

const WIDTH: usize = 190;
const HEIGHT: usize = 110;
const BOX: (usize, usize) = (160, 40);

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Draws an SVG picture. The layer of a class is its longest path from a strongest class; within a
/// layer, classes are in the order of the models.
pub fn svg(lattice: &Lattice) -> String {
    let classes = lattice.classes();
    let edges = lattice.edges(&classes);
    let mut layer = vec![0; classes.len()];
    for _ in 0..classes.len() {
        for &(a, b) in &edges {
            layer[b] = layer[b].max(layer[a] + 1);
        }
    }
    let layers = layer.iter().max().map_or(0, |l| l + 1);
    let in_layer = |l: usize| (0..classes.len()).filter(|&c| layer[c] == l).collect::<Vec<_>>();
    let widest = (0..layers).map(|l| in_layer(l).len()).max().unwrap_or(0);
    let place = |c: usize| {
        let row = in_layer(layer[c]);
        let at = row.iter().position(|x| *x == c).expect("a class is in its layer");
        let shift = (widest - row.len()) * WIDTH / 2;
        (20 + shift + at * WIDTH, 20 + layer[c] * HEIGHT)
    };
    let (width, height) = (40 + widest * WIDTH, 40 + layers * HEIGHT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for &(a, b) in &edges {
        let ((ax, ay), (bx, by)) = (place(a), place(b));
        let test = lattice.separating[classes[b][0]][classes[a][0]]
            .as_ref()
            .map(|t| t.text())
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "<g><title>{} allows, {} forbids: {}</title><line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{by}\" stroke=\"#557\" stroke-width=\"1.5\"/></g>",
            escape(&lattice.names[classes[b][0]]),
            escape(&lattice.names[classes[a][0]]),
            escape(&test),
            ax + BOX.0 / 2,
            ay + BOX.1,
            bx + BOX.0 / 2
        );
    }
    for (c, class) in classes.iter().enumerate() {
        let (x, y) = place(c);
        let names: Vec<String> = class.iter().map(|&m| escape(&lattice.names[m])).collect();
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"#eef2fa\" stroke=\"#335\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            BOX.0,
            BOX.1,
            x + BOX.0 / 2,
            y + BOX.1 / 2 + 5,
            names.join(" = ")
        );
    }
    out += "</svg>\n";
    out
}
