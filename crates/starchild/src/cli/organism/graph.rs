//! `organism graph`: the organism drawn, as a picture or as text for programs that draw.

use super::{FileArgument, GraphArguments};
use crate::organism::config::load;
use crate::organism::graph::{Graph, svg, text};
use clap::ValueEnum;
use std::path::Path;

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A picture.
    Svg,
    /// For Mermaid.
    Mermaid,
    /// For Graphviz.
    Dot,
}

impl Format {
    /// What a file's name asks for.
    fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("mmd" | "mermaid") => Self::Mermaid,
            Some("dot" | "gv") => Self::Dot,
            _ => Self::Svg,
        }
    }
}

pub fn run(arguments: &GraphArguments) -> Result<(), String> {
    let GraphArguments {
        file: FileArgument { file },
        output,
        format,
    } = arguments;
    let (file, _) = load(file).map_err(|error| error.to_string())?;
    let by_name = || output.as_deref().map_or(Format::Svg, Format::of);
    let graph = Graph::of(&file);
    let drawn = match format.unwrap_or_else(by_name) {
        Format::Svg => svg::picture(&graph, svg::STYLE),
        Format::Mermaid => text::mermaid(&graph),
        Format::Dot => text::dot(&graph),
    };
    match output {
        None => {
            print!("{drawn}");
            Ok(())
        }
        Some(path) => {
            std::fs::write(path, drawn).map_err(|error| format!("{}: {error}", path.display()))
        }
    }
}
