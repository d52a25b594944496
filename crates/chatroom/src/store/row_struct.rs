//! Rows as structs. `sqlx` can derive this too, but its macros bring both drivers and their TLS
//! into the compiler a second time.

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
            &'static str: sqlx::ColumnIndex<R>,
            $($kind: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,)*
        {
            fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
                Ok(Self {
                    $($field: row.try_get(stringify!($field).trim_start_matches("r#"))?,)*
                })
            }
        }
    };
}
