//! Reads the type and writes the implementations.

use crate::attributes::{Settings, description};
use crate::choice;
use crate::fields::Fields;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Ident, Result};

/// How a type is written, read and described.
pub struct Content {
    /// What serde needs.
    pub serde: TokenStream,
    /// An expression of its shape.
    pub shape: TokenStream,
    /// More of what a field must be able to do.
    pub field: TokenStream,
}

pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        let message = "a payload has no generics";
        return Err(Error::new_spanned(&input.generics, message));
    }
    let ident = &input.ident;
    let settings = Settings::read(&input.attrs, &["name", "namespace"])?;
    let root = settings.name(ident)?;
    let Content {
        serde,
        shape,
        field,
    } = match &input.data {
        Data::Struct(data) => record(ident, &data.fields)?,
        Data::Enum(data) => choice::expand(ident, data)?,
        Data::Union(_) => {
            return Err(Error::new_spanned(
                ident,
                "a payload is a struct or an enum",
            ));
        }
    };
    let namespace = settings.namespace.map(|n| n.value()).unwrap_or_default();
    let description = description(&input.attrs);
    Ok(quote! {
        const _: () = {
            #serde

            impl ::agentserver::payload::Payload for #ident {
                const NAME: &'static str = #root;
                const NAMESPACE: &'static str = #namespace;

                fn schema() -> ::agentserver::payload::Schema {
                    ::agentserver::payload::Schema {
                        name: #root.into(),
                        namespace: #namespace.into(),
                        description: #description.into(),
                        content: <Self as ::agentserver::payload::Field>::shape(),
                    }
                }
            }

            impl ::agentserver::payload::Field for #ident {
                fn shape() -> ::agentserver::payload::Shape {
                    #shape
                }

                #field
            }
        };
    })
}

fn record(ident: &Ident, fields: &syn::Fields) -> Result<Content> {
    let Fields {
        shadow,
        models,
        defaults,
    } = Fields::read(fields, ident, "")?;
    let target = ident.to_string();
    let serde = quote! {
        #(#defaults)*

        // serde's derive reads this copy of the struct, so that the caller
        // derives nothing but `Payload`.
        #[derive(::agentserver::__private::serde::Serialize, ::agentserver::__private::serde::Deserialize)]
        #[serde(crate = "::agentserver::__private::serde", remote = #target)]
        struct Shadow { #(#shadow),* }

        impl ::agentserver::__private::serde::Serialize for #ident {
            fn serialize<S>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error>
            where
                S: ::agentserver::__private::serde::Serializer,
            {
                Shadow::serialize(self, serializer)
            }
        }

        impl<'de> ::agentserver::__private::serde::Deserialize<'de> for #ident {
            fn deserialize<D>(deserializer: D) -> ::core::result::Result<Self, D::Error>
            where
                D: ::agentserver::__private::serde::Deserializer<'de>,
            {
                Shadow::deserialize(deserializer)
            }
        }
    };
    let shape = quote!(::agentserver::payload::Shape::Record(
        ::std::vec![#(#models),*]
    ));
    Ok(Content {
        serde,
        shape,
        field: TokenStream::new(),
    })
}
