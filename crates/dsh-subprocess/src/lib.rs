//! Process trees: spawn, signal, escalate, and say what was seen to end.
