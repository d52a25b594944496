//! `#[derive(Payload)]`: one struct or enum gives the field model that XML in
//! and out, the XSD, the example and the prompt text are all made from.
//!
//! Use it through the `agentserver` crate, which re-exports it.

mod attributes;
mod choice;
mod fields;
mod model;

use proc_macro::TokenStream;

/// Makes a struct with named fields, or an enum, a payload.
///
/// On the type: `#[payload(name = "element", namespace = "urn:…")]`; without
/// them the element has the type's name and no namespace. On a field:
/// `#[payload(name = "element", example = "text")]`, `attribute` for one that
/// stands in an attribute, and `default` or `default = 5` for one that may be
/// left out. On a variant: `#[payload(name = "element")]`. Doc comments become
/// the descriptions that agents read.
///
/// An enum whose variants hold nothing is one of their names, as text. Any other
/// is exactly one of its variants' elements. A payload cannot hold itself, be it
/// through another one.
#[proc_macro_derive(Payload, attributes(payload))]
pub fn derive_payload(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    model::expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
