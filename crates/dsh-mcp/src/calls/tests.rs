use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_tools::Delivery;

use super::*;

/// Counts how often a delivery was delivered and abandoned.
#[derive(Clone, Default)]
struct Counter {
    delivered: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Counter {
    fn deliveries(&self) -> Deliveries {
        let (delivered, owned) = (self.delivered.clone(), OnDrop(self.dropped.clone()));
        let delivery = Delivery::new(move || {
            delivered.fetch_add(1, Ordering::SeqCst);
            drop(owned);
        });
        vec![delivery].into()
    }

    /// Delivered, and gone in all.
    fn seen(&self) -> (usize, usize) {
        (
            self.delivered.load(Ordering::SeqCst),
            self.dropped.load(Ordering::SeqCst),
        )
    }
}

fn client(id: i64) -> RequestId {
    RequestId::Number(id)
}

#[test]
fn a_finished_answer_hands_its_deliveries_out_once() {
    let (calls, counter) = (Calls::new(), Counter::default());
    let id = calls.open(&client(1), Kind::ToolCall).unwrap();
    calls.park(id, counter.deliveries());
    assert_eq!(counter.seen(), (0, 0));
    calls.finish(id).unwrap().deliver_all();
    assert_eq!(counter.seen(), (1, 1));
    assert!(calls.finish(id).is_none());
}

#[test]
fn giving_up_abandons_what_is_parked_and_what_comes_later() {
    let (calls, counter) = (Calls::new(), Counter::default());
    let id = calls.open(&client(1), Kind::ToolCall).unwrap();
    let token = calls.token(id);
    calls.park(id, counter.deliveries());
    calls.give_up(&client(1));
    assert!(token.is_cancelled());
    assert_eq!(counter.seen(), (0, 1));
    calls.park(id, counter.deliveries());
    assert_eq!(counter.seen(), (0, 2));
    assert!(calls.begin_answer(id).is_none() && calls.finish(id).is_none());
    assert!(
        calls.token(id).is_cancelled(),
        "a handler that starts late must see it, too"
    );
}

#[test]
fn a_clients_id_is_free_again_after_the_answer_and_after_giving_up_and_ours_never_is() {
    let calls = Calls::new();
    let first = calls.open(&client(1), Kind::Other).unwrap();
    assert_eq!(
        calls.open(&client(1), Kind::Other),
        Err(OpenError::InUse(client(1)))
    );
    calls.give_up(&client(1));
    let second = calls.open(&client(1), Kind::Other).unwrap();
    calls.finish(second);
    let third = calls.open(&client(1), Kind::Other).unwrap();
    assert!(first < second && second < third);
    assert!(
        calls.begin_answer(first).is_none(),
        "the first answer must not be taken for the third"
    );
}

#[test]
fn after_the_end_answers_go_out_but_nothing_is_delivered() {
    let (calls, counter) = (Calls::new(), Counter::default());
    let (early, late) = (
        calls.open(&client(1), Kind::ToolCall).unwrap(),
        calls.open(&client(2), Kind::ToolCall).unwrap(),
    );
    calls.park(early, counter.deliveries());
    calls.end(Served::InputEnded);
    calls.end(Served::OutputFailed);
    assert_eq!(calls.cause(), Some(Served::InputEnded), "the first cause stays");
    assert_eq!(counter.seen(), (0, 1));
    calls.park(late, counter.deliveries());
    assert_eq!(counter.seen(), (0, 2));
    assert!(calls.token(early).is_cancelled() && calls.token(late).is_cancelled());
    let addressee = calls.begin_answer(late).unwrap();
    assert_eq!(
        (addressee.client, addressee.kind),
        (client(2), Kind::Other),
        "no notices any more"
    );
    assert!(calls.finish(late).is_none());
}

/// The client reads the answer before the writer comes back from writing it, and uses the id at once.
#[test]
fn a_clients_id_is_free_as_soon_as_its_answer_is_on_its_way() {
    let (calls, counter) = (Calls::new(), Counter::default());
    let first = calls.open(&client(1), Kind::ToolCall).unwrap();
    calls.park(first, counter.deliveries());
    calls.begin_answer(first).unwrap();
    let second = calls.open(&client(1), Kind::ToolCall).unwrap();
    calls.give_up(&client(1));
    assert!(
        calls.client_of(second).is_none(),
        "a cancellation means the one that waits"
    );
    let third = calls.open(&client(1), Kind::ToolCall).unwrap();
    calls.finish(first).unwrap().deliver_all();
    assert_eq!(counter.seen(), (1, 1));
    assert!(
        calls.open(&client(1), Kind::ToolCall).is_err(),
        "the third is still in flight"
    );
    assert!(calls.finish(third).is_some());
}

#[test]
fn the_limit_counts_what_was_not_written_yet() {
    let calls = Calls::new();
    let limit = i64::try_from(MAX_IN_FLIGHT).unwrap();
    let first = (1..=limit)
        .map(|id| calls.open(&client(id), Kind::Other).unwrap())
        .next()
        .unwrap();
    for id in 2..=limit {
        calls.give_up(&client(id));
        calls.open(&client(id), Kind::Other).unwrap();
    }
    calls.begin_answer(first).unwrap();
    assert_eq!(calls.open(&client(0), Kind::Other), Err(OpenError::TooMany));
    calls.finish(first);
    assert!(calls.open(&client(0), Kind::Other).is_ok());
}
