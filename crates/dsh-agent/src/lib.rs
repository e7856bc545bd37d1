//! Agents, their registry, their scope and their inbox.
