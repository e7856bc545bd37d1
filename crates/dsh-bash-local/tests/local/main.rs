//! The executor against real shells.

mod fixture;

mod background;
mod configuration;
mod environment;
mod foreground;
mod output;
mod trees;
