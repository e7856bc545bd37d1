//! An ACP agent.

mod config;
mod service;

mod connection;
mod handler;
mod sessions;
mod store;

mod feed;
mod background;
mod card;
mod prompt;
mod transcript;

mod approval;

mod ending;
mod line;
mod outbox;
mod wire;

mod error;

pub use config::Settings;
pub use ending::Served;
pub use error::ServeError;
pub use service::serve;
