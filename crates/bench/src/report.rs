//! What a measurement says: a table to read, and the same as JSON.

use std::fmt;

use serde_json::{Map, Value, json};

/// One value of a table.
pub enum Cell {
    /// A name.
    Text(String),
    /// A number, and how many decimals of it are worth reading.
    Number(f64, usize),
    /// Nothing was measured here.
    Nothing,
}

impl Cell {
    /// A name.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// How large a value is beside another, if there is another.
    pub fn ratio(value: f64, to: Option<f64>) -> Self {
        to.map_or(Self::Nothing, |to| Self::Number(value / to, 2))
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(number, decimals) => {
                let scale = 10f64.powi(*decimals as i32);
                json!((number * scale).round() / scale)
            }
            Self::Nothing => Value::Null,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.pad(text),
            Self::Number(number, decimals) => formatter.pad(&grouped(*number, *decimals)),
            Self::Nothing => formatter.pad("-"),
        }
    }
}

/// A number with a comma between its thousands.
fn grouped(number: f64, decimals: usize) -> String {
    let plain = format!("{number:.decimals$}");
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// The result of one measurement.
pub struct Table {
    /// The measurement's name on the command line.
    pub name: &'static str,
    /// What was measured.
    pub title: String,
    /// What the columns hold.
    pub columns: Vec<&'static str>,
    /// A row for each thing measured.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The rows as objects with the columns' names.
    pub fn json(&self) -> Value {
        let row = |cells: &Vec<Cell>| -> Map<_, _> {
            let names = self.columns.iter().map(ToString::to_string);
            names.zip(cells.iter().map(Cell::json)).collect()
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        json!({ "name": self.name, "title": self.title, "rows": rows })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(ToString::to_string).collect())
            .collect();
        let widths: Vec<usize> = (self.columns.iter().enumerate())
            .map(|(at, column)| {
                let values = cells.iter().map(|row| row[at].len());
                values.chain([column.len()]).max().unwrap_or(0)
            })
            .collect();
        let line = |formatter: &mut fmt::Formatter<'_>, cells: &mut dyn Iterator<Item = &str>| {
            for (at, (cell, width)) in cells.zip(&widths).enumerate() {
                match at {
                    0 => write!(formatter, "  {cell:<width$}")?,
                    _ => write!(formatter, "   {cell:>width$}")?,
                }
            }
            writeln!(formatter)
        };
        writeln!(formatter, "{}", self.title)?;
        line(formatter, &mut self.columns.iter().copied())?;
        for row in &cells {
            line(formatter, &mut row.iter().map(String::as_str))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_readable_as_a_table_and_as_json() {
        let table = Table {
            name: "posts",
            title: "Posts".into(),
            columns: vec!["target", "posts/s", "of ceiling"],
            rows: vec![
                vec![
                    Cell::text("ceiling"),
                    Cell::Number(16012.4, 0),
                    Cell::Nothing,
                ],
                vec![
                    Cell::text("x"),
                    Cell::Number(8.0, 0),
                    Cell::ratio(1.0, Some(3.0)),
                ],
            ],
        };
        assert_eq!(
            table.to_string(),
            "Posts\n  target    posts/s   of ceiling\n  ceiling    16,012            -\n  \
             x               8         0.33\n"
        );
        assert_eq!(table.json()["rows"][1]["of ceiling"], json!(0.33));
    }
}
