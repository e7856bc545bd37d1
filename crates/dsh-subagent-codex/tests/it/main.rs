//! The provider with an app server that is played by a shell: what it does with a process.

mod admission;
mod dispose;
mod ends;
mod played;
mod several;
mod startup;
mod turns;
