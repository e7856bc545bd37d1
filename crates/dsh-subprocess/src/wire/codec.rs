//! How a message is written and read: numbers in the order of the machine's small end first, lengths before what they
//! count.

use std::ffi::CString;
use std::time::Duration;

use crate::facts::Member;

/// As many survivors are named as fit into a message.
pub(super) const NAMED_SURVIVORS: usize = 64;

pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn tagged(tag: u8) -> Writer {
        Writer(vec![tag])
    }

    pub(super) fn number(mut self, number: u32) -> Writer {
        self.0.extend(number.to_le_bytes());
        self
    }

    /// In nanoseconds; what does not fit, or is not there, is forever.
    pub(super) fn duration(mut self, duration: Option<Duration>) -> Writer {
        let nanos = duration.and_then(|duration| u64::try_from(duration.as_nanos()).ok());
        self.0.extend(nanos.unwrap_or(u64::MAX).to_le_bytes());
        self
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Writer {
        let mut writer = self.number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        writer.0.extend(bytes);
        writer
    }

    pub(super) fn string(self, string: &CString) -> Writer {
        self.bytes(string.as_bytes())
    }

    pub(super) fn strings(self, strings: &[CString]) -> Writer {
        let writer = self.number(u32::try_from(strings.len()).unwrap_or(u32::MAX));
        strings.iter().fold(writer, Writer::string)
    }

    pub(super) fn members(self, members: &[Member]) -> Writer {
        let named = members.len().min(NAMED_SURVIVORS);
        let writer = self.number(u32::try_from(named).unwrap_or(0));
        members.iter().take(named).fold(writer, |writer, member| {
            writer.number(member.pid).bytes(member.command.as_bytes())
        })
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// The outer `None` is a message that is too short.
    #[expect(clippy::option_option, reason = "`Some(None)` is forever")]
    pub(super) fn duration(&mut self) -> Option<Option<Duration>> {
        let nanos = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        Some((nanos != u64::MAX).then(|| Duration::from_nanos(nanos)))
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    pub(super) fn string(&mut self) -> Option<CString> {
        CString::new(self.bytes()?).ok()
    }

    pub(super) fn strings(&mut self) -> Option<Vec<CString>> {
        let count = self.number()?;
        (0..count).map(|_| self.string()).collect()
    }

    pub(super) fn members(&mut self) -> Option<Vec<Member>> {
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
