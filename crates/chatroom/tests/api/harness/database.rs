//! A database of its own for each test: one that a test before has left, emptied, or a copy of one
//! that is migrated already.

use super::DEADLINE;
use chatroom::store::{Db, migrate::migrate};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Postgres, Transaction, postgres::PgArguments};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{
        LazyLock, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::OnceCell,
};

/// Held by the test process that makes a template, so that no two do at once.
const TEMPLATE_LOCK: i64 = 0x7363_7465_7374;

/// Takes every row out of a database, so that another test can have it.
const EMPTY: &str = "\
    DO $$
    DECLARE
        found record;
    BEGIN
        SET LOCAL session_replication_role = replica;
        FOR found IN SELECT tablename FROM pg_tables
            WHERE schemaname = 'public' AND tablename NOT IN ('_sqlx_migrations', 'migration_gate')
        LOOP
            EXECUTE format('DELETE FROM %I', found.tablename);
        END LOOP;
        PERFORM setval(format('%I', sequencename), 1, false) FROM pg_sequences;
    END $$";

/// Databases with every table and no row, that nobody uses.
static EMPTIED: Mutex<Vec<Emptied>> = Mutex::new(Vec::new());

/// A database, and the connection that takes its rows out: it knows all tables already.
struct Emptied {
    name: String,
    cleaner: PgConnection,
}

/// Where such connections live, from one test to the next.
static CLEANING: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
});

/// Puts an SQLite file with every table there.
pub async fn copy_sqlite_template(to: &Path) {
    static TEMPLATE: OnceCell<Vec<u8>> = OnceCell::const_new();
    let template = TEMPLATE.get_or_init(|| in_time(make_sqlite_template()));
    let mut private = std::fs::OpenOptions::new();
    private.write(true).create_new(true).mode(0o600);
    let mut file = private.open(to).unwrap();
    file.write_all(template.await).unwrap();
}

async fn make_sqlite_template() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("template.db");
    let db = Db::open_sqlite(&file, DEADLINE).await.unwrap();
    migrate(&db).await.unwrap();
    assert!(db.empty_wal().await.unwrap());
    db.close().await;
    std::fs::read(file).unwrap()
}

/// A PostgreSQL database that exists as long as this value.
pub struct Database {
    admin_url: String,
    name: String,
    /// Whether another test may have it once its rows are gone.
    reusable: AtomicBool,
    cleaner: Option<PgConnection>,
}

impl Database {
    /// Makes one with every table on the server that `SC_TEST_POSTGRES_URL` names.
    pub async fn create() -> Self {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let admin_url = admin_url();
        let emptied = EMPTIED.lock().unwrap().pop();
        let database = match emptied {
            Some(Emptied { name, cleaner }) => Self {
                admin_url,
                name,
                reusable: AtomicBool::default(),
                cleaner: Some(cleaner),
            },
            None => {
                let template = TEMPLATE.get_or_init(|| in_time(make_template(&admin_url)));
                Self::copy_of(template.await, admin_url.clone()).await
            }
        };
        database.reusable.store(true, Ordering::Relaxed);
        database
    }

    /// Makes one without any table.
    pub async fn create_empty() -> Self {
        Self::copy_of("template1", admin_url()).await
    }

    async fn copy_of(template: &str, admin_url: String) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let started = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
        let name = format!("chatroom_{}_{count}_{started}", std::process::id());
        let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
        run(&admin_url, create).await;
        Self {
            admin_url,
            name,
            reusable: AtomicBool::default(),
            cleaner: None,
        }
    }

    /// Its address, for a server that may outlive the one whose database it is.
    pub fn shared_url(&self) -> String {
        self.reusable.store(false, Ordering::Relaxed);
        self.url()
    }

    /// Its address.
    pub fn url(&self) -> String {
        address(&self.admin_url, &self.name)
    }

    /// Runs statements in it, which may change more than rows.
    pub async fn run(&self, sql: &str) {
        self.reusable.store(false, Ordering::Relaxed);
        run(&self.url(), sql.to_owned()).await;
    }

    /// The number that a query gives.
    pub async fn count(&self, sql: &str) -> i64 {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned()));
        count.fetch_one(&mut connection).await.unwrap()
    }

    /// Locks a room until the transaction is dropped.
    pub async fn lock_room(&self, room: &str) -> Transaction<'static, Postgres> {
        let lock = sqlx::query("SELECT room_id FROM rooms WHERE room_id = $1 FOR UPDATE");
        self.begins_with(lock.bind(room)).await
    }

    /// Keeps others from migrating it until the transaction is dropped.
    pub async fn lock_migrations(&self) -> Transaction<'static, Postgres> {
        self.begins_with(sqlx::query("SELECT id FROM migration_gate FOR UPDATE"))
            .await
    }

    async fn begins_with(
        &self,
        lock: sqlx::query::Query<'_, Postgres, PgArguments>,
    ) -> Transaction<'static, Postgres> {
        let pool = sqlx::PgPool::connect(&self.url()).await.unwrap();
        let mut tx = pool.begin().await.unwrap();
        lock.execute(&mut *tx).await.unwrap();
        tx
    }

    /// How many transactions in it hold something and wait for whoever began them.
    pub async fn idle_transactions(&self) -> i64 {
        self.count(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND state = 'idle in transaction' AND backend_xid IS NOT NULL",
        )
        .await
    }

    /// How many queries others run in it at this moment.
    pub async fn running_queries(&self) -> usize {
        let running = self.count(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND state = 'active' AND pid <> pg_backend_pid()",
        );
        usize::try_from(running.await).unwrap()
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
        let (admin_url, name) = (self.admin_url.clone(), self.name.clone());
        let reusable = self.reusable.load(Ordering::Relaxed) && !std::thread::panicking();
        let cleaner = self.cleaner.take();
        let (is_done, done) = mpsc::channel();
        CLEANING.spawn(async move {
            if reusable {
                let emptied = in_time(empty(&admin_url, name, cleaner)).await;
                EMPTIED.lock().unwrap().push(emptied);
            } else {
                let drop = format!("DROP DATABASE {name} WITH (FORCE)");
                run(&admin_url, drop).await;
            }
            is_done.send(())
        });
        if done.recv().is_err() {
            eprintln!("the database {} is left behind", self.name);
        }
    }
}

