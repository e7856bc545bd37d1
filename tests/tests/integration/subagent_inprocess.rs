//! Agents in this process that work for another one: the real loop, scripted models, real commands under guards.

mod family;

mod delegation;
mod structured;
mod tasks;
