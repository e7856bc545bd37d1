//! The place of the table in a document.

use std::path::Path;

use crate::Failure;

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench --write` -->\n";
const END: &str = "<!-- end of figures -->";

/// Puts the table between the markers, in the place of an earlier one.
pub(crate) fn write(path: &Path, table: &str) -> Result<(), Failure> {
    let text = std::fs::read_to_string(path)?;
    let text =
        with(&text, table).ok_or_else(|| format!("{} has no markers for the figures", path.display()))?;
    std::fs::write(path, text)?;
    Ok(())
}

fn with(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = format!("a\n{BEGIN}old\n{END}\nb\n");
        assert_eq!(with(&text, "new\n"), Some(format!("a\n{BEGIN}new\n{END}\nb\n")));
        assert_eq!(with("a\n", "new\n"), None);
    }
}
