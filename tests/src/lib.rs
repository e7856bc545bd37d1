//! Integration tests over real processes and real clients.
