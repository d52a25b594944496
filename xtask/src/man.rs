//! `cargo xtask man`: man pages and completions, made of what the built programs say of themselves.

use crate::run::{cargo, root, run, target};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PROGRAMS: [&str; 2] = ["starchild", "sc-chatroom"];
const SHELLS: [(&str, &str); 3] = [
    ("bash", "starchild"),
    ("zsh", "_starchild"),
    ("fish", "starchild.fish"),
];
/// Commands within commands are not nested deeper.
const MAX_DEPTH: usize = 4;

/// Builds the programs, and writes into `target/man` and `target/completions`.
pub fn man() -> Result<(), String> {
    run(cargo()
        .current_dir(root())
        .args(["build", "--workspace", "--bins"]))?;
    let target = target()?;
    let pages = target.join("man/man1");
    fs::create_dir_all(&pages).map_err(|error| format!("{}: {error}", pages.display()))?;
    for program in PROGRAMS {
        let path = target.join("debug").join(program);
        write_pages(&path, &[], program, &pages)?;
    }
    let completions = target.join("completions");
    fs::create_dir_all(&completions)
        .map_err(|error| format!("{}: {error}", completions.display()))?;
    for (shell, name) in SHELLS {
        let text = output(&target.join("debug/starchild"), &["completions", shell])?;
        write(&completions.join(name), &text)?;
    }
    println!("{}\n{}", pages.display(), completions.display());
    Ok(())
}

/// One page for a command, and one for each command within it.
fn write_pages(program: &Path, words: &[String], name: &str, pages: &Path) -> Result<(), String> {
    let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
    args.push("--help");
    let help = output(program, &args)?;
    write(&pages.join(format!("{name}.1")), &page(name, &help))?;
    if words.len() >= MAX_DEPTH {
        return Ok(());
    }
    for command in commands(&help) {
        let words: Vec<String> = words.iter().cloned().chain([command.clone()]).collect();
        write_pages(program, &words, &format!("{name}-{command}"), pages)?;
    }
    Ok(())
}

/// The names under `Commands:`.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let names = lines.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// A page in the language of man: the first line as the name, the rest as it stands.
fn page(name: &str, help: &str) -> String {
    let about = help.lines().next().unwrap_or_default();
    let about = about.trim_end_matches('.');
    let mut page = format!(
        ".TH \"{}\" 1\n.SH NAME\n{} \\- {}\n",
        name.to_uppercase(),
        escaped(name),
        escaped(about)
    );
    let mut open = false;
    let mut in_usage = false;
    for line in help.lines().skip(1) {
        let is_heading = line.ends_with(':') && !line.starts_with(' ') && line.len() < 40;
        if is_heading || line.starts_with("Usage: ") {
            let (heading, rest) = line
                .split_once(": ")
                .unwrap_or((line.trim_end_matches(':'), ""));
            if open {
                page.push_str(".fi\n");
            }
            page.push_str(&format!(
                ".SH {}\n.nf\n{}\n",
                heading.to_uppercase(),
                escaped(rest)
            ));
            open = true;
            in_usage = heading == "Usage";
        } else if open || !line.trim().is_empty() {
            if !open {
                page.push_str(".SH DESCRIPTION\n.nf\n");
                open = true;
            }
            // Further forms stand below the first.
            in_usage &= !line.is_empty();
            let line = if in_usage { line.trim_start() } else { line };
            page.push_str(&escaped(line));
            page.push('\n');
        }
    }
    if open {
        page.push_str(".fi\n");
    }
    page
}

/// Text of which nothing is a command of man's.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

fn output(program: &Path, args: &[&str]) -> Result<String, String> {
    let shown = format!("{} {}", program.display(), args.join(" "));
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| format!("{shown}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{shown} ended with {}", output.status)),
    }
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Bring agents into rooms.\n\nUsage: x [OPTIONS] <COMMAND>\n\nCommands:\n  join    Join a room\n            in one go\n  help    Print this\n\nOptions:\n  -h, --help  Print help\n\n.dot first\n";

    #[test]
    fn a_page_has_a_section_for_each_heading() {
        assert_eq!(commands(HELP), ["join"]);
        let page = page("x", HELP);
        for part in [
            ".SH NAME\nx \\- Bring agents into rooms\n",
            ".SH USAGE\n.nf\nx [OPTIONS]",
            ".SH COMMANDS\n",
            "\\-\\-help",
            "\\&.dot",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
