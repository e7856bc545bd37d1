//! Integration tests: the `dsh` binary over real processes and real clients, and the assembled core in this process.
//!
//! One binary, one module per topic. Run by `cargo xtask test`, which builds `dsh` and fetches the foreign clients and the
//! agent products.
#![expect(clippy::expect_used, reason = "a test helper that cannot go on ends the test")]

mod acp_ends;
mod acp_models;
mod agent_ends;
mod agent_notices;
mod agent_settings;
mod agent_stops;
mod at_rest;
mod command_line;
mod composition;
mod composition_faults;
mod composition_surface;
mod mcp_cancellation;
mod mcp_end;
mod mcp_notices;
mod mcp_protocol;
mod mcp_resources;
mod node_client;
mod peers_ends;
mod peers_environment;
mod peers_guards;
mod peers_limits;
mod peers_output;
mod peers_pipes;
mod peers_servers;
mod peers_silence;
mod peers_trees;
mod pipeline;
mod product_clients;
mod product_subagents;
mod product_trees;
mod product_wire;
mod python_client;
mod run_approval;
mod run_ends;
mod run_formats;
mod run_live;
mod run_models;
mod run_sessions;
mod run_signals;
mod run_terminal;
mod subagent_acp;
mod subagent_claude_code;
mod subagent_codex;
mod subagent_inprocess;
