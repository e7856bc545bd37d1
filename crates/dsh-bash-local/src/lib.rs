//! The bash executor on this machine, over process trees.
