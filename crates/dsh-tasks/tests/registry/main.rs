//! The registry through its public interface, by the sections of its contract.

mod common;

mod smoke;
