use super::*;

fn stretches(cursor: &Cursor) -> Vec<(u64, Option<u64>)> {
    cursor.unread().iter().map(|s| (s.start, s.end)).collect()
}

#[test]
fn an_abandoned_range_comes_first_and_merges_with_its_neighbours() {
    let mut cursor = Cursor::default();
    for range in [0..10, 10..20, 20..30] {
        cursor.lease(&range);
    }
    cursor.abandon(0..10);
    assert_eq!(stretches(&cursor), [(0, Some(10)), (30, None)]);
    cursor.abandon(10..20);
    assert_eq!(stretches(&cursor), [(0, Some(20)), (30, None)]);
    cursor.abandon(20..30);
    assert_eq!(
        stretches(&cursor),
        [(0, None)],
        "what touches the frontier is unbounded again"
    );
}

#[test]
fn leasing_inside_a_gap_leaves_both_ends() {
    let mut cursor = Cursor::default();
    cursor.lease(&(0..30));
    cursor.lease(&(30..40));
    cursor.abandon(0..30);
    cursor.lease(&(10..20));
    assert_eq!(stretches(&cursor), [(0, Some(10)), (20, Some(30)), (40, None)]);
}

#[test]
fn an_empty_range_is_nothing() {
    let mut cursor = Cursor::default();
    cursor.lease(&(5..5));
    cursor.abandon(3..3);
    assert_eq!(cursor, Cursor::default());
}

#[test]
fn what_is_abandoned_while_something_behind_it_is_read_stays_unread() {
    let mut cursor = Cursor::default();
    cursor.lease(&(0..10));
    // Somebody looks up 10 as the place to go on from; then the first range comes back.
    cursor.abandon(0..10);
    cursor.lease(&(10..20));
    assert_eq!(stretches(&cursor), [(0, Some(10)), (20, None)]);
}
