//! Enums: one of some words, or exactly one of some elements.

use crate::attributes::{Settings, description};
use crate::fields::{Fields, not_itself};
use crate::model::Content;
use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashSet;
use syn::{DataEnum, Error, Ident, Result, Variant};

pub fn expand(ident: &Ident, data: &DataEnum) -> Result<Content> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for variant in &data.variants {
        let name = Settings::read(&variant.attrs, &["name"])?.name(&variant.ident)?;
        if !seen.insert(name.clone()) {
            let message = format!("two variants are called {name}");
            return Err(Error::new_spanned(&variant.ident, message));
        }
        names.push(name);
    }
    if names.is_empty() {
        let message = "a payload that is an enum has variants";
        return Err(Error::new_spanned(ident, message));
    }
    let are_words = data.variants.iter().all(|v| v.fields.is_empty());
    match are_words {
        true => Ok(words(ident, data, &names)),
        false => elements(ident, data, &names),
    }
}

/// Variants that hold nothing: text that is one of their names.
fn words(ident: &Ident, data: &DataEnum, names: &[String]) -> Content {
    let patterns: Vec<_> = data
        .variants
        .iter()
        .map(|variant| {
            let name = &variant.ident;
            quote!(#ident::#name { .. })
        })
        .collect();
    let values = data.variants.iter().map(|variant| {
        let name = &variant.ident;
        match &variant.fields {
            syn::Fields::Unit => quote!(#ident::#name),
            syn::Fields::Named(_) => quote!(#ident::#name {}),
            syn::Fields::Unnamed(_) => quote!(#ident::#name()),
        }
    });
    let serde = quote! {
        fn word(value: &#ident) -> &'static str {
            match value { #(#patterns => #names),* }
        }

        impl ::agentserver::__private::serde::Serialize for #ident {
            fn serialize<S>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error>
            where
                S: ::agentserver::__private::serde::Serializer,
            {
                serializer.serialize_str(word(self))
            }
        }

        impl<'de> ::agentserver::__private::serde::Deserialize<'de> for #ident {
            fn deserialize<D>(deserializer: D) -> ::core::result::Result<Self, D::Error>
            where
                D: ::agentserver::__private::serde::Deserializer<'de>,
            {
                use ::agentserver::__private::serde::de::Error;
                let word = <::std::string::String as ::agentserver::__private::serde::Deserialize>
                    ::deserialize(deserializer)?;
                match word.trim() {
                    #(#names => ::core::result::Result::Ok(#values),)*
                    _ => ::core::result::Result::Err(D::Error::unknown_variant(&word, &[#(#names),*])),
                }
            }
        }
    };
    Content {
        serde,
        shape: quote! {
            ::agentserver::payload::Shape::Enumeration(::std::vec![#(#names.into()),*])
        },
        field: quote! {
            fn text(&self) -> ::core::option::Option<::std::string::String> {
                ::core::option::Option::Some(word(self).into())
            }
        },
    }
}

/// Variants that hold something: an element each.
fn elements(ident: &Ident, data: &DataEnum, names: &[String]) -> Result<Content> {
    let (mut shadow, mut models, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (variant, name)) in data.variants.iter().zip(names).enumerate() {
        let (written, shape, functions) = element(ident, index, variant)?;
        let text = description(&variant.attrs);
        shadow.push(quote!(#[serde(rename = #name)] #written));
        models.push(quote! {
            ::agentserver::payload::FieldModel {
                shape: #shape,
                ..::agentserver::payload::FieldModel::of::<::std::string::String>(
                    #name, #text, ::core::option::Option::None,
                )
            }
        });
        defaults.extend(functions);
    }
    let target = ident.to_string();
    let serde = quote! {
        #(#defaults)*

        #[derive(::agentserver::__private::serde::Serialize, ::agentserver::__private::serde::Deserialize)]
        #[serde(crate = "::agentserver::__private::serde", remote = #target)]
        enum Shadow { #(#shadow),* }

        /// The variant's element, whatever the element around it is called.
        struct Inside<'a>(&'a #ident);

        impl ::agentserver::__private::serde::Serialize for Inside<'_> {
            fn serialize<S>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error>
            where
                S: ::agentserver::__private::serde::Serializer,
            {
                Shadow::serialize(self.0, serializer)
            }
        }

        impl ::agentserver::__private::serde::Serialize for #ident {
            fn serialize<S>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error>
            where
                S: ::agentserver::__private::serde::Serializer,
            {
                use ::agentserver::__private::serde::ser::SerializeStruct;
                let mut outside = serializer.serialize_struct(#target, 1)?;
                outside.serialize_field("$value", &Inside(self))?;
                outside.end()
            }
        }

        impl<'de> ::agentserver::__private::serde::Deserialize<'de> for #ident {
            fn deserialize<D>(deserializer: D) -> ::core::result::Result<Self, D::Error>
            where
                D: ::agentserver::__private::serde::Deserializer<'de>,
            {
                #[derive(::agentserver::__private::serde::Deserialize)]
                #[serde(crate = "::agentserver::__private::serde")]
                struct Outside {
                    #[serde(rename = "$value", with = "Shadow")]
                    inside: #ident,
                }
                let outside =
                    <Outside as ::agentserver::__private::serde::Deserialize>::deserialize(deserializer)?;
                ::core::result::Result::Ok(outside.inside)
            }
        }
    };
    Ok(Content {
        serde,
        shape: quote!(::agentserver::payload::Shape::Choice(
            ::std::vec![#(#models),*]
        )),
        field: TokenStream::new(),
    })
}

/// A variant for serde, its shape and the functions that these name.
fn element(
    own: &Ident,
    index: usize,
    variant: &Variant,
) -> Result<(TokenStream, TokenStream, Vec<TokenStream>)> {
    let ident = &variant.ident;
    match &variant.fields {
        syn::Fields::Unit => {
            let shape = quote!(::agentserver::payload::Shape::Record(::std::vec::Vec::new()));
            Ok((quote!(#ident), shape, Vec::new()))
        }
        syn::Fields::Named(_) => {
            let prefix = format!("{index}_");
            let fields = Fields::read(&variant.fields, own, &prefix)?;
            let Fields {
                shadow,
                models,
                defaults,
            } = fields;
            let shape = quote!(::agentserver::payload::Shape::Record(
                ::std::vec![#(#models),*]
            ));
            Ok((quote!(#ident { #(#shadow),* }), shape, defaults))
        }
        syn::Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            let ty = &fields.unnamed[0].ty;
            not_itself(ty, own)?;
            let shape = quote! {{
                const _: ::agentserver::payload::Occurs = ::agentserver::payload::once::<#ty>(
                    ::agentserver::payload::Occurs::Once,
                );
                <#ty as ::agentserver::payload::Field>::shape()
            }};
            Ok((quote!(#ident(#ty)), shape, Vec::new()))
        }
        syn::Fields::Unnamed(_) => {
            let message = "a variant holds one value, or fields with names";
            Err(Error::new_spanned(&variant.ident, message))
        }
    }
}
