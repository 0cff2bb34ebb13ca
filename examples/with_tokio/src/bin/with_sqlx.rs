//! Counts in SQLite, with sqlx, how often it was run. The queries are tasks of a tokio runtime on
//! another thread, and their results come to the machine.
//!
//! ```text
//! cargo run --bin with_sqlx -- runs.sqlite
//! ```

use rotor::BoxError;
use rotor_async::SpawnOn;
use rotor_with_tokio::drive;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

fn main() -> Result<(), BoxError> {
    let file = std::env::args().nth(1).ok_or("which file?")?;
    let count = drive(|tokio, scope| {
        // `Send`, because another thread may poll it, unlike the future that the machine drives
        // itself.
        let counted = scope.spawn_on(tokio.handle(), count(file));
        async move { Ok(rotor_async::wait(counted).await??) }
    })?;
    println!("run {count} times");
    Ok(())
}

async fn count(file: String) -> Result<i64, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY)").execute(&pool).await?;
    sqlx::query("INSERT INTO runs DEFAULT VALUES").execute(&pool).await?;
    let count = sqlx::query_scalar("SELECT count(*) FROM runs").fetch_one(&pool).await?;
    pool.close().await;
    Ok(count)
}
