//! Payloads: what messages carry.
//!
//! A payload type is a [`Schema`]: a name, a namespace and what the root element
//! holds. The XSD, the JSON Schema, the example and the prompt text are all made
//! from it, and [`PayloadType::compile`] refuses a schema whose example its own
//! XSD would refuse. A Rust struct or enum gets its schema, and its way in and
//! out of XML, from `#[derive(Payload)]`.

mod compiled;
#[doc(hidden)]
pub mod entries;
mod explain;
mod field;
mod json;
mod json_schema;
mod plain;
mod render;
mod schema;
mod xsd;

pub use compiled::{Canonical, PayloadError, PayloadType, SchemaError};
pub use field::Field;
#[doc(hidden)]
pub use field::once;
pub use json::JsonError;
pub use schema::{FieldModel, FieldPosition, IntegerType, Occurs, Schema, Shape};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A struct or enum that travels as a payload. Derive it; do not write it by hand.
pub trait Payload: Serialize + DeserializeOwned + Send + 'static {
    /// The root element's local name.
    const NAME: &'static str;
    /// The root element's namespace; empty for none.
    const NAMESPACE: &'static str;

    /// The field model.
    fn schema() -> Schema;

    /// The payload as XML, not yet checked.
    fn to_xml(&self) -> Result<String, PayloadError> {
        let mut xml = quick_xml::se::to_string_with_root(Self::NAME, self)
            .map_err(|error| PayloadError::Write(error.to_string()))?;
        if !Self::NAMESPACE.is_empty() {
            let declaration = format!(" xmlns=\"{}\"", quick_xml::escape::escape(Self::NAMESPACE));
            xml.insert_str(1 + Self::NAME.len(), &declaration);
        }
        Ok(xml)
    }

    /// The payload from XML that was checked against its schema.
    fn from_xml(xml: &str) -> Result<Self, PayloadError> {
        quick_xml::de::from_str(xml).map_err(|error| PayloadError::Read(error.to_string()))
    }
}