/// Ends everybody else's connections to a database and takes its rows out.
async fn empty(admin_url: &str, name: String, cleaner: Option<PgConnection>) -> Emptied {
    let mut cleaner = match cleaner {
        Some(cleaner) => cleaner,
        None => {
            let connecting = PgConnection::connect(&address(admin_url, &name));
            connecting.await.unwrap()
        }
    };
    let others = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    loop {
        let others = sqlx::query_scalar::<_, i64>(others);
        if others.fetch_one(&mut cleaner).await.unwrap() == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    execute(&mut cleaner, EMPTY.to_owned()).await;
    Emptied { name, cleaner }
}

fn admin_url() -> String {
    let Ok(url) = std::env::var("SC_TEST_POSTGRES_URL") else {
        panic!(
            "SC_TEST_POSTGRES_URL is not set. Run `cargo xtask test`: it starts a PostgreSQL for \
             the tests and sets it"
        );
    };
    url
}

/// The name of a database with this program's schema and no rows. It is made where it is missing,
/// and kept: its name tells which migrations it has.
async fn make_template(admin_url: &str) -> String {
    let name = format!("chatroom_template_{:016x}", migrations_hash());
    let mut admin = PgConnection::connect(admin_url).await.unwrap();
    let lock = format!("SELECT pg_advisory_lock({TEMPLATE_LOCK})");
    execute(&mut admin, lock).await;
    let found = sqlx::query_scalar::<_, bool>("SELECT true FROM pg_database WHERE datname = $1");
    let found = found.bind(&name).fetch_optional(&mut admin).await.unwrap();
    if found.is_none() {
        // It gets its name last: under that name, it is whole.
        let unfinished = format!("{name}_unfinished");
        let drop = format!("DROP DATABASE IF EXISTS {unfinished} WITH (FORCE)");
        execute(&mut admin, drop).await;
        execute(&mut admin, format!("CREATE DATABASE {unfinished}")).await;
        let db = Db::open_postgres(&address(admin_url, &unfinished), DEADLINE).await;
        let db = db.unwrap();
        migrate(&db).await.unwrap();
        db.close().await;
        // What a migration puts into a new database would be missing in one that was emptied.
        let url = address(admin_url, &unfinished);
        assert_eq!(rows(&url).await, 0, "migrations put rows into tables");
        let rename = format!("ALTER DATABASE {unfinished} RENAME TO {name}");
        execute(&mut admin, rename).await;
    }
    admin.close().await.unwrap();
    name
}

/// How many rows a database has in all.
async fn rows(url: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let sum = "SELECT COALESCE(SUM((xpath('/row/c/text()', query_to_xml(\
               format('SELECT COUNT(*) AS c FROM %I', tablename), false, true, '')))[1]::text::bigint), 0)::bigint \
               FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('_sqlx_migrations', 'migration_gate')";
    let sum = sqlx::query_scalar(sum).fetch_one(&mut connection).await;
    connection.close().await.unwrap();
    sum.unwrap()
}

fn migrations_hash() -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/postgres");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.file_name().hash(&mut hasher);
        std::fs::read(file).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}

/// The address of another database on the same server.
fn address(admin_url: &str, name: &str) -> String {
    let (server, _) = admin_url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

async fn run(url: &str, sql: String) {
    in_time(async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        execute(&mut connection, sql).await;
        connection.close().await.unwrap();
    })
    .await;
}

async fn execute(connection: &mut PgConnection, sql: String) {
    let executed = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    executed.unwrap();
}

async fn in_time<T>(running: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(DEADLINE, running).await;
    done.expect("PostgreSQL did not answer in time")
}
