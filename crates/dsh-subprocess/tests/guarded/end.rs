//! end
