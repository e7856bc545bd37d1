//! Claude Code as a subagent, over its control protocol.
