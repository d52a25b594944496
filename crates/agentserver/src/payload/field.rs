//! The Rust types that may stand in a payload.

use super::{IntegerType, Occurs, Shape};
use std::collections::{BTreeMap, HashMap};

/// A type that can be a payload's field.
pub trait Field {
    /// How often the element occurs.
    const OCCURS: Occurs = Occurs::Once;

    /// What the element holds.
    fn shape() -> Shape;

    /// Whether the element is left out when written.
    fn is_absent(&self) -> bool {
        false
    }

    /// Its content, where that is text alone.
    fn text(&self) -> Option<String> {
        None
    }
}

macro_rules! scalar {
    ($($ty:ty => $shape:expr),* $(,)?) => {$(
        impl Field for $ty {
            fn shape() -> Shape {
                $shape
            }

            fn text(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

scalar! {
    String => Shape::Text,
    bool => Shape::Boolean,
    i8 => Shape::Integer(IntegerType::Int8),
    i16 => Shape::Integer(IntegerType::Int16),
    i32 => Shape::Integer(IntegerType::Int32),
    i64 => Shape::Integer(IntegerType::Int64),
    isize => Shape::Integer(IntegerType::Int64),
    u8 => Shape::Integer(IntegerType::Uint8),
    u16 => Shape::Integer(IntegerType::Uint16),
    u32 => Shape::Integer(IntegerType::Uint32),
    u64 => Shape::Integer(IntegerType::Uint64),
    usize => Shape::Integer(IntegerType::Uint64),
    f32 => Shape::Decimal("float"),
    f64 => Shape::Decimal("double"),
}

impl<F: Field> Field for Option<F> {
    const OCCURS: Occurs = once::<F>(Occurs::Optional);

    fn shape() -> Shape {
        F::shape()
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<F: Field> Field for Vec<F> {
    const OCCURS: Occurs = once::<F>(Occurs::Many);

    fn shape() -> Shape {
        F::shape()
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

macro_rules! map {
    ($($ty:ident),*) => {$(
        impl<F: Field> Field for $ty<String, F> {
            const OCCURS: Occurs = once::<F>(Occurs::Optional);

            fn shape() -> Shape {
                Shape::Map(Box::new(F::shape()))
            }

            fn is_absent(&self) -> bool {
                self.is_empty()
            }
        }
    )*};
}

map!(BTreeMap, HashMap);

/// XML has no list of lists and no optional list: such a struct does not compile.
pub const fn once<F: Field>(occurs: Occurs) -> Occurs {
    assert!(
        matches!(F::OCCURS, Occurs::Once),
        "Option, Vec, maps and variants hold neither Option nor Vec nor maps in a payload"
    );
    occurs
}
