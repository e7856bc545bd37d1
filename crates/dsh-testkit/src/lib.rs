//! Gates, facts polled with a deadline, log capture and process assertions for tests.
//!
//! A test waits for facts, never for time. Where it decides the order itself it uses a [`Gate`]; where it must wait for
//! somebody else's doing it polls with [`eventually`], which fails by name after a deadline; what no value shows it
//! reads in the log ([`LogCapture`]) or in `/proc` ([`process`]); what needs numbers of processes to come again runs in a
//! [`namespace`]. This crate depends on no other of the workspace, so
//! that all of them can use it.
//!
//! ```
//! use dsh_testkit::{Gate, eventually};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let gate = Gate::new();
//! let other = gate.clone();
//! let opener = std::thread::spawn(move || other.open());
//! gate.opened().await;
//! eventually("the opener to end", || opener.is_finished()).await;
//! # }
//! ```

mod eventually;
mod gate;
mod log;

pub mod namespace;
pub mod process;

pub use eventually::{eventually, eventually_within};
pub use gate::Gate;
pub use log::LogCapture;
