//! What the harness, its supervisor and the guards say to each other.
//!
//! All of it goes over `SOCK_SEQPACKET` pairs: messages keep their borders, and the end of either side is seen
//! as an end of file. Both sides are one program of one version, so there is nothing to negotiate.
//!
//! | from → to | message |
//! |---|---|
//! | harness → supervisor | one byte: make a guard ready; with a descriptor: the name of that directory, the home of cgroups |
//! | supervisor → harness | [`Offer`] |
//! | harness → guard | [`Order`] |
//! | guard → harness | [`Report`] |
//! | supervisor → harness, over the socket of a guard that is gone | [`Report::Unread`], or [`Report::LostEmpty`], [`Report::LostSurvivors`] |

mod codec;
mod socket;

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;

use self::codec::{Reader, Writer};
pub(crate) use self::socket::{Received, await_something, pair, receive, send};
use crate::cgroup::Hits;
use crate::facts::Member;

/// A longer order goes in a file of its own.
pub(crate) const MESSAGE_LIMIT: usize = 64 * 1024;

/// What the supervisor answers when it is asked for a guard.
pub(crate) enum Offer {
    /// A guard waits. With two descriptors: its socket, and its process.
    Ready { guard: u32 },
    /// The system gave none.
    Refused { errno: i32 },
}

/// What a guard is told.
pub(crate) enum Order {
    /// Start this. With the descriptors 0, 1, 2 and the working directory; then, if told so, the script; then, if there
    /// is one, the cgroup.
    Run(Run),
    /// As `Run`, but the message is the content of the last descriptor.
    RunFromFile,
    /// End the tree: TERM now, KILL after the grace, if at any time.
    Kill { grace: Option<Duration> },
    /// To a guard that waits: there will be no other order. The end of the socket without that is the end of the harness.
    Go,
}

/// What a guard starts.
pub(crate) struct Run {
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    /// How long after the first KILL survivors are named.
    pub(crate) kill_bound: Duration,
    pub(crate) script: Script,
    pub(crate) limited: Limited,
}

/// Whether the cgroup that comes with the order limits the command, which must not run elsewhere then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    No,
    Yes,
}

/// Whether the program is a bash that finds its command in a file that comes with the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    None,
    Attached,
}

/// What is told of a tree.
pub(crate) enum Report {
    Started {
        leader: u32,
    },
    NotStarted {
        stage: Stage,
        errno: i32,
    },
    /// The leader has exited, and somebody is left.
    Exit {
        status: i32,
    },
    /// Nobody is left. With how the leader exited, if that was not told before.
    Empty {
        status: Option<i32>,
        guard: After,
    },
    Survivors(Vec<Member>),
    LostEmpty,
    LostSurvivors(Vec<Member>),
    /// A guard is gone that had not read its order: nothing was started.
    Unread,
    /// The kernel does not start a process in the cgroup; it is started elsewhere. Said before it is.
    OutOfCgroup,
    /// What the cgroup counted. Said before the tree is said to be empty.
    Reached(Hits),
}

/// What a guard does when its tree is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It waits for the next order.
    Waits,
    Goes,
}

/// Where a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The order made no sense.
    Order,
    /// The file with the command cannot be opened by its name.
    Script,
    /// The program cannot be started.
    Spawn,
    /// No process can be started in the cgroup.
    Cgroup,
    /// Somebody has sent a signal to the guard while it was at rest.
    Signalled,
    /// Somebody has changed what the guard was born with.
    Changed,
}

impl Offer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Offer::Ready { guard } => Writer::tagged(0).number(*guard).done(),
            Offer::Refused { errno } => Writer::tagged(1).number(errno.cast_unsigned()).done(),
        }
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Offer> {
        let mut reader = Reader(message);
        match reader.byte()? {
            0 => Some(Offer::Ready {
                guard: reader.number()?,
            }),
            1 => Some(Offer::Refused {
                errno: reader.number()?.cast_signed(),
            }),
            _ => None,
        }
    }
}

