//! The bundle: typed configuration, service context, ordered assembly and shutdown.
