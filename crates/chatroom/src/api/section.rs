//! A section of the API: its handlers are served at start, and described only when somebody reads
//! the description. Most servers are never asked for it, and it is large.

use super::write_limits;
use crate::app::App;
use axum::{
    Router,
    handler::Handler,
    routing::{MethodFilter, MethodRouter, on},
};
use utoipa::openapi::{HttpMethod, OpenApi};

/// The handlers of one file.
pub struct Section {
    pub serve: fn(Router<App>, &App) -> Router<App>,
    pub describe: fn() -> OpenApi,
}

/// Makes a file's `SECTION` of its handlers. Path and method are those of `#[utoipa::path]`.
macro_rules! section {
    ($($handler:ident),+ $(,)?) => {
        /// The handlers of this file.
        pub const SECTION: $crate::api::section::Section = {
            #[derive(utoipa::OpenApi)]
            #[openapi(paths($($handler),+))]
            struct Described;
            $crate::api::section::Section {
                serve: |router, app| {
                    $(let router = pastey::paste! {
                        $crate::api::section::serve::<[<__path_ $handler>], _, _>(router, app, $handler)
                    };)+
                    router
                },
                describe: <Described as utoipa::OpenApi>::openapi,
            }
        };
    };
}

/// Serves a handler where its description says, behind the limits of its route.
pub fn serve<P, H, T>(router: Router<App>, app: &App, handler: H) -> Router<App>
where
    P: utoipa::Path,
    H: Handler<T, App>,
    T: 'static,
{
    P::methods().into_iter().fold(router, |router, method| {
        let handlers = on(filter(&method), handler.clone());
        add(router, app, &P::path(), &method, handlers)
    })
}

// Apart from `serve`, which is compiled for each handler.
fn add(
    router: Router<App>,
    app: &App,
    path: &str,
    method: &HttpMethod,
    handlers: MethodRouter<App>,
) -> Router<App> {
    router.route(path, write_limits::limited(app, method, path, handlers))
}

fn filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Trace => MethodFilter::TRACE,
    }
}
