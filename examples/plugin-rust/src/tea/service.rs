use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{OnceCell, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use super::bundle::{Bundle, Instance};
use super::call::Call;
use super::error::{Error, Result};
use super::proto::broker::{ConnInfo, grpc_broker_server::GrpcBroker};
use super::proto::host_client::HostClient;
use super::proto::host_server::Host;
use super::proto::invoke_event::Event;
use super::proto::invoke_response::Outcome;
use super::proto::plugin_server::Plugin;
use super::proto::*;
use super::server::MAX_MESSAGE;

type Answer<T> = std::result::Result<Response<T>, Status>;

/// go-plugin's broker: the host sends the addresses of its services.
#[derive(Default)]
pub(crate) struct Broker {
    addresses: watch::Sender<HashMap<u32, String>>,
}

#[tonic::async_trait]
impl GrpcBroker for Broker {
    type StartStreamStream = tokio_stream::Pending<std::result::Result<ConnInfo, Status>>;

    async fn start_stream(
        &self,
        request: Request<Streaming<ConnInfo>>,
    ) -> Answer<Self::StartStreamStream> {
        let (mut infos, addresses) = (request.into_inner(), self.addresses.clone());
        tokio::spawn(async move {
            while let Ok(Some(info)) = infos.message().await {
                let scheme = if info.network == "unix" {
                    "unix://"
                } else {
                    "http://"
                };
                addresses.send_modify(|known| {
                    _ = known.insert(info.service_id, format!("{scheme}{}", info.address))
                });
            }
        });
        Ok(Response::new(tokio_stream::pending()))
    }
}

impl Broker {
    /// Connects to a service; the host sends its address soon.
    async fn connect(&self, id: u32) -> Result<Channel> {
        let mut addresses = self.addresses.subscribe();
        let known = async {
            addresses
                .wait_for(|known| known.contains_key(&id))
                .await
                .ok()
                .map(|known| known[&id].clone())
        };
        let Ok(Some(address)) = timeout(Duration::from_secs(5), known).await else {
            return Err(Error::new(
                "connection_error",
                "the host did not send the address of its services",
            ));
        };
        Ok(Endpoint::from_shared(address)?.connect().await?)
    }
}

/// The service tea.plugin.v1.Plugin.
pub(crate) struct Service {
    bundle: Arc<Bundle>,
    broker: Arc<Broker>,
    host: OnceCell<Arc<dyn Host>>,
    instances: Mutex<HashMap<String, Instance>>,
    running: watch::Sender<HashSet<String>>,
    draining: AtomicBool,
}

impl Service {
    pub(crate) fn new(bundle: Bundle, broker: Arc<Broker>) -> Service {
        Service {
            bundle: Arc::new(bundle),
            broker,
            host: OnceCell::new(),
            instances: Mutex::default(),
            running: watch::Sender::default(),
            draining: AtomicBool::new(false),
        }
    }

    async fn open(&self, request: ConfigureRequest) -> Result<()> {
        if request.host_service != 0 {
            let connect = async || {
                let channel = self.broker.connect(request.host_service).await?;
                let client = HostClient::new(channel)
                    .max_decoding_message_size(MAX_MESSAGE)
                    .max_encoding_message_size(MAX_MESSAGE);
                Ok::<_, Error>(Arc::new(Remote(client)) as Arc<dyn Host>)
            };
            self.host.get_or_try_init(connect).await?;
        }
        let instance = self.bundle.open_instance(request.settings_json).await?;
        if !request.import_path.is_empty() {
            self.bundle.import_state(&instance, &request.import_path)?;
        }
        self.instances
            .lock()
            .unwrap()
            .insert(request.instance_id, instance);
        Ok(())
    }

    /// Returns the future of a call, or a status for a mistake of the host.
    fn begin(
        &self,
        mut request: InvokeRequest,
        events: Option<mpsc::Sender<Event>>,
    ) -> std::result::Result<impl Future<Output = Result<Vec<u8>>> + Send + 'static, Status> {
        let Some(instance) = self
            .instances
            .lock()
            .unwrap()
            .get(&request.instance_id)
            .cloned()
        else {
            return Err(Status::failed_precondition(format!(
                "instance {} is not configured",
                request.instance_id
            )));
        };
        if self.draining.load(Ordering::SeqCst) {
            return Err(Status::unavailable("the plugin is shutting down"));
        }
        let running = Running::new(self.running.clone(), request.call_id.clone());
        let (action, params) = (request.action.clone(), std::mem::take(&mut request.params));
        let call = Call {
            request,
            instance,
            host: self.host.get().cloned(),
            events,
        };
        let bundle = self.bundle.clone();
        Ok(async move {
            let _running = running; // until the call ends or is dropped
            bundle.run(&action, params, call).await
        })
    }
}

#[tonic::async_trait]
impl Plugin for Service {
    type InvokeStreamStream = Events;

