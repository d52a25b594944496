//! `#[derive(Payload)]`: one struct gives the field model that XML in and out,
//! the XSD, the example and the prompt text are all made from.
//!
//! Use it through the `agentserver` crate, which re-exports it.

mod model;

use proc_macro::TokenStream;

/// Makes a struct with named fields a payload.
///
/// On the struct: `#[payload(name = "element", namespace = "urn:…")]`; without
/// them the element has the struct's name and no namespace. On a field:
/// `#[payload(name = "element", example = "text")]`. Doc comments become the
/// descriptions that agents read. A payload cannot hold itself, be it through
/// another one.
#[proc_macro_derive(Payload, attributes(payload))]
pub fn derive_payload(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    model::expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
