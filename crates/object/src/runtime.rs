//! The one room with an asynchronous runtime. Whoever calls a store has a thread of its own and waits.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

/// Threads that carry bytes: encryption is what they have to do.
const THREADS: usize = 2;

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        // Somebody else in this process may have chosen already; then that is good, too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("sluice-object")
            .enable_all()
            .build()
            .expect("a process that can serve can have two threads more")
    })
}

/// Waits for the end of `work`. Not to be called from within the runtime.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    runtime().block_on(work)
}

/// Has `work` done beside.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    runtime().spawn(work)
}

/// Does what makes things of the runtime.
pub(crate) fn within<T>(work: impl FnOnce() -> T) -> T {
    let _entered = runtime().enter();
    work()
}
