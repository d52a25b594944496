//! Applies a unified diff to a text. Models miscount lines, so that the numbers
//! of a hunk only choose among the places where its lines are found. Pure.

/// One hunk: the lines it wants to find, and those it puts in their place.
struct Hunk<'a> {
    /// Where it says its lines are, from 0.
    near: usize,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

/// The text after the patch, or what is wrong with it.
pub(super) fn apply(text: &str, patch: &str) -> Result<String, String> {
    let hunks = parse(patch)?;
    let ends_with_newline = text.is_empty() || text.ends_with('\n');
    let crlf = text.contains("\r\n");
    let mut lines: Vec<&str> = text.lines().collect();
    let mut shift = 0isize;
    let mut from = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let near = hunk.near.saturating_add_signed(shift);
        let at = find(&lines, hunk, near, from).ok_or_else(|| {
            let first = hunk.old.first().copied().unwrap_or_default();
            format!(
                "hunk {} does not fit: its lines, which begin with {first:?}, are not in the file \
                 in this order. Read the file again",
                number + 1
            )
        })?;
        let new = hunk.new.iter().copied();
        lines.splice(at..at + hunk.old.len(), new);
        from = at + hunk.new.len();
        shift += hunk.new.len() as isize - hunk.old.len() as isize;
    }
    let end = if crlf { "\r\n" } else { "\n" };
    let mut patched = lines.join(end);
    if ends_with_newline && !lines.is_empty() {
        patched.push_str(end);
    }
    Ok(patched)
}

/// The place nearest to `near` where the hunk's lines are, from `from` on.
fn find(lines: &[&str], hunk: &Hunk<'_>, near: usize, from: usize) -> Option<usize> {
    if hunk.old.is_empty() {
        return Some(near.clamp(from, lines.len()));
    }
    let last = lines.len().checked_sub(hunk.old.len())?;
    let fits = |at: &usize| lines[*at..*at + hunk.old.len()] == hunk.old[..];
    (from..=last)
        .filter(fits)
        .min_by_key(|at| at.abs_diff(near))
}

fn parse(patch: &str) -> Result<Vec<Hunk<'_>>, String> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(head) = line.strip_prefix("@@") {
            hunks.push(Hunk {
                near: first_line(head),
                old: Vec::new(),
                new: Vec::new(),
            });
            continue;
        }
        let file_head =
            line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ "));
        if file_head {
            lines.next();
            if !hunks.is_empty() {
                return Err("the patch is for several files: send one for each".into());
            }
            continue;
        }
        let Some(hunk) = hunks.last_mut() else {
            // Heads of other kinds, such as `diff --git`.
            continue;
        };
        match line.split_at_checked(1) {
            Some((" ", rest)) => {
                hunk.old.push(rest);
                hunk.new.push(rest);
            }
            Some(("-", rest)) => hunk.old.push(rest),
            Some(("+", rest)) => hunk.new.push(rest),
            Some(("\\", _)) => {}
            // An empty line of context that lost its blank.
            None => {
                hunk.old.push("");
                hunk.new.push("");
            }
            Some(_) => {
                return Err(format!(
                    "a line of a hunk begins with neither blank, + nor -: {line:?}"
                ));
            }
        }
    }
    if hunks.is_empty() {
        return Err("there is no hunk in the patch: want lines after `@@ -1,3 +1,4 @@`".into());
    }
    for hunk in &mut hunks {
        // A patch that was cut at its end by an empty line.
        if hunk.old.last() == Some(&"") && hunk.new.last() == Some(&"") && hunk.old.len() > 1 {
            let blank = patch.ends_with("\n\n") || patch.ends_with("\n \n");
            if blank {
                hunk.old.pop();
                hunk.new.pop();
            }
        }
    }
    Ok(hunks)
}

/// The first line of ` -12,3 +12,4 @@`, from 0.
fn first_line(head: &str) -> usize {
    let digits = head.trim_start().trim_start_matches('-');
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let number = digits[..end.unwrap_or(digits.len())].parse::<usize>();
    number.unwrap_or(1).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "one\ntwo\nthree\nfour\nfive\n";

    #[test]
    fn hunks_are_applied_in_order() {
        let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n@@ -4,2 +4,3 @@\n four\n+four and a half\n five\n";
        assert_eq!(
            apply(TEXT, patch).unwrap(),
            "1\ntwo\nthree\nfour\nfour and a half\nfive\n"
        );
    }

    #[test]
    fn wrong_counts_and_numbers_do_not_matter() {
        let patch = "@@ -90,7 +1 @@\n three\n-four\n+4\n";
        assert_eq!(apply(TEXT, patch).unwrap(), "one\ntwo\nthree\n4\nfive\n");
    }

    #[test]
    fn the_number_chooses_among_equal_places() {
        let text = "a\nx\na\nx\na\nx\n";
        let patch = "@@ -3,1 +3,1 @@\n-a\n+b\n";
        assert_eq!(apply(text, patch).unwrap(), "a\nx\nb\nx\na\nx\n");
    }

    #[test]
    fn a_new_text_and_other_line_ends_work() {
        assert_eq!(apply("", "@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap(), "a\nb\n");
        assert_eq!(
            apply("a\r\nb\r\n", "@@ -1 +1 @@\n-a\n+c\n").unwrap(),
            "c\r\nb\r\n"
        );
        assert_eq!(apply("a\nb", "@@ -2 +2 @@\n-b\n+c\n").unwrap(), "a\nc");
    }

    #[test]
    fn what_does_not_fit_is_told() {
        for (patch, word) in [
            ("", "no hunk"),
            ("just words", "no hunk"),
            ("@@ -1 +1 @@\n-nine\n+9\n", "hunk 1"),
            ("@@ -1 +1 @@\n?one\n", "neither"),
            (
                "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+1\n--- b\n+++ b\n@@ -1 +1 @@\n-x\n+y\n",
                "several files",
            ),
        ] {
            let error = apply(TEXT, patch).unwrap_err();
            assert!(error.contains(word), "{patch}: {error}");
        }
    }
}
