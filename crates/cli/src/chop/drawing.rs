//! The chopping graph as a drawing: on each side one instance of every procedure, its pieces joined by S-edges; between the
//! sides the conflicts (dbx-tc, Figures 10 and 11).

use super::words;
use hotrow::chopping::{ChoppedProcedure, ChoppingGraph};
use plotters::coord::Shift;
use plotters::prelude::{
    DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _, IntoFont as _, PathElement, RGBColor, Rectangle,
    SVGBackend, Text, WHITE,
};
use plotters::style::{BLACK, Color, ShapeStyle};
use std::collections::BTreeSet;
use std::io;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawResult = Result<(), DrawingAreaErrorKind<io::Error>>;

/// Sizes in pixels.
const MARGIN: i32 = 24;
const TITLE: i32 = 70;
const BOX: i32 = 330;
const BETWEEN: i32 = 300;
const LINE: i32 = 17;
const PAD: i32 = 7;
const PIECE_GAP: i32 = 14;
const NAME: i32 = 26;
const PROCEDURE_GAP: i32 = 20;

const RED: RGBColor = RGBColor(190, 30, 45);
const GREY: RGBColor = RGBColor(110, 110, 110);

/// The letters that fit into a box; the library has no font metrics.
const LETTERS: usize = 48;

/// A piece in its place.
struct Placed {
    top: i32,
    bottom: i32,
    lines: Vec<String>,
}

/// Draws the graph as an SVG document.
///
/// # Errors
///
/// A message, if the drawing library fails.
pub(super) fn draw(workload: &str, graph: &ChoppingGraph) -> Result<String, String> {
    let mut document = String::new();
    draw_into(&mut document, workload, graph).map_err(|error| format!("cannot draw the graph: {error}"))?;
    Ok(document)
}

fn draw_into(document: &mut String, workload: &str, graph: &ChoppingGraph) -> DrawResult {
    let (columns, height) = place(graph);
    let width = 2 * MARGIN + 2 * BOX + BETWEEN;
    let root = SVGBackend::with_string(document, (width as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    write(&root, (MARGIN, 12), 20, BLACK, format!("Chopping graph of {workload}"))?;
    let key = "Two instances of each procedure. Black: pieces of one instance (S-edges). Red: conflicts (C-edges); a dashed one is \
               published later.";
    write(&root, (MARGIN, 42), 12, GREY, key.to_owned())?;
    let left_edge = MARGIN + BOX;
    let right_edge = left_edge + BETWEEN;
    let mut drawn = BTreeSet::new();
    for edge in &graph.edges {
        let middle = |(procedure, class): (usize, usize)| {
            let pieces = &graph.procedures[procedure].pieces;
            let piece = pieces.iter().position(|piece| piece.classes.contains(&class)).unwrap_or(0);
            let Placed { top, bottom, .. } = &columns[procedure][piece];
            (top + bottom) / 2
        };
        let (from, to) = (middle(edge.from), middle(edge.to));
        // Several conflicts of the same two pieces are one line, and so is the same one between the other two instances.
        if drawn.insert((from, to, edge.published)) {
            join(&root, (left_edge, from), (right_edge, to), edge.published)?;
        }
    }
    for (procedure, pieces) in graph.procedures.iter().zip(&columns) {
        for x in [MARGIN, right_edge] {
            draw_procedure(&root, x, procedure, pieces)?;
        }
    }
    root.present()
}

/// The places of all pieces, and the height of the drawing.
fn place(graph: &ChoppingGraph) -> (Vec<Vec<Placed>>, i32) {
    let mut y = TITLE;
    let mut columns = Vec::new();
    for procedure in &graph.procedures {
        y += NAME;
        let mut pieces = Vec::new();
        for piece in &procedure.pieces {
            let lines: Vec<String> =
                words(procedure, &piece.classes).iter().map(|words| shortened(words)).collect();
            let bottom = y + lines.len() as i32 * LINE + 2 * PAD;
            pieces.push(Placed { top: y, bottom, lines });
            y = bottom + PIECE_GAP;
        }
        columns.push(pieces);
        y += PROCEDURE_GAP - PIECE_GAP;
    }
    (columns, y + MARGIN)
}

fn shortened(words: &str) -> String {
    if words.chars().count() <= LETTERS {
        return words.to_owned();
    }
    words.chars().take(LETTERS - 1).chain(['…']).collect()
}

fn draw_procedure(root: &Area<'_>, x: i32, procedure: &ChoppedProcedure, pieces: &[Placed]) -> DrawResult {
    let Some(first) = pieces.first() else { return Ok(()) };
    let note = if procedure.on_snapshot { " (on a snapshot)" } else { "" };
    write(root, (x, first.top - 20), 14, BLACK, format!("{}{note}", procedure.name))?;
    let middle = x + BOX / 2;
    for pair in pieces.windows(2) {
        let ends = vec![(middle, pair[0].bottom), (middle, pair[1].top)];
        root.draw(&PathElement::new(ends, BLACK.stroke_width(2)))?;
    }
    for (piece, Placed { top, bottom, lines }) in procedure.pieces.iter().zip(pieces) {
        let colour = match (piece.conflicting, procedure.on_snapshot) {
            (true, _) => RED,
            (false, true) => GREY,
            (false, false) => BLACK,
        };
        let corners = [(x, *top), (x + BOX, *bottom)];
        let inside = if piece.conflicting { RGBColor(253, 240, 240) } else { WHITE };
        root.draw(&Rectangle::new(corners, inside.filled()))?;
        root.draw(&Rectangle::new(corners, stroke(&colour, piece.conflicting)))?;
        for (at, line) in (0..).zip(lines) {
            write(root, (x + PAD, top + PAD + at * LINE), 13, colour, line.clone())?;
        }
    }
    Ok(())
}

fn stroke(colour: &impl Color, strong: bool) -> ShapeStyle {
    colour.stroke_width(if strong { 3 } else { 1 })
}

/// Draws a conflict.
fn join(root: &Area<'_>, from: (i32, i32), to: (i32, i32), dashed: bool) -> DrawResult {
    if !dashed {
        return root.draw(&PathElement::new(vec![from, to], RED.stroke_width(1)));
    }
    const DASHES: i32 = 30;
    for dash in 0..DASHES {
        let at = |part: i32| {
            let along = |a: i32, b: i32| a + (b - a) * part / (2 * DASHES);
            (along(from.0, to.0), along(from.1, to.1))
        };
        root.draw(&PathElement::new(vec![at(2 * dash), at(2 * dash + 1)], RED.stroke_width(1)))?;
    }
    Ok(())
}

fn write(root: &Area<'_>, place: (i32, i32), size: i32, colour: RGBColor, text: String) -> DrawResult {
    root.draw(&Text::new(text, place, ("sans-serif", size).into_font().color(&colour)))
}
