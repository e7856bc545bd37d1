//! Producers that play: slow ones, ones that break their contract, ones that panic wherever they are called.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use dsh_output::{OutputConfig, OutputLog, OutputRead, OutputSource, Rendering, Stream};
use dsh_tasks::{BoxError, Cause, Outcome, StartSpec, Work};
use tokio::sync::watch;

use super::dice::Dice;
use super::lines::{LINE, line};

/// What every panic of a player says, so that nobody prints it.
pub(super) const PANIC: &str = "played";

/// What a producer will do.
#[derive(Debug, Clone)]
pub(super) struct Part {
    run: Run,
    /// How many lines it writes, in so many pieces.
    lines: u64,
    pieces: u64,
    pause: Duration,
    end: End,
    cancel: Cancel,
    output: Output,
    memory: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Works,
    Takes,
    Refuses,
    Panics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Completes,
    Fails,
    Panics,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancel {
    /// It ends, before the hook returns or a pause later.
    Ends,
    Ignores,
    Refuses,
    Panics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Streams,
    Panics,
    Final,
}

/// What has been written, and by whom.
#[derive(Debug, Clone)]
pub(super) struct Played {
    written: Arc<AtomicU64>,
    part: Part,
}

impl Part {
    pub(super) fn any(dice: &mut Dice) -> Part {
        use {Cancel as C, End as E, Output as O, Run as R};
        Part {
            run: *dice.pick(&[
                R::Works,
                R::Works,
                R::Works,
                R::Works,
                R::Takes,
                R::Refuses,
                R::Panics,
            ]),
            lines: *dice.pick(&[0, 1, 7, 40, 900]),
            pieces: 1 + dice.below(5) as u64,
            pause: dice.millis(60),
            end: *dice.pick(&[
                E::Completes,
                E::Completes,
                E::Completes,
                E::Fails,
                E::Panics,
                E::Never,
            ]),
            cancel: *dice.pick(&[
                C::Ends,
                C::Ends,
                C::Ends,
                C::Ends,
                C::Ignores,
                C::Refuses,
                C::Panics,
            ]),
            output: *dice.pick(&[
                O::Streams,
                O::Streams,
                O::Streams,
                O::Streams,
                O::Panics,
                O::Final,
            ]),
            memory: 2 * LINE as usize * (1 + dice.below(200)),
        }
    }

    /// Whether a start of it fails by its own doing.
    pub(super) fn refuses(&self) -> bool {
        matches!(self.run, Run::Refuses | Run::Panics)
    }

    /// Whether a request to end it has an effect.
    pub(super) fn can_be_ended(&self) -> bool {
        self.cancel == Cancel::Ends
    }

    /// Whether it comes to an end by itself.
    pub(super) fn ends(&self) -> bool {
        self.end != End::Never
    }
}

impl Played {
    /// A start of a player, under a token. As long as anything of it is kept, `kept` has another owner.
    pub(super) fn spec(part: Part, token: &str, kept: &Arc<()>) -> (StartSpec, Played) {
        let played = Played {
            written: Arc::default(),
            part,
        };
        let (player, kept, name) = (played.clone(), Arc::clone(kept), token.to_owned());
        let spec = StartSpec::new("played", format!(": {token}; plays"), move || {
            match player.part.run {
                Run::Works => {}
                Run::Takes => nap(Duration::from_millis(2)),
                Run::Refuses => return Err("refused".into()),
                Run::Panics => panic!("{PANIC}: run"),
            }
            Ok(player.work(name, kept))
        });
        (spec, played)
    }

    /// How many bytes it has written.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Whether its output can be read.
    pub(super) fn streams(&self) -> bool {
        self.part.output == Output::Streams
    }

    fn work(self, token: String, kept: Arc<()>) -> Work {
        let log = OutputLog::new(OutputConfig {
            memory_bytes: self.part.memory,
            spill: None,
        });
        let asked = watch::Sender::new(false);
        let (part, heard) = (self.part.clone(), asked.subscribe());
        let (writes, both) = (log.clone(), (Arc::clone(&kept), kept));
        let done = async move {
            let _kept = both.0;
            let outcome = self.play(&token, &writes, heard).await;
            writes.close();
            outcome
        };
        let kept = both.1;
        let work = Work::new(done, move |_| {
            let _kept = &kept;
            match part.cancel {
                Cancel::Ends => {
                    asked.send_replace(true);
                    Ok(())
                }
                Cancel::Ignores => Ok(()),
                Cancel::Refuses => Err(BoxError::from("cancel refused")),
                Cancel::Panics => panic!("{PANIC}: cancel"),
            }
        });
        match part.output {
            Output::Streams => work.output(Arc::new(log.reader(Rendering::Sections))),
            Output::Panics => work.output(Arc::new(Broken)),
            Output::Final => work,
        }
    }

    async fn play(&self, token: &str, log: &OutputLog, mut asked: watch::Receiver<bool>) -> Outcome {
        let Part {
            lines, pieces, pause, ..
        } = self.part;
        for piece in 0..pieces {
            let piece = lines * piece / pieces..lines * (piece + 1) / pieces;
            for number in piece {
                log.append(Stream::Stdout, line(token, number).as_bytes());
                self.written.fetch_add(LINE, Ordering::Release);
            }
            // sleep: how long a player takes is its part.
            let time = tokio::time::sleep(pause);
            tokio::select! {
                () = time => {}
                _ = asked.wait_for(|asked| *asked) => return Outcome::killed().detail("as asked"),
            }
        }
        match self.part.end {
            End::Completes => Outcome::completed().output("[played to the end]\n"),
            End::Fails => Outcome::failed().detail("played badly"),
            End::Panics => panic!("{PANIC}: done"),
            End::Never => {
                // The hook is dropped with the record, and with it the sender.
                let asked = asked.wait_for(|asked| *asked).await.is_ok();
                if !asked {
                    std::future::pending::<()>().await;
                }
                Outcome::killed().cause(Cause::Deadline(1))
            }
        }
    }
}

/// Takes the time of the thread it is called in.
fn nap(time: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(time);
}

/// An output that panics whenever it is read.
struct Broken;

impl OutputSource for Broken {
    fn len(&self) -> u64 {
        1
    }

    fn read_range(&self, _from: u64, _to: u64, _max: usize) -> OutputRead {
        panic!("{PANIC}: read")
    }

    fn tail(&self, _max_lines: usize, _max_bytes: usize) -> String {
        panic!("{PANIC}: tail")
    }
}
