//! The bash seam: what to run, and a handle on what runs.
