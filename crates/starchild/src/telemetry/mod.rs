//! Logs and spans: one setup for every command. Spans go to an OpenTelemetry
//! collector, by OTLP over HTTP, where the standard variables name one.

mod otlp;

use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{FutureExt, TracerProvider};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, SdkTracerProvider, Span, SpanData, SpanProcessor,
};
use otlp::Exporter;
use protocol::RoomId;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The daemon's span of a room, which is as long as the daemon's life: for the log
/// alone, so that each message is a trace of its own.
pub const ROOM: &str = "room";

static COLLECTOR: OnceLock<Collector> = OnceLock::new();

/// Sends events to `log`, and spans to the collector that the environment names.
/// An error where another part of the program has set it up before.
pub fn begin<L>(log: L) -> Result<(), String>
where
    L: Layer<Registry> + Send + Sync,
{
    let spans = match collector()? {
        None => None,
        Some(collector) => {
            let tracer = collector.provider.tracer("starchild");
            let ours = ["openstarry", "starchild"];
            let ours = ours.map(|target| (target, LevelFilter::INFO));
            let layer = tracing_opentelemetry::layer().with_tracer(tracer);
            let layer = layer.with_filter(filter_fn(|span| span.name() != ROOM));
            Some(layer.with_filter(Targets::new().with_targets(ours)))
        }
    };
    let subscriber = tracing_subscriber::registry().with(log).with(spans);
    subscriber.try_init().map_err(|error| error.to_string())
}

/// Sends what is left to the collector.
pub async fn finish() {
    if let Some(collector) = COLLECTOR.get() {
        // It blocks until the collector has answered, which needs this runtime.
        let ended = tokio::task::spawn_blocking(|| collector.provider.shutdown());
        if let Ok(Err(error)) = ended.await {
            tracing::warn!(%error, "spans may be missing at the collector");
        }
    }
}

/// Whether spans are wanted.
pub fn is_on() -> bool {
    COLLECTOR.get().is_some()
}

/// Sends a span that was not made by `tracing`.
pub fn export(span: SpanData) {
    if let Some(collector) = COLLECTOR.get() {
        collector.processor.on_end(span);
    }
}

/// Runs something whose spans belong below the span that `traceparent` names.
pub async fn below<F: Future>(traceparent: String, future: F) -> F::Output {
    if !is_on() {
        return future.await;
    }
    let carrier = HashMap::from([("traceparent".to_owned(), traceparent)]);
    let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
    future.with_context(parent).await
}

/// The span of a message of a room. The log has the room from the span around it.
pub fn message(room: &RoomId, seq: i64) -> tracing::Span {
    let span = tracing::info_span!("message", seq);
    if is_on() {
        span.set_attribute("room", room.to_string());
    }
    span
}

/// Where spans go.
struct Collector {
    provider: SdkTracerProvider,
    processor: Arc<BatchSpanProcessor>,
}

/// The collector that the environment names, if it names one.
fn collector() -> Result<Option<&'static Collector>, String> {
    let is_disabled = std::env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value == "true");
    if let (None, false, Some(exporter)) = (COLLECTOR.get(), is_disabled, Exporter::from_env()?) {
        // Another thread's is as good.
        let _ = COLLECTOR.set(Collector::start(exporter));
    }
    Ok(COLLECTOR.get())
}

impl Collector {
    fn start(exporter: Exporter) -> Self {
        // `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come first.
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("starchild");
        }
        let resource = resource.build();
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&resource);
        let processor = Arc::new(processor);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(SharedProcessor(processor.clone()))
            .with_resource(resource)
            .build();
        Self {
            provider,
            processor,
        }
    }
}

/// One queue for the spans of `tracing` and for those of hops.
#[derive(Debug)]
struct SharedProcessor(Arc<BatchSpanProcessor>);

impl SpanProcessor for SharedProcessor {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.0.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        self.0.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }
}
