//! The sessions that a store has, as an editor lists them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ListSessionsRequest, ListSessionsResponse, SessionInfo};
use dsh_llm::text_of;
use dsh_output::visible_line;
use dsh_session::{Event, EventData, MessageSource, SessionHeader};
use uuid::Uuid;

use crate::error::invalid;

/// How many sessions one answer has.
const PAGE: usize = 50;
/// How much of a log is looked at for what it is and what it was about.
const HEAD: u64 = 256 * 1024;
/// The longest title, in characters.
const TITLE: usize = 80;

/// One page of the sessions in `directory`, the last used first. The cursor is how many were listed before it. What is no
/// log of a session is left out; nothing is locked.
pub(crate) fn page(directory: &Path, request: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
    let skipped = match &request.cursor {
        Some(cursor) => cursor
            .parse()
            .map_err(|_| invalid(format_args!("there is no cursor {cursor:.64}")))?,
        None => 0,
    };
    let infos = logs(directory)
        .into_iter()
        .filter_map(|(path, used)| info(&path, used));
    let mut infos = infos
        .filter(|info| request.cwd.as_ref().is_none_or(|cwd| *cwd == info.cwd))
        .skip(skipped);
    let sessions: Vec<SessionInfo> = infos.by_ref().take(PAGE).collect();
    let next = infos.next().map(|_| (skipped + sessions.len()).to_string());
    Ok(ListSessionsResponse::new(sessions).next_cursor(next))
}

/// The files with the name of a session, and when each was written last.
fn logs(directory: &Path) -> Vec<(PathBuf, SystemTime)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut logs: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter(|path| id_of(path).is_some())
        .filter_map(|path| {
            let used = path.metadata().and_then(|file| file.modified()).ok()?;
            Some((path, used))
        })
        .collect();
    logs.sort_by(|(one, first), (other, second)| second.cmp(first).then_with(|| one.cmp(other)));
    logs
}

fn id_of(path: &Path) -> Option<&str> {
    let id = path.file_stem()?.to_str()?;
    Uuid::try_parse(id).ok().filter(|known| known.to_string() == id)?;
    Some(id)
}

/// What a log says of its session.
fn info(path: &Path, used: SystemTime) -> Option<SessionInfo> {
    let mut lines = BufReader::new(File::open(path).ok()?.take(HEAD)).lines();
    let header: SessionHeader = serde_json::from_str(&lines.next()?.ok()?).ok()?;
    if Some(header.id.as_str()) != id_of(path) {
        return None;
    }
    let title = lines.map_while(Result::ok).find_map(|line| asked(&line));
    let info = SessionInfo::new(header.id.to_string(), header.cwd?);
    Some(info.title(title).updated_at(iso8601(used)))
}

/// The first line of what a person asked for in this event, if one did.
fn asked(line: &str) -> Option<String> {
    let event: Event = serde_json::from_str(line).ok()?;
    let EventData::UserMessage(message) = event.data else {
        return None;
    };
    if message.source != MessageSource::User {
        return None;
    }
    let text = text_of(&message.content);
    let title: String = text.trim().lines().next()?.chars().take(TITLE).collect();
    Some(visible_line(&title).into_owned())
}

/// In UTC, to the second.
fn iso8601(time: SystemTime) -> Option<String> {
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let day = day + 1;
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(iso8601(time).unwrap(), shown);
        }
    }
}
