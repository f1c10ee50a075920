use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use super::bundle::{Bundle, MAX_PAYLOAD};
use super::proto::broker::grpc_broker_server::GrpcBrokerServer;
use super::proto::plugin_server::PluginServer;
use super::service::{Broker, Service};
use super::{lifetime, logger};

/// The size of a message is checked after that of the payload in it.
pub(crate) const MAX_MESSAGE: usize = MAX_PAYLOAD + (1 << 20);

/// HTTP/2's flow control window: large results need fewer steps.
const WINDOW: u32 = 4 << 20;

/// Serves a bundle until the host shuts the plugin down.
pub fn serve(bundle: Bundle) -> ExitCode {
    let name = format!(
        "tea-plugin-{} {}",
        bundle.manifest.name, bundle.manifest.version
    );
    if env::var("TEA_PLUGIN_COOKIE").as_deref() != Ok("tea.plugin.v1") {
        eprintln!(
            "This is {name}, a plugin with actions for tea workflows.\n\
             It is not started by hand: tea starts it when a workflow uses one of its actions.\n\
             Put it into a directory and name that with --plugins."
        );
        return ExitCode::from(2);
    }
    lifetime::end_with_host();
    logger::install();
    match run(bundle) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(bundle: Bundle) -> Result<(), Box<dyn std::error::Error>> {
    // Ctrl-C reaches all processes; the host decides when to end.
    let _interrupt = signal(SignalKind::interrupt())?;
    let directory = env::var_os("PLUGIN_UNIX_SOCKET_DIR").map_or_else(env::temp_dir, PathBuf::from);
    let socket = directory.join(format!("tea-plugin-{}", std::process::id()));
    let listener = UnixListener::bind(&socket)?;
    // The first line on stdout tells the host where to connect. Everything after
    // it is output like any other.
    println!("1|1|unix|{}|grpc", socket.display());
    let broker = Arc::new(Broker::default());
    let service = PluginServer::new(Service::new(bundle, broker.clone()))
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    Server::builder()
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .add_service(GrpcBrokerServer::from_arc(broker))
        .add_service(service)
        .serve_with_incoming(UnixListenerStream::new(listener))
        .await?;
    Ok(())
}
