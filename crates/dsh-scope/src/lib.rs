//! Registration scopes: effects with awaited disposal, tracked spawns, contained panics.
