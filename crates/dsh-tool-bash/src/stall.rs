//! Telling the owner of a task that it has printed nothing for a while.
//!
//! **Invariants**
//!
//! 1. One silence is told once: after a notice the watch waits for output, and only then for the next silence.
//! 2. Nothing is told once the end was asked for, and what was queued and not read by then is taken back. The request
//!    (a kill) sets `asked`, then retracts; the watch looks at `asked`, then injects. If it looks too early, its notice
//!    either is there to be retracted, or comes later and meets the tombstone.
//! 3. A silence that ends unread is no news: output takes its notice back.
//! 4. Nothing is left in the inbox when the work is over: the watch ends within the work's own future, before the
//!    registry can hear of the end.
//!
//! Nobody is woken while output flows but by the clock, [`LOOKS`] times in the configured time; nobody at all after a
//! notice, until there is output again.

use std::convert::Infallible;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use dsh_agent::{Agent, Notice, NoticeKey};
use dsh_llm::ContentBlock;
use dsh_output::{OutputLog, OutputSource, Rendering};
use dsh_session::{Message, MessageSource};
use dsh_tasks::{TaskId, TaskRegistry};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Who says it, and what sort of message it is.
const PLUGIN: &str = "tool-bash";
const FORM: &str = "stall";
/// How often the output is looked at within the configured time.
const LOOKS: u32 = 8;
/// The most bytes of the last line.
const LAST_LINE_BYTES: usize = 200;

/// Tells one owner of the silences of one task.
pub(crate) struct Stall {
    after: NonZeroU64,
    tasks: TaskRegistry,
    owner: Weak<Agent>,
    key: NoticeKey,
    /// Known once the registry has accepted the work.
    id: OnceLock<TaskId>,
    asked: CancellationToken,
}

/// Ends a watch, however its future ends.
struct Over<'a>(&'a Stall);

impl Stall {
    pub(crate) fn new(after: NonZeroU64, tasks: &TaskRegistry, owner: &Arc<Agent>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            after,
            tasks: tasks.clone(),
            owner: Arc::downgrade(owner),
            key: NoticeKey::new(format!("{PLUGIN} {FORM}: {number}")),
            id: OnceLock::new(),
            asked: CancellationToken::new(),
        })
    }

    /// The work has become this task.
    pub(crate) fn is_of(&self, id: &TaskId) {
        // Set once, by whoever started it.
        let _ = self.id.set(id.clone());
    }

    /// The end was asked for: what is silent now is on its way out.
    pub(crate) fn hush(&self) {
        self.asked.cancel();
        self.retract();
    }

    /// Tells every silence in `log` until `work` is over. After `deadline` the work is being ended.
    pub(crate) async fn watch<T>(
        &self,
        log: &OutputLog,
        deadline: Option<Duration>,
        work: impl Future<Output = T>,
    ) -> T {
        let _over = Over(self);
        tokio::select! {
            biased;
            output = work => output,
            never = self.until_hushed(log, deadline) => match never {},
        }
    }

    async fn until_hushed(&self, log: &OutputLog, deadline: Option<Duration>) -> Infallible {
        let time_is_up = async {
            match deadline {
                Some(after) => sleep(after).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.asked.cancelled() => {}
            () = time_is_up => self.hush(),
            () = self.tell_silences(log) => {}
        }
        std::future::pending().await
    }

    /// Returns when nothing can be printed any more: that silence is no news.
    async fn tell_silences(&self, log: &OutputLog) {
        let after = Duration::from_millis(self.after.get());
        while !log.is_closed() {
            let more = silence(log, after).await;
            if log.is_closed() {
                return;
            }
            if self.tell(log) {
                more.await;
                self.take_back();
            }
        }
    }

    /// Queues the notice. Not while nobody could act on it: the task is not registered yet, or is nobody's to control.
    fn tell(&self, log: &OutputLog) -> bool {
        let (Some(owner), Some(id)) = (self.owner.upgrade(), self.id.get()) else {
            return false;
        };
        let Ok(snapshot) = self.tasks.get(id, Some(&owner)) else {
            return false;
        };
        if snapshot.status.is_terminal() || !self.tasks.serves(Some(&owner)) || self.asked.is_cancelled() {
            return false;
        }
        let words = self.tasks.vocabulary();
        let last_line = log.reader(Rendering::Interleaved).tail(1, LAST_LINE_BYTES);
        let message = Message {
            content: vec![ContentBlock::text(words.silence(
                &snapshot,
                self.after.get(),
                &last_line,
            ))],
            source: MessageSource::Plugin {
                plugin: PLUGIN.to_owned(),
                form: FORM.to_owned(),
                summary: words.silence_summary(&snapshot, self.after.get()),
                subjects: vec![id.to_string()],
            },
        };
        owner.inbox().inject(Notice {
            key: self.key.clone(),
            message,
        });
        true
    }

    /// Takes back a notice that was not read, and keeps out one that is just coming.
    fn retract(&self) {
        if let Some(owner) = self.owner.upgrade() {
            owner.inbox().hold(&self.key).retract();
        }
    }

    /// Takes back a notice that was not read; the next one is welcome.
    fn take_back(&self) {
        self.retract();
        if let Some(owner) = self.owner.upgrade() {
            owner.inbox().forget(&self.key);
        }
    }
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.asked.cancel();
        self.0.take_back();
    }
}

/// Resolves when nothing was printed for `after`, with a future of the next output.
async fn silence(log: &OutputLog, after: Duration) -> impl Future<Output = ()> + use<> {
    let (mut printed, mut since) = (log.len(), Instant::now());
    loop {
        sleep(after / LOOKS).await;
        // Made before the look, so that no output falls between the two.
        let more = log.changed();
        let now = log.len();
        if now != printed {
            (printed, since) = (now, Instant::now());
        } else if since.elapsed() >= after {
            return more;
        }
    }
}
