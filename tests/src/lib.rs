//! What the integration tests share: a room that nothing may survive in, and a client that speaks the raw protocol.
//!
//! The tests drive the built `dsh` binary (named by `DSH_BIN`, which `cargo xtask test` sets) or the assembled core in
//! this process. What a test claims about processes it reads from `/proc`, never from the server.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test helper that cannot go on ends the test"
)]

pub mod chaos;
pub mod crowds;
pub mod live;
pub mod output;
pub mod product;
pub mod rest;

mod calls;
mod dialogue;
mod editor;
mod harness;
mod led;
mod model;
mod reply;
mod room;
mod run;
mod server;

pub use dialogue::Dialogue;
pub use editor::Editor;
pub use harness::{Harness, delivered};
pub use led::Led;
pub use model::{ModelServer, Request, Turn, Wire};
pub use product::Product;
pub use reply::Reply;
pub use room::{GATED, Room};
pub use run::{Ran, Running, ran, says, starts};
pub use server::{Exit, Server, ServerOptions};
