use super::script::Author;
use super::{acp, run};
use crate::chaos::dice::Dice;

/// A life that is made up from a seed, in words.
fn made_up(seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let mut author = Author::new('a');
    let run = run::plan(&mut author, &mut dice);
    let acp = acp::plan(&mut author, &mut dice, 3);
    format!("{run:?}{acp:?}")
}

#[test]
fn the_same_seed_makes_up_the_same_life() {
    assert_eq!(made_up(7), made_up(7));
    assert_ne!(made_up(7), made_up(8));
}
