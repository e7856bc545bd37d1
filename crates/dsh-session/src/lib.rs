//! Session identity and the append-only event log of one conversation.
