//! What the rules look at: packages, Rust sources, documents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::code::{Keep, blank, identifiers};
use crate::error::Error;
use crate::workspace::{Package, Workspace};

/// Everything that is checked.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) packages: Vec<Package>,
    pub(super) sources: Vec<Source>,
    /// Every other text file.
    pub(super) documents: Vec<Document>,
    /// Every path of the tree, directories too, with `/` between parts.
    pub(super) paths: BTreeSet<String>,
}

/// One Rust file.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    /// `text` without comments and literals.
    pub(super) code: String,
}

/// One other text file.
pub(super) struct Document {
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        Source {
            path: path.into(),
            code: blank(&text, Keep::Code),
            text,
        }
    }

    /// The whole file is test code: an integration test, or a `tests` module.
    pub(super) fn is_test(&self) -> bool {
        let path = &self.path;
        path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
    }

    /// Positions from which on the file is test code; the end of the file when none is.
    pub(super) fn tests_begin(&self) -> usize {
        if self.is_test() {
            0
        } else {
            self.code.find("#[cfg(test)]").unwrap_or(self.code.len())
        }
    }

    /// The names of functions that a test attribute, or a `proptest!` block, makes a test.
    pub(super) fn test_functions(&self) -> BTreeSet<&str> {
        let words: Vec<(usize, &str)> = identifiers(&self.code).collect();
        let mut names = BTreeSet::new();
        let mut marked = false;
        for pair in words.windows(2) {
            let ((at, word), (_, next)) = (pair[0], pair[1]);
            match word {
                "test" if self.is_attribute(at) => marked = true,
                "fn" if marked => {
                    names.insert(next);
                    marked = false;
                }
                _ => {}
            }
        }
        names
    }

    /// `#[test]`, `#[tokio::test(…)]`; not `#[cfg(test)]`.
    fn is_attribute(&self, at: usize) -> bool {
        self.code[..at].ends_with("#[") || self.code[..at].ends_with("::")
    }
}

impl Tree {
    /// Reads all text files below the root that belong to the project.
    pub(super) fn read(workspace: &Workspace) -> Result<Tree, Error> {
        let mut tree = Tree {
            packages: workspace.packages()?,
            ..Tree::default()
        };
        let mut directories = vec![workspace.root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(&directory).map_err(Error::file(&directory))? {
                let path = entry.map_err(Error::file(&directory))?.path();
                if path.is_dir() {
                    if is_ours(&path) {
                        tree.paths.insert(relative(workspace, &path));
                        directories.push(path);
                    }
                } else {
                    tree.add(workspace, &path)?;
                }
            }
        }
        tree.sources.sort_by(|left, right| left.path.cmp(&right.path));
        tree.documents.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(tree)
    }

    fn add(&mut self, workspace: &Workspace, path: &PathBuf) -> Result<(), Error> {
        let name = relative(workspace, path);
        self.paths.insert(name.clone());
        let bytes = std::fs::read(path).map_err(Error::file(path))?;
        // What is not text has nothing that a rule could read.
        let Ok(text) = String::from_utf8(bytes) else {
            return Ok(());
        };
        if name.ends_with(".rs") {
            self.sources.push(Source::new(name, text));
        } else {
            self.documents.push(Document { path: name, text });
        }
        Ok(())
    }
}

fn relative(workspace: &Workspace, path: &Path) -> String {
    path.strip_prefix(&workspace.root)
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/")
}

/// Build output says so by its name or its tag, what fuzzing found by its name; of hidden directories only ours count.
fn is_ours(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let hidden = name.starts_with('.') && ![".cargo", ".ci", ".config"].contains(&&*name);
    let made = ["target", "artifacts", "coverage"].contains(&&*name);
    !hidden && !made && !directory.join("CACHEDIR.TAG").exists() && !directory.join("pyvenv.cfg").exists()
}