    async fn describe(&self, _: Request<DescribeRequest>) -> Answer<DescribeResponse> {
        Ok(Response::new(DescribeResponse {
            manifest: Some(self.bundle.manifest.clone()),
        }))
    }

    // The host asks for a call that it no longer waits for.
    async fn health(&self, request: Request<HealthRequest>) -> Answer<HealthResponse> {
        let call = match request.get_ref().call_id.as_str() {
            "" => CallState::Unspecified,
            id if self.running.borrow().contains(id) => CallState::Running,
            _ => CallState::Ended,
        };
        Ok(Response::new(HealthResponse {
            ready: !self.draining.load(Ordering::SeqCst),
            message: String::new(),
            call: call.into(),
        }))
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Answer<ConfigureResponse> {
        let error = self
            .open(request.into_inner())
            .await
            .err()
            .map(|error| error.to_proto());
        Ok(Response::new(ConfigureResponse {
            error,
            capabilities: self.bundle.capabilities(),
        }))
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> Answer<ReleaseResponse> {
        let ReleaseRequest {
            instance_id,
            export_path,
        } = request.into_inner();
        let mut instances = self.instances.lock().unwrap();
        if let Some(instance) = instances
            .get(&instance_id)
            .filter(|_| !export_path.is_empty())
            && let Err(error) = self.bundle.export_state(instance, &export_path)
        {
            return Ok(Response::new(ReleaseResponse {
                error: Some(error.to_proto()),
            }));
        }
        instances.remove(&instance_id);
        Ok(Response::new(ReleaseResponse::default()))
    }

    // gRPC drops the future of a call that is canceled.
    async fn invoke(&self, request: Request<InvokeRequest>) -> Answer<InvokeResponse> {
        let outcome = match self.begin(request.into_inner(), None)?.await {
            Ok(result) => Outcome::Result(result),
            Err(error) => Outcome::Error(error.to_proto()),
        };
        Ok(Response::new(InvokeResponse {
            outcome: Some(outcome),
        }))
    }

    async fn invoke_stream(&self, request: Request<InvokeRequest>) -> Answer<Events> {
        let (sender, events) = mpsc::channel(16);
        let call = self.begin(request.into_inner(), Some(sender.clone()))?;
        let task = tokio::spawn(async move {
            let last = match call.await {
                Ok(result) => Event::Result(result),
                Err(error) => Event::Error(error.to_proto()),
            };
            _ = sender.send(last).await;
        });
        Ok(Response::new(Events { events, task }))
    }

    async fn shutdown(&self, request: Request<ShutdownRequest>) -> Answer<ShutdownResponse> {
        self.draining.store(true, Ordering::SeqCst);
        let grace = Duration::from_millis(request.get_ref().grace_ms.max(0) as u64);
        let mut running = self.running.subscribe();
        let drained = timeout(grace, running.wait_for(HashSet::is_empty))
            .await
            .is_ok();
        self.instances.lock().unwrap().clear();
        tokio::spawn(async {
            sleep(Duration::from_millis(100)).await; // the answer is sent before
            std::process::exit(0);
        });
        if drained {
            Ok(Response::new(ShutdownResponse {}))
        } else {
            Err(Status::deadline_exceeded("calls are still running"))
        }
    }
}

/// Names a running call until it is dropped.
struct Running(watch::Sender<HashSet<String>>, String);

impl Running {
    fn new(running: watch::Sender<HashSet<String>>, id: String) -> Running {
        running.send_modify(|calls| _ = calls.insert(id.clone()));
        Running(running, id)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|calls| _ = calls.remove(&self.1));
    }
}

/// The events of a call. Dropping them ends it: gRPC drops the stream of a call
/// that is canceled.
pub(crate) struct Events {
    events: mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Stream for Events {
    type Item = std::result::Result<InvokeEvent, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events
            .poll_recv(context)
            .map(|event| event.map(|event| Ok(InvokeEvent { event: Some(event) })))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The host's services over gRPC.
struct Remote(HostClient<Channel>);

macro_rules! forward {
    ($($method:ident: $request:ty => $answer:ty),* $(,)?) => {
        #[tonic::async_trait]
        impl Host for Remote {
            $(async fn $method(&self, request: Request<$request>) -> Answer<$answer> {
                self.0.clone().$method(request).await
            })*
        }
    };
}

forward! {
    invoke_action: InvokeActionRequest => InvokeResponse,
    describe_action: DescribeActionRequest => DescribeActionResponse,
    log: LogRequest => LogResponse,
    progress: ProgressRequest => ProgressResponse,
    token: TokenRequest => TokenResponse,
    get_note: GetNoteRequest => GetNoteResponse,
    set_note: SetNoteRequest => SetNoteResponse,
    report_usage: ReportUsageRequest => ReportUsageResponse,
}
