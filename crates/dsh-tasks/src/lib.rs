//! The background task registry: ids, owners, claims, waits, kills, notices and cleanup.
