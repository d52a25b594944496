//! A PostgreSQL database of its own for each test.

use super::DEADLINE;
use sqlx::{Connection, PgConnection};
use std::sync::atomic::{AtomicU32, Ordering};

/// A database that exists as long as this value.
pub struct Database {
    admin_url: String,
    name: String,
}

impl Database {
    /// Makes one on the server that `SC_TEST_POSTGRES_URL` names.
    pub async fn create() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Ok(admin_url) = std::env::var("SC_TEST_POSTGRES_URL") else {
            panic!(
                "SC_TEST_POSTGRES_URL is not set. Run `cargo xtask test`: it starts a PostgreSQL \
                 for the tests and sets it"
            );
        };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let started = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
        let name = format!("chatroom_{}_{count}_{started}", std::process::id());
        run(&admin_url, format!("CREATE DATABASE {name}")).await;
        Self { admin_url, name }
    }

    /// Its address.
    pub fn url(&self) -> String {
        let (server, _) = self.admin_url.rsplit_once('/').unwrap();
        format!("{server}/{}", self.name)
    }

    /// Runs statements in it.
    pub async fn run(&self, sql: &str) {
        run(&self.url(), sql.to_owned()).await;
    }

    /// How many queries others run in it at this moment.
    pub async fn running_queries(&self) -> usize {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        let running = sqlx::query_scalar::<_, i64>(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND state = 'active' AND pid <> pg_backend_pid()",
        );
        let running = running.fetch_one(&mut connection).await.unwrap();
        usize::try_from(running).unwrap()
    }

    /// Everything in it, as text.
    pub async fn dump(&self) -> Vec<u8> {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        let dump = sqlx::query_scalar::<_, String>("SELECT database_to_xml(true, false, '')::text");
        dump.fetch_one(&mut connection).await.unwrap().into_bytes()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let admin_url = self.admin_url.clone();
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(run(&admin_url, sql));
        });
        if dropping.join().is_err() {
            eprintln!("the database {} is left behind", self.name);
        }
    }
}

async fn run(url: &str, sql: String) {
    let running = async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
    };
    let in_time = tokio::time::timeout(DEADLINE, running).await;
    assert!(in_time.is_ok(), "PostgreSQL did not answer in time");
}
