//! The system prompt as ordered sections and variables.
