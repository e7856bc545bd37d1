//! What is kept of the inputs holds: those that a fuzzer found, and those that were made.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use checks::CHECKS;

/// Files and bytes that the repository has room for.
const MAX_FILES: usize = 30;
const MAX_BYTES: usize = 200 * 1024;

#[test]
fn every_file_of_the_corpora_holds() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let found = fs::read_dir(&corpora)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let found: BTreeSet<_> = found.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(found, CHECKS.iter().map(|(name, _)| (*name).to_owned()).collect());
    let mut bytes = 0;
    for (name, check) in CHECKS {
        let mut files: Vec<_> = fs::read_dir(corpora.join(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(
            !files.is_empty() && files.len() <= MAX_FILES,
            "{name} has {} files",
            files.len()
        );
        for file in files {
            // Captured unless the test fails: the last one is the one that does not hold.
            println!("{}", file.display());
            let input = fs::read(file).unwrap();
            bytes += input.len();
            check(&input);
        }
    }
    assert!(bytes <= MAX_BYTES, "{bytes} bytes");
}
