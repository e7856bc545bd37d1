//! Gates, facts polled with a deadline, log capture and process assertions for tests.
