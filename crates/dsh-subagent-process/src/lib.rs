//! A product that works as a child process, spoken to over its standard streams.
