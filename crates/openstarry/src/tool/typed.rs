//! Tools made of typed async functions.

use super::{Risk, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, parse};
use crate::segment::ContentSegment;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a typed function may give: words, JSON, segments, nothing, or a `Result`
/// of them with any error.
pub trait IntoOutput {
    /// As a tool gives it.
    fn into_output(self) -> ToolOutput;
}

impl IntoOutput for Vec<ContentSegment> {
    fn into_output(self) -> ToolOutput {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> ToolOutput {
        Ok(vec![ContentSegment::text(self)])
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> ToolOutput {
        Ok(vec![ContentSegment::text(self)])
    }
}

impl IntoOutput for Value {
    fn into_output(self) -> ToolOutput {
        Ok(vec![ContentSegment::text(self.to_string())])
    }
}

impl IntoOutput for () {
    fn into_output(self) -> ToolOutput {
        Ok(Vec::new())
    }
}

impl<T: IntoOutput, E: std::fmt::Display> IntoOutput for Result<T, E> {
    fn into_output(self) -> ToolOutput {
        self.map_err(ToolError::new)?.into_output()
    }
}

struct TypedTool<Args, F> {
    spec: ToolSpec,
    run: F,
    args: PhantomData<fn(Args)>,
}

/// A tool that runs `run`. The schema is that of `Args`; arguments that do not
/// fit it never arrive.
///
/// ```
/// use openstarry::tool::{self, Risk, ToolContext};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Place {
///     /// A city.
///     city: String,
/// }
///
/// let weather = tool::function(
///     "get_weather",
///     "The weather at a place.",
///     Risk::Safe,
///     async |place: Place, _: ToolContext| format!("It is sunny in {}.", place.city),
/// );
/// assert_eq!(weather.spec().parameters["required"][0], "city");
/// ```
pub fn function<Args, F, Fut>(name: &str, description: &str, risk: Risk, run: F) -> Arc<dyn Tool>
where
    Args: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Args, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutput> + Send + 'static,
{
    Arc::new(TypedTool {
        spec: ToolSpec::of::<Args>(name, description, risk),
        run,
        args: PhantomData,
    })
}

impl<Args, F, Fut> Tool for TypedTool<Args, F>
where
    Args: DeserializeOwned + Send + 'static,
    F: Fn(Args, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output: IntoOutput> + Send + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, context: &'a ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            (self.run)(parse(args)?, context.clone())
                .await
                .into_output()
        })
    }
}

/// Makes a tool of an async function: its name, its comment for the model, its
/// arguments with theirs. The function that is left takes nothing and gives the
/// tool. A first argument of type `ToolContext`, by that name, is where the tool
/// runs. What it may give is an [`IntoOutput`](crate::tool::IntoOutput).
///
/// ```
/// openstarry::tool! {
///     /// The weather at a place.
///     #[risk(Safe)]
///     pub async fn get_weather(
///         /// A city.
///         city: String,
///         /// How many days ahead.
///         days: Option<u32>,
///     ) -> Result<String, std::io::Error> {
///         Ok(format!("It will be sunny in {city} in {} days.", days.unwrap_or(0)))
///     }
/// }
///
/// let registry = openstarry::tool::Registry::new();
/// registry.add(vec![get_weather()]).unwrap();
/// ```
#[macro_export]
macro_rules! tool {
    (
        $(#[doc = $doc:literal])+
        #[risk($risk:ident)]
        $vis:vis async fn $name:ident(
            $(#[doc = $of_context:literal])* $context:ident: ToolContext
            $(, $(#[doc = $about:literal])* $arg:ident: $type:ty)* $(,)?
        ) $(-> $out:ty)? $body:block
    ) => {
        $(#[doc = $doc])+
        $vis fn $name() -> ::std::sync::Arc<dyn $crate::tool::Tool> {
            #[derive($crate::macros::serde::Deserialize, $crate::macros::schemars::JsonSchema)]
            #[serde(crate = "openstarry::macros::serde", deny_unknown_fields)]
            #[schemars(crate = "openstarry::macros::schemars")]
            struct Args {
                $($(#[doc = $about])* $arg: $type,)*
            }
            async fn run(args: Args, $context: $crate::tool::ToolContext) $(-> $out)? {
                let Args { $($arg,)* } = args;
                $body
            }
            let about = concat!($($doc, "\n"),+);
            $crate::tool::function(
                stringify!($name),
                about.trim(),
                $crate::tool::Risk::$risk,
                run,
            )
        }
    };
    (
        $(#[doc = $doc:literal])+
        #[risk($risk:ident)]
        $vis:vis async fn $name:ident(
            $($(#[doc = $about:literal])* $arg:ident: $type:ty),* $(,)?
        ) $(-> $out:ty)? $body:block
    ) => {
        $crate::tool! {
            $(#[doc = $doc])+
            #[risk($risk)]
            $vis async fn $name(
                _context: ToolContext
                $(, $(#[doc = $about])* $arg: $type)*
            ) $(-> $out)? $body
        }
    };
    ($($other:tt)*) => {
        compile_error!(
            "tool! takes a comment that says what the tool does, `#[risk(Safe)]`, `#[risk(Moderate)]` or `#[risk(Destructive)]`, and an async function"
        );
    };
}
