//! Accepts connections, limits their number, and closes slow ones.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// How many connections may be open at once. Others wait.
pub(super) const MAX_CONNECTIONS: usize = 256;
/// How long the head of a request may take, and also how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may leave sent data unread, in milliseconds.
const UNREAD_MS: u32 = 10_000;
/// How long to wait if no connection can be accepted, for example because too many files are open.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Accepts connections in an endless loop, as far as `room` permits.
pub(super) async fn accept(listener: TcpListener, router: Router, room: Arc<Semaphore>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    serve(stream, router).await;
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
        }
    }
}

/// Answers the requests of one connection.
async fn serve(stream: TcpStream, router: Router) {
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNREAD_MS);
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    // Errors are ignored: the client has disconnected.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
