//! The Rust types that may stand in a payload.

use super::{Occurs, Shape};

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
}

macro_rules! scalar {
    ($($ty:ty => $shape:expr),* $(,)?) => {$(
        impl Field for $ty {
            fn shape() -> Shape {
                $shape
            }
        }
    )*};
}

scalar! {
    String => Shape::Text,
    bool => Shape::Boolean,
    i8 => Shape::Integer("byte"),
    i16 => Shape::Integer("short"),
    i32 => Shape::Integer("int"),
    i64 => Shape::Integer("long"),
    u8 => Shape::Integer("unsignedByte"),
    u16 => Shape::Integer("unsignedShort"),
    u32 => Shape::Integer("unsignedInt"),
    u64 => Shape::Integer("unsignedLong"),
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

/// XML has no list of lists and no optional list: such a struct does not compile.
const fn once<F: Field>(occurs: Occurs) -> Occurs {
    assert!(
        matches!(F::OCCURS, Occurs::Once),
        "Option and Vec hold neither Option nor Vec in a payload"
    );
    occurs
}
