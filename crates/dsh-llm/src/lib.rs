//! The words a model conversation is made of: call ids and content blocks.
