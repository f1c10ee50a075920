//! The library part of the plugin: it implements tea's plugin protocol
//! (proto/plugin.proto). Your actions need only the names below.

mod bundle;
mod call;
mod error;
mod lifetime;
mod logger;
mod server;
mod service;
pub mod testing;

pub use bundle::{Action, Bundle, Settings};
pub use call::{Call, Level};
pub use error::{Error, Result};
pub use server::serve;

/// The generated code of the protocol.
pub mod proto {
    tonic::include_proto!("tea.plugin.v1");

    pub mod broker {
        tonic::include_proto!("plugin");
    }
}
