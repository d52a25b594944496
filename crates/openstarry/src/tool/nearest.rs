//! Names like a name that does not exist.

/// The most letters compared; longer names differ soon enough.
const MAX_COMPARED: usize = 64;

/// Up to `count` of `names`, the most alike first. Names that have nothing in
/// common with `wanted` are left out.
pub fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let wanted = fold(wanted);
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| Some((score(&wanted, &fold(name))?, name)))
        .collect();
    scored.sort_unstable();
    scored.truncate(count);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// Lower case, and every separator the same: `fs_read` is `fs.read`.
fn fold(name: &str) -> Vec<char> {
    name.chars()
        .take(MAX_COMPARED)
        .map(|c| match c.is_alphanumeric() {
            true => c.to_ascii_lowercase(),
            false => '.',
        })
        .collect()
}

fn score(wanted: &[char], name: &[char]) -> Option<usize> {
    let distance = distance(wanted, name);
    let part = |whole: &[char], part: &[char]| {
        part.len() > 2 && whole.windows(part.len()).any(|window| window == part)
    };
    if part(name, wanted) || part(wanted, name) {
        return Some(distance / 4);
    }
    let last = |name: &[char]| name.rsplit(|c| *c == '.').next().map(<[char]>::to_vec);
    if last(wanted) == last(name) {
        return Some(distance / 2);
    }
    (distance * 2 <= wanted.len().max(name.len())).then_some(distance)
}

/// Levenshtein's distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_alike_come_first_and_strangers_not_at_all() {
        let names = ["fs.read", "fs.write", "time.now", "shell.run"];
        assert_eq!(nearest("fs_raed", names, 3)[0], "fs.read");
        assert_eq!(nearest("read", names, 3), ["fs.read"]);
        assert_eq!(nearest("read_file.read", names, 1), ["fs.read"]);
        assert!(nearest("quux", names, 3).is_empty());
        assert!(nearest("", names, 3).is_empty());
    }
}
