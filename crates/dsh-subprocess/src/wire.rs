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
//! | supervisor → harness, over the socket of a guard that is gone | [`Report::LostEmpty`], [`Report::LostSurvivors`] |

mod socket;

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;

pub(crate) use self::socket::{Received, Wait, pair, receive, send};
use crate::cgroup::Hits;
use crate::facts::Member;

/// A longer order goes in a file of its own.
pub(crate) const MESSAGE_LIMIT: usize = 64 * 1024;

/// As many survivors are named as fit into a message.
const NAMED_SURVIVORS: usize = 64;

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
            _ => None,
        }
    }
}

impl Stage {
    const ALL: [Stage; 4] = [Stage::Order, Stage::Script, Stage::Spawn, Stage::Cgroup];

    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Stage> {
        Stage::ALL.get(usize::from(code)).copied()
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn tagged(tag: u8) -> Writer {
        Writer(vec![tag])
    }

    fn number(mut self, number: u32) -> Writer {
        self.0.extend(number.to_le_bytes());
        self
    }

    /// In nanoseconds; what does not fit, or is not there, is forever.
    fn duration(mut self, duration: Option<Duration>) -> Writer {
        let nanos = duration.and_then(|duration| u64::try_from(duration.as_nanos()).ok());
        self.0.extend(nanos.unwrap_or(u64::MAX).to_le_bytes());
        self
    }

    fn bytes(self, bytes: &[u8]) -> Writer {
        let mut writer = self.number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        writer.0.extend(bytes);
        writer
    }

    fn string(self, string: &CString) -> Writer {
        self.bytes(string.as_bytes())
    }

    fn strings(self, strings: &[CString]) -> Writer {
        let writer = self.number(u32::try_from(strings.len()).unwrap_or(u32::MAX));
        strings.iter().fold(writer, Writer::string)
    }

    fn members(self, members: &[Member]) -> Writer {
        let named = members.len().min(NAMED_SURVIVORS);
        let writer = self.number(u32::try_from(named).unwrap_or(0));
        members.iter().take(named).fold(writer, |writer, member| {
            writer.number(member.pid).bytes(member.command.as_bytes())
        })
    }

    fn done(self) -> Vec<u8> {
        self.0
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// The outer `None` is a message that is too short.
    #[expect(clippy::option_option, reason = "`Some(None)` is forever")]
    fn duration(&mut self) -> Option<Option<Duration>> {
        let nanos = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        Some((nanos != u64::MAX).then(|| Duration::from_nanos(nanos)))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    fn string(&mut self) -> Option<CString> {
        CString::new(self.bytes()?).ok()
    }

    fn strings(&mut self) -> Option<Vec<CString>> {
        let count = self.number()?;
        (0..count).map(|_| self.string()).collect()
    }

    fn members(&mut self) -> Option<Vec<Member>> {
        let count = self.number()?;
        let member = |_| {
            Some(Member {
                pid: self.number()?,
                command: String::from_utf8_lossy(self.bytes()?).into_owned(),
            })
        };
        (0..count).map(member).collect()
    }
}

#[cfg(test)]
mod tests;
