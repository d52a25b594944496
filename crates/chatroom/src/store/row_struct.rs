//! Rows as structs. `sqlx` can derive this too, but its macros bring both drivers and their TLS
//! into the compiler a second time.

use super::{reputation::ScoreScope, webhooks::SentEvent};
use protocol::{
    AdapterType, ConsentState, DeliveryState, EventKind, MemberKind, MessageType, Role, RoomId,
    Scope, ScoreKind, UserId, Via, Visibility, Wake, WebhookKind, WelcomeCheck,
};
use serde::de::DeserializeOwned;
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
plain_columns!(
    i64,
    f64,
    bool,
    String,
    Vec<u8>,
    Option<i64>,
    Option<f64>,
    Option<String>,
);

/// Types that are stored as text. What does not fit is an error, not another word or id.
macro_rules! text_columns {
    ($($kind:ty),+ $(,)?) => {
        $(impl<'r, R: sqlx::Row> FromColumn<'r, R> for $kind
        where
            &'static str: sqlx::ColumnIndex<R>,
            &'r str: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
        {
            fn from_column(row: &'r R, name: &'static str) -> Result<Self, sqlx::Error> {
                parse(row.try_get(name)?, name)
            }
        }

        impl<'r, R: sqlx::Row> FromColumn<'r, R> for Option<$kind>
        where
            &'static str: sqlx::ColumnIndex<R>,
            &'r str: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
        {
            fn from_column(row: &'r R, name: &'static str) -> Result<Self, sqlx::Error> {
                let text: Option<&str> = row.try_get(name)?;
                text.map(|text| parse(text, name)).transpose()
            }
        })+
    };
}
text_columns!(
    AdapterType,
    MemberKind,
    MessageType,
    Role,
    RoomId,
    Scope,
    ScoreKind,
    UserId,
    Via,
    Visibility,
    Wake,
    WelcomeCheck,
    ConsentState,
    DeliveryState,
    WebhookKind,
    EventKind,
    ScoreScope,
    SentEvent,
);

fn parse<T: FromStr<Err: Error + Send + Sync + 'static>>(
    text: &str,
    column: &'static str,
) -> Result<T, sqlx::Error> {
    text.parse().map_err(|error| wrong(column, error))
}

fn wrong(column: &'static str, why: impl Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: Box::new(why),
    }
}

/// What is stored as JSON. What does not fit is an error here too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> Json<T> {
    /// What the text of this column says.
    pub fn read(text: &str, column: &'static str) -> Result<T, sqlx::Error> {
        serde_json::from_str(text).map_err(|error| wrong(column, error))
    }
}

impl<'r, R: sqlx::Row, T: DeserializeOwned> FromColumn<'r, R> for Json<T>
where
    &'static str: sqlx::ColumnIndex<R>,
    &'r str: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    fn from_column(row: &'r R, name: &'static str) -> Result<Self, sqlx::Error> {
        Self::read(row.try_get(name)?, name).map(Self)
    }
}

impl<'r, R: sqlx::Row, T: DeserializeOwned> FromColumn<'r, R> for Option<Json<T>>
where
    &'static str: sqlx::ColumnIndex<R>,
    &'r str: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    fn from_column(row: &'r R, name: &'static str) -> Result<Self, sqlx::Error> {
        let text: Option<&str> = row.try_get(name)?;
        let value = text.map(|text| Json::read(text, name)).transpose()?;
        Ok(value.map(Json))
    }
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

#[cfg(test)]
mod tests {
    use super::super::{Db, db::row, rooms::RoomIdRow};
    use std::time::Duration;

    #[tokio::test]
    async fn a_stored_id_that_is_none_is_an_error_that_names_its_column() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rooms.db");
        let db = Db::open_sqlite(&file, Duration::from_secs(5))
            .await
            .unwrap();
        let mut conn = db.read().await.unwrap();
        let error = row!(conn, RoomIdRow, "SELECT 'no room' AS room_id").unwrap_err();
        let words = error.to_string();
        assert!(
            words.contains("room_id") && words.contains("begins with rm_"),
            "{words}"
        );
    }
}
