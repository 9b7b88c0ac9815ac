//! A drawing as SVG in the making: words, lines, bars, dots.

use std::fmt::Write as _;

/// Of every drawing, in points.
pub const WIDTH: f64 = 720.0;

/// A drawing in the making; places are in points from its upper left corner.
#[derive(Debug)]
pub struct Canvas {
    body: String,
    height: f64,
}

impl Canvas {
    /// Of this height.
    pub fn new(height: f64) -> Self {
        Self { body: String::new(), height }
    }

    /// Its height.
    pub fn height(&self) -> f64 {
        self.height
    }

    /// Words; `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#);
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(self.body, r#"<path d="M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}" stroke="{colour}"/>"#);
    }

    /// A line in the words of SVG.
    pub fn path(&mut self, path: &str, is_dashed: bool) {
        let dash = if is_dashed { r#" stroke-dasharray="4 2""# } else { "" };
        let _ = writeln!(self.body, r#"<path d="{path}" fill="none" stroke="black"{dash}/>"#);
    }

    /// A horizontal bar between two places.
    pub fn bar(&mut self, from: f64, to: f64, y: f64, height: f64, colour: &str) {
        let width = (to - from).max(0.0);
        let _ = writeln!(
            self.body,
            r#"<rect x="{from:.1}" y="{y:.1}" width="{width:.1}" height="{height}" fill="{colour}" stroke="black" stroke-width="0.5"/>"#
        );
    }

    /// A dot.
    pub fn dot(&mut self, x: f64, y: f64, fill: &str) {
        let _ = writeln!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="2.4" fill="{fill}" stroke="black" stroke-width="0.6"/>"#
        );
    }

    /// The whole file.
    pub fn finish(self) -> String {
        let Self { body, height } = self;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>
{body}</svg>
"#
        )
    }
}
