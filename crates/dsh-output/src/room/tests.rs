use super::*;

#[test]
fn no_more_is_taken_than_there_is() {
    let room = Room::new(10);
    assert_eq!([7, 7, 7].map(|wanted| room.reserve(wanted)), [7, 3, 0]);
    room.release(4);
    assert_eq!([3, 3].map(|wanted| room.reserve(wanted)), [3, 1]);
}

#[test]
fn takers_at_the_same_time_never_take_more_together() {
    let room = Room::new(1_000);
    let held = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for wanted in 1..=8 {
            let (room, held) = (&room, &held);
            scope.spawn(move || {
                for _ in 0..20_000 {
                    let taken = room.reserve(wanted * 50);
                    // Counted after it was taken and before it is given back, so this never counts too much.
                    assert!(held.fetch_add(taken, Ordering::SeqCst) + taken <= 1_000);
                    held.fetch_sub(taken, Ordering::SeqCst);
                    room.release(taken);
                }
            });
        }
    });
    assert_eq!(room.reserve(u64::MAX), 1_000);
}
