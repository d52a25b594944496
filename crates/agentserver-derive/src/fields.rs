//! The fields of a struct, or of a variant that has some.

use crate::attributes::{Settings, description};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::collections::HashSet;
use syn::{Error, Field, Ident, Result, Type};

/// What is written for a list of fields.
#[derive(Default)]
pub struct Fields {
    /// For serde's derive.
    pub shadow: Vec<TokenStream>,
    /// Expressions of the field models.
    pub models: Vec<TokenStream>,
    /// Functions that the others name.
    pub defaults: Vec<TokenStream>,
}

impl Fields {
    /// `own` is the payload itself; `prefix` tells its parts' defaults apart.
    pub fn read<'a>(
        fields: impl IntoIterator<Item = &'a Field>,
        own: &Ident,
        prefix: &str,
    ) -> Result<Self> {
        let mut all = Self::default();
        let mut seen = HashSet::new();
        for field in fields {
            let Some(ident) = &field.ident else {
                return Err(Error::new_spanned(field, "a payload's fields have names"));
            };
            let settings =
                Settings::read(&field.attrs, &["name", "example", "attribute", "default"])?;
            let name = settings.name(ident)?;
            if !seen.insert(name.clone()) {
                let message = format!("two fields are called {name}");
                return Err(Error::new_spanned(ident, message));
            }
            not_itself(&field.ty, own)?;
            all.add(field, ident, &name, &settings, prefix);
        }
        Ok(all)
    }

    fn add(&mut self, field: &Field, ident: &Ident, name: &str, settings: &Settings, prefix: &str) {
        let ty = &field.ty;
        let (is_map, is_vec) = (
            is_called(ty, &["BTreeMap", "HashMap"]),
            is_called(ty, &["Vec"]),
        );
        let rename = match settings.is_attribute {
            true => format!("@{name}"),
            false => name.to_owned(),
        };
        let text = description(&field.attrs);
        let example = match &settings.example {
            Some(example) => quote!(::core::option::Option::Some(#example.into())),
            None => quote!(::core::option::Option::None),
        };
        let mut model =
            quote!(::agentserver::payload::FieldModel::of::<#ty>(#name, #text, #example));
        if settings.is_attribute {
            model = quote!(#model.attribute());
        }
        let mut absent = (is_map || is_vec).then(|| quote!(#[serde(default)]));
        if let Some(value) = &settings.default {
            let function = format_ident!("default_{}{}", prefix, ident);
            let path = function.to_string();
            self.defaults.push(quote!(fn #function() -> #ty { #value }));
            absent = Some(quote!(#[serde(default = #path)]));
            model = quote!(#model.or::<#ty>(&#function()));
        }
        let entries = is_map.then(|| quote!(#[serde(with = "::agentserver::payload::entries")]));
        self.shadow.push(quote! {
            #[serde(rename = #rename, skip_serializing_if = "::agentserver::payload::Field::is_absent")]
            #absent
            #entries
            #ident: #ty
        });
        self.models.push(model);
    }
}

/// A payload within itself has no example that ends.
pub fn not_itself(ty: &Type, own: &Ident) -> Result<()> {
    match mentions(quote!(#ty), own) {
        false => Ok(()),
        true => {
            let message = "a payload cannot hold itself: its example would have no end";
            Err(Error::new_spanned(ty, message))
        }
    }
}

fn is_called(ty: &Type, names: &[&str]) -> bool {
    let Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| names.iter().any(|name| last.ident == name))
}

fn mentions(tokens: TokenStream, ident: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        proc_macro2::TokenTree::Group(group) => mentions(group.stream(), ident),
        proc_macro2::TokenTree::Ident(other) => other == *ident,
        _ => false,
    })
}
