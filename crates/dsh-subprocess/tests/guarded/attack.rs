//! attack
