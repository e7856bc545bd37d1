//! Subagents in this process: fresh ones, and forks of their parent.
