//! Line chart over a parameter with a logarithmic vertical axis: values to SVG.
//!
//! Measured values are a solid line with solid dots. Reference values are dashed and hollow, in the
//! colour of their series. A cross is a value at which a limit stopped the run, so that the answer
//! is unknown. A diamond is the cost of the verdict *false*. A curve that ends before the others
//! has no line to its name, and the name includes its last value. Names are to the right of the
//! ends of curves, in the same vertical order, so that no legend depends on colour alone.

use super::svg::{Anchor, Svg, width_of};
use std::fmt::Write;

/// Marks of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PointMark {
    /// A measured value.
    Full,
    /// A reference value.
    Hollow,
    /// A measured value of a run with a false formula.
    False,
    /// The value at which a limit ended the run: the answer is unknown.
    Stopped,
}

/// A value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Horizontal coordinate.
    pub x: f64,
    /// Vertical coordinate; not drawn unless positive.
    pub y: f64,
    /// Its mark.
    pub mark: PointMark,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Index of its colour.
    pub color: usize,
    /// True if its line is dashed.
    pub dashed: bool,
    /// Its points, ascending.
    pub points: Vec<Point>,
}

/// Units of measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// Counts.
    #[default]
    Count,
    /// Time.
    Seconds,
    /// Memory.
    Mebibytes,
}

/// Description of a plot.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// Subtitle.
    pub subtitle: String,
    /// Name of the parameter.
    pub x_label: String,
    /// Unit of the vertical axis.
    pub unit: Unit,
    /// Values of the parameter with their texts.
    pub ticks: Vec<(f64, String)>,
    /// The curves.
    pub series: Vec<Series>,
}

