//! SVG writer for charts and plots. Texts of users are escaped.

use std::fmt::Write;

/// A picture under construction.
#[derive(Default)]
pub struct Svg {
    body: String,
}

/// Position of a text relative to its point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// The text starts there.
    Start,
    /// The text is centred there.
    Middle,
    /// The text ends there.
    End,
}

impl Svg {
    /// Adds an element with attributes and optional text.
    pub fn element(&mut self, name: &str, attributes: &[(&str, String)], text: Option<&str>) {
        self.open(name, attributes, text.is_none());
        if let Some(text) = text {
            let _ = writeln!(self.body, "{}</{name}>", escape(text));
        }
    }
    fn open(&mut self, name: &str, attributes: &[(&str, String)], closed: bool) {
        let _ = write!(self.body, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.body, " {key}=\"{}\"", escape(value));
        }
        self.body.push_str(if closed { "/>\n" } else { ">" });
    }
    /// Adds a straight line of a class.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let at = [
            ("class", class.into()),
            ("x1", number(from.0)),
            ("y1", number(from.1)),
            ("x2", number(to.0)),
            ("y2", number(to.1)),
        ];
        self.element("line", &at, None);
    }
    /// Adds a box of a class.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let at = [
            ("class", class.into()),
            ("x", number(x)),
            ("y", number(y)),
            ("width", number(width)),
            ("height", number(height)),
        ];
        self.element("rect", &at, None);
    }
    /// Adds a circle of a class.
    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), r: f64) {
        self.element(
            "circle",
            &[("class", class.into()), ("cx", number(x)), ("cy", number(y)), ("r", number(r))],
            None,
        );
    }
    /// Adds a path of a class; `d` is in SVG's path language.
    pub fn path(&mut self, class: &str, d: &str) {
        self.element("path", &[("class", class.into()), ("d", d.into())], None);
    }
    /// Adds a text of a class.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.element(
            "text",
            &[
                ("class", class.into()),
                ("x", number(x)),
                ("y", number(y)),
                ("text-anchor", anchor.into()),
            ],
            Some(text),
        );
    }
    /// Starts a group with a tooltip.
    pub fn group(&mut self, title: &str) {
        self.open("g", &[], false);
        if !title.is_empty() {
            self.element("title", &[], Some(title));
        }
    }
    /// Ends a group.
    pub fn end(&mut self) {
        self.body.push_str("</g>\n");
    }
    /// Returns the picture.
    pub fn finish(self, width: f64, height: f64, style: &str) -> String {
        let (w, h) = (number(width.ceil()), number(height.ceil()));
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\">\n<style>\n{style}\n</style>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Formats a coordinate with few digits.
pub fn number(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map(String::from).unwrap_or(text)
}

/// Escapes text for elements and attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Estimates the width of a text in a sans-serif font, by classes of letters. The estimate follows
/// the wide DejaVu Sans, so that other fonts need no more.
pub fn width_of(text: &str, size: f64) -> f64 {
    let units: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '|' | '.' | ',' | ':' | ';' | '\'' | '!' | ' ' => 0.33,
            'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '{' | '}' | '-' | '/' => 0.41,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
            c if c.is_uppercase() => 0.72,
            c if c.is_ascii() => 0.62,
            _ => 0.85,
        })
        .sum();
    units * size
}

/// Wraps a text to a width, after commas, opening brackets and blanks if possible, into few lines
/// of similar length.
pub fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut best = wrap_at(text, size, width);
    let mut narrower = width;
    while best.len() > 1 && narrower > 40.0 {
        narrower -= 8.0;
        let lines = wrap_at(text, size, narrower);
        if lines.len() > best.len() {
            break;
        }
        best = lines;
    }
    best
}

fn wrap_at(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut pieces: Vec<String> = Vec::new();
    for c in text.chars() {
        match pieces.last_mut() {
            Some(last) if !last.ends_with([',', '(', ' ', '|']) || c == ' ' => last.push(c),
            _ => pieces.push(c.to_string()),
        }
    }
    for piece in pieces {
        let Some(last) = lines.last_mut() else { break };
        if !last.is_empty() && width_of(last, size) + width_of(piece.trim_end(), size) > width {
            lines.push(piece.trim_start().to_string());
        } else {
            last.push_str(&piece);
        }
    }
    lines.iter().map(|l| l.trim_end().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_wrote_is_escaped() {
        let mut svg = Svg::default();
        svg.group("a < b");
        svg.text("x\"y", (1.0, 2.25), Anchor::Middle, "f(a & b)");
        svg.end();
        let text = svg.finish(10.2, 5.0, "");
        assert!(
            text.contains("<title>a &lt; b</title>")
                && text.contains("class=\"x&quot;y\"")
                && text.contains("f(a &amp; b)"),
            "{text}"
        );
        assert!(text.contains("width=\"11\" height=\"5\"") && text.contains("y=\"2.2\""), "{text}");
    }

    #[test]
    fn long_texts_are_broken_where_they_may_be() {
        let lines = wrap("observe(core_0, addr_1, data_0, 2, core_1)", 11.0, 110.0);
        assert!(lines.len() > 1 && lines.iter().all(|l| width_of(l, 11.0) <= 115.0), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), "observe(core_0,addr_1,data_0,2,core_1)");
        assert_eq!(wrap("short", 11.0, 110.0), ["short"]);
    }
}
