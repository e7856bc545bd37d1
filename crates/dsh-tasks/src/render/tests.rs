use super::*;

#[test]
fn a_line_keeps_its_inner_spaces_and_loses_every_break() {
    assert_eq!(one_line("cargo  test"), "cargo  test");
    assert_eq!(
        one_line("  for i in 1 2; do\n\techo $i\r\ndone \n"),
        "for i in 1 2; do echo $i done"
    );
    assert_eq!(one_line("a\u{2028}b\u{1b}[31mc\u{85}d"), "a b [31mc d");
    assert_eq!(one_line("\n\n"), "");
}

#[test]
fn a_label_is_cut_at_two_hundred_characters() {
    assert_eq!(label_line(&"é".repeat(200)), "é".repeat(200));
    let cut = label_line(&"é".repeat(201));
    assert_eq!((cut.chars().count(), cut.chars().last()), (200, Some('…')));
}

#[test]
fn numbers_are_written_as_json() {
    let written = [0.0, -0.0, -5.0, 1.5, f64::NAN, f64::INFINITY].map(json_number);
    assert_eq!(written, ["0", "0", "-5", "1.5", "null", "null"]);
}

#[test]
fn ages_have_two_units_at_most() {
    let ages = [999, 12_000, 184_000, 7_500_000].map(age);
    assert_eq!(ages, ["0s", "12s", "3m 4s", "2h 5m"]);
}
