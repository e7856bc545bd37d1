//! The tool trait, its registry, argument checks and the execution pipeline.
