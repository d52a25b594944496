//! Lists, as people and programs read them.

use std::io::{IsTerminal, stdout};

/// Prints lines whose columns are separated by tabs. In a terminal the columns stand below each other, and
/// above them what they are.
pub fn print(headings: &[&str], lines: &[String]) {
    let shown = match stdout().is_terminal() {
        true => aligned(headings, lines),
        false => lines.to_vec(),
    };
    for line in shown {
        println!("{line}");
    }
}

fn aligned(headings: &[&str], lines: &[String]) -> Vec<String> {
    let rows = lines.iter().map(|line| line.split('\t').collect());
    let rows: Vec<Vec<&str>> = std::iter::once(headings.to_vec()).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |row: &Vec<&str>| {
        let cells = row.iter().zip(&widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_their_headings() {
        let lines = ["u_a\tAda Byron\t1", "u_long_id\t-\t12"].map(str::to_owned);
        assert_eq!(
            aligned(&["USER", "NAME", "ROOMS"], &lines),
            [
                "USER       NAME       ROOMS",
                "u_a        Ada Byron  1",
                "u_long_id  -          12"
            ]
        );
    }
}
