//! What is done with every answer: it is counted and logged, and gets the headers that all have.

use super::pages::{error_for_people, is_for_people};
use crate::{
    app::App,
    auth::network::Origin,
    error::Error,
    store::reading::{self, Requested},
};
use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use pin_project_lite::pin_project;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};
use tower::{Layer, Service};

/// Watches over a route.
#[derive(Clone)]
pub struct Observe {
    app: App,
}

impl Observe {
    pub fn new(app: App) -> Self {
        Self { app }
    }
}

impl<S> Layer<S> for Observe {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed {
            inner,
            app: self.app.clone(),
        }
    }
}

/// A route that is watched over.
#[derive(Clone)]
pub struct Observed<S> {
    inner: S,
    app: App,
}

impl<S> Service<Request> for Observed<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answering<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let origin = Origin::of_request(&request, &self.app.config.network);
        Answering {
            started: Instant::now(),
            banned: self.app.denylist.bans_address(origin.ip),
            method: request.method().clone(),
            for_people: request.method() == Method::GET && is_for_people(request.headers()),
            matched: request.extensions().get::<MatchedPath>().cloned(),
            app: self.app.clone(),
            answer: reading::requested_by(origin.network(), self.inner.call(request)),
        }
    }
}

pin_project! {
    /// An answer on its way.
    pub struct Answering<F> {
        started: Instant,
        banned: bool,
        method: Method,
        for_people: bool,
        matched: Option<MatchedPath>,
        app: App,
        #[pin]
        answer: Requested<F>,
    }
}

impl<F> Future for Answering<F>
where
    F: Future<Output = Result<Response, Infallible>>,
{
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match *this.banned {
            true => Error::forbidden("The operator of this server has banned your address")
                .into_response(),
            false => {
                let Ok(response) = ready!(this.answer.poll(context));
                response
            }
        };
        if *this.for_people {
            response = error_for_people(response);
        }
        let method = &*this.method;
        // The route, never the address: that may hold a token.
        let route = this.matched.as_ref().map_or("unknown", MatchedPath::as_str);
        let status = response.status().as_u16();
        let took = this.started.elapsed();
        this.app.metrics.answered(method, route, status, took);
        tracing::debug!(%method, route, status, micros = took.as_micros() as u64, "answered");
        let headers = response.headers_mut();
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        headers.insert(
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        );
        // What may be kept says so itself; the rest is somebody's and is kept by nobody.
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        Poll::Ready(Ok(response))
    }
}
