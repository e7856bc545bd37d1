//! The model-facing task tools, the notice surface and the prompt section.
