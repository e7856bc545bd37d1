//! Any agent of the Agent Client Protocol as a subagent.
