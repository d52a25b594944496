//! Rows as structs. `sqlx` can derive this too, but its macros bring both drivers and their TLS
//! into the compiler a second time.

use protocol::{MemberKind, MessageType, Scope, Via, Visibility};
use std::{error::Error, str::FromStr};

/// What a column is read as.
pub trait FromColumn<'r, R: sqlx::Row>: Sized {
    fn from_column(row: &'r R, name: &'static str) -> Result<Self, sqlx::Error>;
}

/// Types that the drivers know.
macro_rules! plain_columns {
    ($($kind:ty),+ $(,)?) => {
        $(impl<'r, R: sqlx::Row> FromColumn<'r, R> for $kind
        where
            &'static str: sqlx::ColumnIndex<R>,
            $kind: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
        {
            fn from_column(row: &'r R, name: &'static str) -> Result<Self, sqlx::Error> {
                row.try_get(name)
            }
        })+
    };
}
plain_columns!(i64, f64, bool, String, Vec<u8>, Option<i64>, Option<String>);

/// Types that are stored as a word. One that does not fit is an error, not another word.
macro_rules! word_columns {
    ($($kind:ty),+ $(,)?) => {
        $(impl<'r, R: sqlx::Row> FromColumn<'r, R> for $kind
        where
            &'static str: sqlx::ColumnIndex<R>,
            &'r str: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
        {
            fn from_column(row: &'r R, name: &'static str) -> Result<Self, sqlx::Error> {
                word(row.try_get(name)?, name)
            }
        })+
    };
}
word_columns!(MemberKind, MessageType, Scope, Via, Visibility);

fn word<T: FromStr<Err: Error + Send + Sync + 'static>>(
    text: &str,
    column: &'static str,
) -> Result<T, sqlx::Error> {
    text.parse().map_err(|error| sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: Box::new(error),
    })
}

/// Declares a struct that is read from a row, each field from the column of its name.
macro_rules! row_struct {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $($(#[$field_attribute:meta])* pub $field:ident: $kind:ty,)*
        }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[$field_attribute])* pub $field: $kind,)*
        }

        impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for $name
        where
            $($kind: $crate::store::row_struct::FromColumn<'r, R>,)*
        {
            fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
                use $crate::store::row_struct::FromColumn;
                Ok(Self {
                    $($field: {
                        let name = stringify!($field).trim_start_matches("r#");
                        <$kind>::from_column(row, name)?
                    },)*
                })
            }
        }
    };
}