/// Colours that people with colour blindness can distinguish (after Okabe and Ito), dark enough on
/// white.
const COLORS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#a67c00", "#332288", "#4d4d4d", "#cc3311"];
const STYLE: &str = "text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 11px; fill: #333 }
.title { font-size: 15px; font-weight: bold; fill: #1a1a1a } .sub { font-size: 12px; fill: #666 } .axis-label { font-size: 12px }
.grid { stroke: #dcdcdc; stroke-width: 1 } .minor { stroke: #f1f1f1; stroke-width: 1 } .axis { stroke: #777; stroke-width: 1 }
.leader { stroke-width: 0.8; stroke-opacity: 0.6; fill: none }";

const LEFT: f64 = 84.0;
const TOP: f64 = 62.0;
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 340.0;
/// Distance from the right end of the curves to the names.
const TO_NAMES: f64 = 34.0;
/// Distance between names.
const LINE: f64 = 15.0;
/// Marks that need an explanation, with the text.
const MEANINGS: &[(PointMark, &str)] = &[
    (PointMark::False, "the formula does not hold here"),
    (PointMark::Stopped, "a limit stopped the run here: unknown"),
];

impl Plot {
    /// Draws the plot. `None` if no value can be drawn, or all have the same horizontal position.
    pub fn draw(&self) -> Option<String> {
        let shown = |s: &Series| {
            s.points
                .iter()
                .copied()
                .filter(|p| p.y > 0.0 && p.x.is_finite() && p.y.is_finite())
                .collect::<Vec<_>>()
        };
        let curves: Vec<(&Series, Vec<Point>)> =
            self.series.iter().map(|s| (s, shown(s))).filter(|(_, p)| !p.is_empty()).collect();
        let points = || curves.iter().flat_map(|(_, p)| p);
        let (x_low, x_high) = bounds(points().map(|p| p.x).chain(self.ticks.iter().map(|t| t.0)))?;
        if x_low == x_high {
            return None;
        }
        let (low, high) = bounds(points().map(|p| p.y))?;
        let (low, high) = decades_around(low, high);
        let x = |v: f64| LEFT + 14.0 + (v - x_low) / (x_high - x_low) * (WIDTH - 28.0);
        let y = |v: f64| TOP + HEIGHT - (v.log10() - low) / (high - low) * HEIGHT;
        let last = points().map(|p| p.x).fold(f64::MIN, f64::max);
        let texts = curves.iter().filter_map(|(s, p)| p.last().map(|p| self.name(s, *p, last)));
        let names = texts.map(|t| width_of(&t, 11.0)).fold(0.0, f64::max) + 46.0;
        let width = (LEFT + WIDTH + TO_NAMES + names).max(LEFT + width_of(&self.title, 15.0));
        let mut svg = Svg::default();
        svg.text("title", (16.0, 24.0), Anchor::Start, &self.title);
        svg.text("sub", (16.0, 43.0), Anchor::Start, &self.subtitle);
        self.grid(&mut svg, (low, high), &x, &y);
        // Reference values are drawn first, so that their rings surround our dots if they agree.
        let (quoted, measured): (Vec<_>, Vec<_>) = curves.iter().partition(|(s, _)| s.dashed);
        for (series, points) in quoted.into_iter().chain(measured) {
            curve(&mut svg, self.unit, series, points, self, &x, &y);
        }
        let bottom = self.names(&mut svg, &curves, &x, &y);
        let mut foot = TOP + HEIGHT + 42.0;
        svg.text("axis-label", (LEFT + WIDTH / 2.0, foot), Anchor::Middle, &self.x_label);
        for (mark, meaning) in MEANINGS {
            if points().any(|p| p.mark == *mark) {
                foot += 20.0;
                symbol(&mut svg, *mark, (LEFT + 5.0, foot - 4.0), "#666");
                svg.text("sub", (LEFT + 18.0, foot), Anchor::Start, meaning);
            }
        }
        Some(svg.finish(width, (foot + 14.0).max(bottom + 14.0), STYLE))
    }

    fn grid(
        &self,
        svg: &mut Svg,
        (low, high): (f64, f64),
        x: &impl Fn(f64) -> f64,
        y: &impl Fn(f64) -> f64,
    ) {
        let (left, right) = (LEFT, LEFT + WIDTH);
        // Decades; if there are many, only every second, third… has a text. Fine lines between if
        // there are few.
        let decades = high - low;
        let step = (decades / 9.0).ceil().max(1.0) as i32;
        let mut minor = Vec::new();
        for exponent in low.floor() as i32..=high.ceil() as i32 {
            for factor in 2..10 {
                minor.push((
                    f64::from(exponent) + f64::from(factor).log10(),
                    f64::from(factor) * 10f64.powi(exponent),
                    factor,
                ));
            }
        }
        minor.retain(|m| m.0 > low && m.0 < high);
        if decades <= 6.0 {
            minor.iter().for_each(|m| svg.line("minor", (left, y(m.1)), (right, y(m.1))));
        }
        for exponent in low.ceil() as i32..=high.floor() as i32 {
            let v = 10f64.powi(exponent);
            svg.line("grid", (left, y(v)), (right, y(v)));
            if exponent.rem_euclid(step) == 0 {
                svg.text("tick", (left - 8.0, y(v) + 4.0), Anchor::End, &amount(self.unit, v));
            }
        }
        if decades <= 2.0 {
            for m in minor.iter().filter(|m| m.2 == 2 || m.2 == 5) {
                svg.text("tick", (left - 8.0, y(m.1) + 4.0), Anchor::End, &amount(self.unit, m.1));
            }
        }
        // As many parameter values as fit.
        let mut free = f64::MIN;
        for (value, text) in &self.ticks {
            let (at, half) = (x(*value), width_of(text, 11.0) / 2.0);
            svg.line("axis", (at, TOP + HEIGHT), (at, TOP + HEIGHT + 5.0));
            if at - half > free {
                svg.text("tick", (at, TOP + HEIGHT + 19.0), Anchor::Middle, text);
                free = at + half + 6.0;
            }
        }
        svg.line("axis", (left, TOP + HEIGHT), (right, TOP + HEIGHT));
        svg.line("axis", (left, TOP), (left, TOP + HEIGHT));
    }

    /// Returns the text of a parameter value.
    fn tick(&self, x: f64) -> String {
        self.ticks.iter().find(|t| t.0 == x).map_or_else(|| x.to_string(), |t| t.1.clone())
    }

    /// Returns the name of a curve, with its last value if other curves continue.
    fn name(&self, series: &Series, end: Point, last: f64) -> String {
        if end.x == last {
            series.name.clone()
        } else {
            format!("{} (to {} = {})", series.name, self.x_label, self.tick(end.x))
        }
    }

    /// Draws the names of the curves on the right, each as close to its curve's end as possible.
    /// Returns the lowest position.
    fn names(
        &self,
        svg: &mut Svg,
        curves: &[(&Series, Vec<Point>)],
        x: &impl Fn(f64) -> f64,
        y: &impl Fn(f64) -> f64,
    ) -> f64 {
        let mut ends: Vec<(f64, Point, &Series)> =
            curves.iter().filter_map(|(s, p)| p.last().map(|p| (y(p.y), *p, *s))).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let places = spread(&ends.iter().map(|e| e.0).collect::<Vec<_>>(), LINE, TOP - 6.0);
        let at = LEFT + WIDTH + TO_NAMES;
        let last = ends.iter().map(|e| e.1.x).fold(f64::MIN, f64::max);
        for ((end, point, series), place) in ends.iter().zip(&places) {
            let color = color(series.color);
            svg.group("");
            if point.x == last {
                let (from, bend) = (x(point.x), (x(point.x) + 8.0).max(LEFT + WIDTH));
                let leader = format!(
                    "M {from:.1} {end:.1} L {bend:.1} {end:.1} L {:.1} {place:.1}",
                    at - 4.0
                );
                let path =
                    [("class", "leader".to_string()), ("stroke", color.into()), ("d", leader)];
                svg.element("path", &path, None);
            }
            let dash = if series.dashed { "4 3" } else { "none" };
            let key = [
                ("x1", format!("{at:.1}")),
                ("x2", format!("{:.1}", at + 22.0)),
                ("y1", format!("{place:.1}")),
                ("y2", format!("{place:.1}")),
                ("stroke", color.to_string()),
                ("stroke-width", "2".to_string()),
                ("stroke-dasharray", dash.to_string()),
            ];
            svg.element("line", &key, None);
            svg.text(
                "name",
                (at + 28.0, place + 4.0),
                Anchor::Start,
                &self.name(series, *point, last),
            );
            svg.end();
        }
        places.last().copied().unwrap_or(0.0)
    }
}

fn curve(
    svg: &mut Svg,
    unit: Unit,
    series: &Series,
    points: &[Point],
    plot: &Plot,
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
) {
    let color = color(series.color).to_string();
    let mut d = String::new();
    for (i, p) in points.iter().enumerate() {
        let _ = write!(d, "{}{:.1} {:.1}", if i == 0 { "M " } else { " L " }, x(p.x), y(p.y));
    }
    let dash = if series.dashed { "5 4" } else { "none" };
    let width = if series.dashed { "1.5" } else { "2" };
    let line = [
        ("d", d),
        ("fill", "none".to_string()),
        ("stroke", color.clone()),
        ("stroke-width", width.into()),
        ("stroke-dasharray", dash.into()),
        ("stroke-linejoin", "round".into()),
    ];
    svg.element("path", &line, None);
    for p in points {
        let what = match p.mark {
            PointMark::Stopped => ", stopped by a limit",
            PointMark::False => ", the formula does not hold",
            PointMark::Full | PointMark::Hollow => "",
        };
        svg.group(&format!(
            "{}, {} = {}: {}{what}",
            series.name,
            plot.x_label,
            plot.tick(p.x),
            exactly(unit, p.y)
        ));
        symbol(svg, p.mark, (x(p.x), y(p.y)), &color);
        svg.end();
    }
}

/// Draws the mark of a point.
fn symbol(svg: &mut Svg, mark: PointMark, (x, y): (f64, f64), color: &str) {
    let path = |d: String, fill: &str, width: &str| {
        [
            ("d", d),
            ("fill", fill.to_string()),
            ("stroke", color.to_string()),
            ("stroke-width", width.to_string()),
        ]
    };
    match mark {
        PointMark::Stopped => svg.element(
            "path",
            &path(format!("M {:.1} {:.1} l 9 9 m 0 -9 l -9 9", x - 4.5, y - 4.5), "none", "2.2"),
            None,
        ),
        PointMark::False => svg.element(
            "path",
            &path(format!("M {x:.1} {:.1} l 6 6 l -6 6 l -6 -6 z", y - 6.0), "#ffffff", "2"),
            None,
        ),
        PointMark::Full | PointMark::Hollow => {
            let (fill, r) =
                if mark == PointMark::Hollow { ("#ffffff", "5") } else { (color, "3.2") };
            let at = [("cx", format!("{x:.1}")), ("cy", format!("{y:.1}")), ("r", r.to_string())];
            let look = [
                ("fill", fill.to_string()),
                ("stroke", color.to_string()),
                ("stroke-width", "1.5".to_string()),
            ];
            svg.element("circle", &at.into_iter().chain(look).collect::<Vec<_>>(), None);
        }
    }
}

fn color(number: usize) -> &'static str {
    COLORS[number % COLORS.len()]
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |b, v| Some(b.map_or((v, v), |(l, h): (f64, f64)| (l.min(v), h.max(v)))))
}

