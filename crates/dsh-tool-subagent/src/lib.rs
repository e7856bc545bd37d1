//! The tool that delegates work to a subagent.
