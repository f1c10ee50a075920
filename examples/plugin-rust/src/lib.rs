//! The actions of the plugin, and the library part that serves them.

pub mod actions;
pub mod tea;