/// Returns decimal logarithms slightly beyond two values, at least a decade apart.
fn decades_around(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = (low.log10() - 0.08, high.log10() + 0.08);
    if high - low >= 1.0 {
        (low, high)
    } else {
        ((low + high) / 2.0 - 0.5, (low + high) / 2.0 + 0.5)
    }
}

/// Returns positions as close to the desired ones (ascending) as a minimum distance allows, none
/// above the top. Blocks of adjacent positions are centred on their desired positions.
fn spread(wanted: &[f64], distance: f64, top: f64) -> Vec<f64> {
    // Blocks of adjacent positions: sum of the desired first positions, count.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    let start = |b: &(f64, usize)| (b.0 / b.1 as f64).max(top);
    for &w in wanted {
        blocks.push((w, 1));
        while let [.., before, last] = blocks[..] {
            if start(&before) + before.1 as f64 * distance <= start(&last) {
                break;
            }
            blocks.pop();
            blocks.pop();
            let shifted = last.0 - (last.1 * before.1) as f64 * distance;
            blocks.push((before.0 + shifted, before.1 + last.1));
        }
    }
    blocks.iter().flat_map(|b| (0..b.1).map(move |i| start(b) + i as f64 * distance)).collect()
}

/// Formats a value on the axis.
fn amount(unit: Unit, v: f64) -> String {
    let scaled = |steps: &[(f64, &str)]| {
        let (factor, name) = steps
            .iter()
            .rev()
            .find(|s| v >= s.0 * 0.999)
            .or(steps.first())
            .copied()
            .unwrap_or((1.0, ""));
        let text = format!("{:.6}", v / factor);
        format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match unit {
        Unit::Count => {
            let steps = [(1.0, ""), (1e3, " k"), (1e6, " M"), (1e9, " G"), (1e12, " T")];
            if v > 9e14 { format!("{v:.0e}") } else { scaled(&steps) }
        }
        Unit::Seconds => scaled(&[(1e-3, " ms"), (1.0, " s"), (1e3, ",000 s")]),
        Unit::Mebibytes => scaled(&[(1.0, " MiB"), (1e3, ",000 MiB")]),
    }
}

/// Formats a value in a tooltip.
fn exactly(unit: Unit, v: f64) -> String {
    match unit {
        Unit::Count => format!("{v:.0}"),
        Unit::Seconds => format!("{v:.3} s"),
        Unit::Mebibytes => format!("{v:.1} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance() {
        let places = spread(&[10.0, 12.0, 13.0, 100.0], 15.0, 0.0);
        assert!(places.windows(2).all(|w| w[1] - w[0] >= 15.0 - 1e-9), "{places:?}");
        assert_eq!(places[3], 100.0);
        assert!((places[0] - 0.0).abs() < 6.0 && spread(&[1.0, 1.0], 15.0, 0.0)[0] >= 0.0);
        assert_eq!(spread(&[50.0, 50.0, 50.0], 10.0, 0.0), [40.0, 50.0, 60.0]);
    }

    #[test]
    fn amounts_are_short() {
        let all = |unit, values: &[f64]| {
            values.iter().map(|v| amount(unit, *v)).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(
            all(Unit::Count, &[1.0, 100.0, 1e3, 2e5, 1e7, 1e9, 1e16]),
            "1; 100; 1 k; 200 k; 10 M; 1 G; 1e16"
        );
        assert_eq!(
            all(Unit::Seconds, &[0.001, 0.01, 0.2, 1.0, 100.0, 1e3, 1e5]),
            "1 ms; 10 ms; 200 ms; 1 s; 100 s; 1,000 s; 100,000 s"
        );
        assert_eq!(all(Unit::Mebibytes, &[0.5, 500.0, 2e4]), "0.5 MiB; 500 MiB; 20,000 MiB");
    }

    #[test]
    fn curves_marks_and_names() {
        let points = |ys: &[f64], mark| {
            ys.iter()
                .enumerate()
                .map(|(i, y)| Point { x: i as f64, y: *y, mark })
                .collect::<Vec<_>>()
        };
        let mut plot = Plot {
            title: "T & t".into(),
            x_label: "n".into(),
            unit: Unit::Seconds,
            ..Plot::default()
        };
        plot.ticks = (0..3).map(|i| (f64::from(i), i.to_string())).collect();
        plot.series.push(Series {
            name: "ours".into(),
            color: 0,
            dashed: false,
            points: points(&[0.1, 3.0, 70.0], PointMark::Full),
        });
        plot.series[0].points[2].mark = PointMark::Stopped;
        plot.series.push(Series {
            name: "theirs".into(),
            color: 0,
            dashed: true,
            points: points(&[0.0, 60.0, 5e3], PointMark::Hollow),
        });
        let svg = plot.draw().unwrap();
        assert!(
            svg.contains("T &amp; t")
                && svg.contains("theirs, n = 2: 5000.000 s")
                && svg.contains("ours, n = 2: 70.000 s, stopped by a limit"),
            "{svg}"
        );
        assert_eq!(
            (svg.matches("<circle").count(), svg.matches("a limit stopped the run here").count()),
            (4, 1),
            "{svg}"
        );
        // Both curves reach the end: two leader lines. A shorter curve has none, and its name
        // includes its end.
        assert_eq!(svg.matches("class=\"leader\"").count(), 2, "{svg}");
        plot.series[0].points.truncate(2);
        plot.series[0].points[1].mark = PointMark::False;
        let svg = plot.draw().unwrap();
        assert_eq!(
            (svg.matches("class=\"leader\"").count(), svg.matches("ours (to n = 1)").count()),
            (1, 1),
            "{svg}"
        );
        assert!(
            svg.contains("the formula does not hold here") && !svg.contains("a limit stopped"),
            "{svg}"
        );
        plot.series.iter_mut().for_each(|s| s.points.iter_mut().for_each(|p| p.y = 0.0));
        assert!(plot.draw().is_none());
    }
}
