//! The bounded output log of one process: cursors, spill, incremental UTF-8, text for the model.