impl Order {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Order::Run(run) => Writer::tagged(0)
                .duration(Some(run.kill_bound))
                .number(u32::from(run.script == Script::Attached))
                .number(u32::from(run.limited == Limited::Yes))
                .string(&run.program)
                .strings(&run.argv)
                .strings(&run.env)
                .done(),
            Order::RunFromFile => Writer::tagged(1).done(),
            Order::Kill { grace } => Writer::tagged(2).duration(*grace).done(),
            Order::Go => Writer::tagged(3).done(),
        }
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Order> {
        let mut reader = Reader(message);
        match reader.byte()? {
            0 => Some(Order::Run(Run {
                kill_bound: reader.duration()?.unwrap_or(Duration::MAX),
                script: match reader.number()? {
                    0 => Script::None,
                    _ => Script::Attached,
                },
                limited: match reader.number()? {
                    0 => Limited::No,
                    _ => Limited::Yes,
                },
                program: reader.string()?,
                argv: reader.strings()?,
                env: reader.strings()?,
            })),
            1 => Some(Order::RunFromFile),
            2 => Some(Order::Kill {
                grace: reader.duration()?,
            }),
            3 => Some(Order::Go),
            _ => None,
        }
    }
}

impl Report {
    /// Says it. Of survivors, as many are named as this socket takes at once (`net.core.wmem_default` may be small).
    pub(crate) fn send(&self, socket: &OwnedFd) {
        // A harness that is gone is noticed by whoever reads from it.
        if send(socket, &self.encode(), &[]) == Err(Errno::MSGSIZE)
            && let Some(shorter) = self.with_fewer_names()
        {
            shorter.send(socket);
        }
    }

    fn with_fewer_names(&self) -> Option<Report> {
        let half = |members: &[Member]| members.iter().take(members.len() / 2).cloned().collect();
        match self {
            Report::Survivors(members) if !members.is_empty() => Some(Report::Survivors(half(members))),
            Report::LostSurvivors(members) if !members.is_empty() => {
                Some(Report::LostSurvivors(half(members)))
            }
            _ => None,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Report::Started { leader } => Writer::tagged(0).number(*leader).done(),
            Report::NotStarted { stage, errno } => Writer::tagged(1)
                .number(u32::from(stage.code()))
                .number(errno.cast_unsigned())
                .done(),
            Report::Exit { status } => Writer::tagged(2).number(status.cast_unsigned()).done(),
            Report::Empty { status, guard } => {
                let known = u32::from(status.is_some());
                Writer::tagged(3)
                    .number(u32::from(*guard == After::Waits))
                    .number(known)
                    .number(status.unwrap_or_default().cast_unsigned())
                    .done()
            }
            Report::Survivors(members) => Writer::tagged(4).members(members).done(),
            Report::LostEmpty => Writer::tagged(5).done(),
            Report::LostSurvivors(members) => Writer::tagged(6).members(members).done(),
            Report::OutOfCgroup => Writer::tagged(7).done(),
            Report::Unread => Writer::tagged(9).done(),
            Report::Reached(Hits { memory, pids }) => Writer::tagged(8)
                .number(u32::from(*memory))
                .number(u32::from(*pids))
                .done(),
        }
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Report> {
        let mut reader = Reader(message);
        match reader.byte()? {
            0 => Some(Report::Started {
                leader: reader.number()?,
            }),
            1 => Some(Report::NotStarted {
                stage: Stage::from_code(u8::try_from(reader.number()?).ok()?)?,
                errno: reader.number()?.cast_signed(),
            }),
            2 => Some(Report::Exit {
                status: reader.number()?.cast_signed(),
            }),
            3 => Some(Report::Empty {
                guard: match reader.number()? {
                    0 => After::Goes,
                    _ => After::Waits,
                },
                status: match (reader.number()?, reader.number()?) {
                    (0, _) => None,
                    (_, status) => Some(status.cast_signed()),
                },
            }),
            4 => Some(Report::Survivors(reader.members()?)),
            5 => Some(Report::LostEmpty),
            6 => Some(Report::LostSurvivors(reader.members()?)),
            7 => Some(Report::OutOfCgroup),
            8 => Some(Report::Reached(Hits {
                memory: reader.number()? != 0,
                pids: reader.number()? != 0,
            })),
            9 => Some(Report::Unread),
            _ => None,
        }
    }
}

impl Stage {
    const ALL: [Stage; 6] = [
        Stage::Order,
        Stage::Script,
        Stage::Spawn,
        Stage::Cgroup,
        Stage::Signalled,
        Stage::Changed,
    ];

    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Stage> {
        Stage::ALL.get(usize::from(code)).copied()
    }
}

#[cfg(test)]
mod tests;
