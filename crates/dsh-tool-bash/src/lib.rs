//! The model-facing bash tool: foreground, background, and what is left of a tree.
