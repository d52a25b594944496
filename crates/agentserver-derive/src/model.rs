//! Reads the struct and writes the implementations.

use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashSet;
use syn::{Attribute, Data, DeriveInput, Error, Expr, ExprLit, Fields, Lit, LitStr, Meta, Result};

/// What `#[payload(...)]` said.
#[derive(Default)]
struct Settings {
    name: Option<LitStr>,
    namespace: Option<LitStr>,
    example: Option<LitStr>,
}

pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a payload has no generics",
        ));
    }
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "a payload is a struct"));
    };
    let no_fields = syn::punctuated::Punctuated::new();
    let fields = match &data.fields {
        Fields::Named(named) => &named.named,
        Fields::Unit => &no_fields,
        Fields::Unnamed(_) => {
            return Err(Error::new_spanned(
                &input.ident,
                "a payload's fields have names",
            ));
        }
    };

    let ident = &input.ident;
    let target = ident.to_string();
    let settings = settings(&input.attrs, &["name", "namespace"])?;
    let root = element_name(settings.name.as_ref(), ident)?;
    let namespace = settings.namespace.map(|n| n.value()).unwrap_or_default();
    let description = description(&input.attrs);

    let mut seen = HashSet::new();
    let mut shadow = Vec::new();
    let mut models = Vec::new();
    for field in fields {
        let Some(field_ident) = &field.ident else {
            continue;
        };
        let settings = self::settings(&field.attrs, &["name", "example"])?;
        let name = element_name(settings.name.as_ref(), field_ident)?;
        if !seen.insert(name.clone()) {
            return Err(Error::new_spanned(
                field_ident,
                format!("two fields are called {name}"),
            ));
        }
        let ty = &field.ty;
        if mentions(quote!(#ty), ident) {
            let message = "a payload cannot hold itself: its example would have no end";
            return Err(Error::new_spanned(ty, message));
        }
        let default = is_vec(ty).then(|| quote!(#[serde(default)]));
        shadow.push(quote! {
            #[serde(rename = #name, skip_serializing_if = "::agentserver::payload::Field::is_absent")]
            #default
            #field_ident: #ty
        });
        let text = self::description(&field.attrs);
        let example = match &settings.example {
            Some(example) => quote!(::core::option::Option::Some(#example.into())),
            None => quote!(::core::option::Option::None),
        };
        models.push(quote! {
            ::agentserver::payload::FieldModel::of::<#ty>(#name, #text, #example)
        });
    }

    Ok(quote! {
        const _: () = {
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

            impl ::agentserver::payload::Payload for #ident {
                const NAME: &'static str = #root;
                const NAMESPACE: &'static str = #namespace;

                fn schema() -> ::agentserver::payload::Schema {
                    ::agentserver::payload::Schema {
                        name: #root.into(),
                        namespace: #namespace.into(),
                        description: #description.into(),
                        fields: ::std::vec![#(#models),*],
                    }
                }
            }

            impl ::agentserver::payload::Field for #ident {
                fn shape() -> ::agentserver::payload::Shape {
                    ::agentserver::payload::Shape::Record(
                        <Self as ::agentserver::payload::Payload>::schema().fields,
                    )
                }
            }
        };
    })
}

fn settings(attributes: &[Attribute], allowed: &[&str]) -> Result<Settings> {
    let mut settings = Settings::default();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("payload")) {
        attribute.parse_nested_meta(|meta| {
            let key = meta
                .path
                .get_ident()
                .map(ToString::to_string)
                .unwrap_or_default();
            if !allowed.contains(&key.as_str()) {
                return Err(meta.error(format!("expected one of: {}", allowed.join(", "))));
            }
            let value: LitStr = meta.value()?.parse()?;
            match key.as_str() {
                "name" => settings.name = Some(value),
                "namespace" => settings.namespace = Some(value),
                _ => settings.example = Some(value),
            }
            Ok(())
        })?;
    }
    Ok(settings)
}

/// The element's name: what the attribute says, or the identifier's own.
fn element_name(given: Option<&LitStr>, ident: &syn::Ident) -> Result<String> {
    let name = match given {
        Some(given) => given.value(),
        None => ident.to_string().trim_start_matches("r#").to_owned(),
    };
    let mut characters = name.chars();
    let starts = characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let goes_on = characters.all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if starts && goes_on {
        return Ok(name);
    }
    let message =
        format!("{name:?} cannot name an element: ASCII letters, digits, '_', '-' and '.'");
    match given {
        Some(given) => Err(Error::new_spanned(given, message)),
        None => Err(Error::new_spanned(ident, message)),
    }
}

/// The doc comment as one paragraph.
fn description(attributes: &[Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        });
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn is_vec(ty: &syn::Type) -> bool {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|s| s.ident == "Vec"),
        _ => false,
    }
}

fn mentions(tokens: TokenStream, ident: &syn::Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        proc_macro2::TokenTree::Group(group) => mentions(group.stream(), ident),
        proc_macro2::TokenTree::Ident(other) => other == *ident,
        _ => false,
    })
}
