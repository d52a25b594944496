//! What stands above a type, a field or a variant: `#[payload(...)]` and doc
//! comments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, LitStr, Meta, Result, Token};

/// What `#[payload(...)]` said.
#[derive(Default)]
pub struct Settings {
    pub name: Option<LitStr>,
    pub namespace: Option<LitStr>,
    pub example: Option<LitStr>,
    pub is_attribute: bool,
    /// The value for when it is left out.
    pub default: Option<TokenStream>,
}

impl Settings {
    pub fn read(attributes: &[Attribute], allowed: &[&str]) -> Result<Self> {
        let mut settings = Self::default();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("payload")) {
            attribute.parse_nested_meta(|meta| {
                let key = meta.path.get_ident().map(ToString::to_string);
                let key = key.unwrap_or_default();
                if !allowed.contains(&key.as_str()) {
                    return Err(meta.error(format!("expected one of: {}", allowed.join(", "))));
                }
                match key.as_str() {
                    "name" => settings.name = Some(meta.value()?.parse()?),
                    "namespace" => settings.namespace = Some(meta.value()?.parse()?),
                    "example" => settings.example = Some(meta.value()?.parse()?),
                    "attribute" => settings.is_attribute = true,
                    _ if meta.input.peek(Token![=]) => {
                        settings.default = Some(value(&meta.value()?.parse()?));
                    }
                    _ => settings.default = Some(quote!(::core::default::Default::default())),
                }
                Ok(())
            })?;
        }
        Ok(settings)
    }

    /// The name in XML: what was said, or the identifier's own.
    pub fn name(&self, ident: &Ident) -> Result<String> {
        let name = match &self.name {
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
        Err(match &self.name {
            Some(given) => Error::new_spanned(given, message),
            None => Error::new_spanned(ident, message),
        })
    }
}

/// A text in quotes stands for whatever can be made from it.
fn value(given: &Expr) -> TokenStream {
    match given {
        Expr::Lit(ExprLit {
            lit: Lit::Str(_), ..
        }) => quote!(::core::convert::Into::into(#given)),
        _ => quote!(#given),
    }
}

/// The doc comment as one paragraph.
pub fn description(attributes: &[Attribute]) -> String {
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
