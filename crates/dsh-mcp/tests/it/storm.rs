//! Many tasks that end at once, and a client that changes its mind.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::client::{Client, core, texts};
use dsh_agent_core::Config;
use serde_json::{Value, json};

const ROUNDS: usize = 12;
const TASKS: usize = 8;

/// One telling of an end, in the order of the answers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Telling {
    order: u64,
    by: By,
    to: To,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Wait,
    Notice,
}

/// An answer that was cancelled too late to stop it may or may not have been read: what it tells may be told again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Listening,
    Cancelled,
}

#[derive(Default)]
struct Book(HashMap<String, Vec<Telling>>);

impl Book {
    /// Notes the ends that an answer tells: of the task it was about, and of those in its notices.
    fn note(&mut self, answer: &Value, about: Option<&str>, to: To) {
        let order = answer["order"].as_u64().expect("an order");
        let texts = texts(answer);
        if let Some(task) = about.filter(|_| texts[0].ends_with("[status: completed, exit code: 0]")) {
            self.0.entry(task.to_owned()).or_default().push(Telling {
                order,
                by: By::Wait,
                to,
            });
        }
        for line in texts.get(1).into_iter().flat_map(|text| text.lines()) {
            if let Some(task) = line
                .strip_prefix("background task ")
                .and_then(|rest| rest.split(' ').next())
            {
                self.0.entry(task.to_owned()).or_default().push(Telling {
                    order,
                    by: By::Notice,
                    to,
                });
            }
        }
    }

    /// An end is told; its notice at most once, and never after the model was told by its own wait. That a wait tells
    /// what a notice told before is not twice: the model asked.
    fn check(&self, task: &str) {
        let mut tellings = self.0.get(task).cloned().unwrap_or_default();
        tellings.sort_unstable();
        assert!(!tellings.is_empty(), "the end of {task} is lost");
        let heard: Vec<_> = tellings
            .iter()
            .filter(|telling| telling.to == To::Listening)
            .collect();
        assert!(
            heard.iter().skip(1).all(|telling| telling.by == By::Wait),
            "the end of {task} was told, and then its notice came: {tellings:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_end_is_lost_or_told_twice_however_waits_are_cancelled() {
    let mut config = Config::default();
    // On a busy machine, tasks of many rounds are still ending.
    config.tasks.max_concurrent_tasks_per_owner = 1_000;
    let mut client = Client::connected(core(config)).await;
    let mut book = Book::default();
    let mut tasks = Vec::new();
    for round in 0..ROUNDS {
        let mut waits = Vec::new();
        for nth in 0..TASKS {
            let (task, wait, to) = start_and_wait(&mut client, &mut book, round * TASKS + nth).await;
            waits.push((task.clone(), wait, to));
            tasks.push(task);
        }
        for (task, wait, to) in waits {
            if to == To::Cancelled {
                client.settle().await;
            }
            if to == To::Listening || client.has_answer(wait) {
                book.note(&client.answer(wait).await, Some(&task), to);
            }
        }
    }
    // The last ends and their notices are on their way; a lost one never arrives.
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut last_look = false;
    while !last_look {
        last_look = tasks.iter().all(|task| book.0.contains_key(task)) || Instant::now() > deadline;
        let id = client.start_call("task_list", json!({})).await;
        book.note(&client.answer(id).await, None, To::Listening);
    }
    assert_eq!(tasks.len(), ROUNDS * TASKS);
    for task in &tasks {
        book.check(task);
    }
}

/// Starts a task that ends at once and waits for it; two of three waits are cancelled, at another point of their life
/// each time.
async fn start_and_wait(client: &mut Client, book: &mut Book, nth: usize) -> (String, i64, To) {
    let args = json!({"command": "true", "description": "end", "run_in_background": true});
    let id = client.start_call("bash", args).await;
    let answer = client.answer(id).await;
    let task = texts(&answer)[0].rsplit(' ').next().expect("an id").to_owned();
    assert!(task.starts_with("bash-"), "{answer}");
    book.note(&answer, None, To::Listening);
    let wait = client
        .start_call("task_output", json!({"task_id": task, "wait": true}))
        .await;
    if nth.is_multiple_of(3) {
        return (task, wait, To::Listening);
    }
    for _ in 0..nth * 7 % 40 {
        tokio::task::yield_now().await;
    }
    client.cancel(wait).await;
    (task, wait, To::Cancelled)
}
