//! Codex as a subagent, over its app server.
